//! Tests of secrets, unknowns, functions, and refreshed values.

use std::sync::Arc;

use engine::events::{Outcome, StepOp};
use pulumi_proto::property::PropertyValue;
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;
use state::{ResourceState, Snapshot};

use crate::program::{invoke, provider, thing};
use crate::run::entry;
use crate::standing;
use crate::world::{Goes, World, map};

#[tokio::test]
async fn an_output_is_secret_where_its_input_is_or_the_program_says_so() {
    let world = World::default();
    let secret = PropertyValue::secret("x".into());
    let program = [thing("a")
        .with("v", secret.clone())
        .with("list", vec![secret])
        .with("w", "1")
        .but(|goal| goal.additional_secret_outputs = vec!["id".to_owned(), "w".to_owned()])];
    let ended = world.up(&Snapshot::default(), &program).go().await.expect(Outcome::Succeeded);
    let outputs = &entry(&ended.state, "a").outputs;
    assert!(outputs["v"].is_secret() && outputs["w"].is_secret() && !outputs["id"].is_secret());
    assert!(!outputs["list"].is_secret() && outputs["list"].contains_secrets());
}

#[tokio::test]
async fn an_output_called_id_is_secret_where_its_input_is() {
    let program = [thing("a").with("id", PropertyValue::secret("x".into()))];
    let ended = World::default().up(&Snapshot::default(), &program).go().await.expect(Outcome::Succeeded);
    assert!(entry(&ended.state, "a").outputs["id"].is_secret());
}

#[tokio::test]
async fn a_value_that_becomes_secret_is_recorded_and_no_change() {
    let (world, state) = standing(&[thing("a").with("v", "1")]).await;
    let program = [thing("a").with("v", PropertyValue::secret("1".into()))];
    let ended = world.up(&state, &program).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0]);
    assert!(entry(&ended.state, "a").outputs["v"].is_secret());
}

#[tokio::test]
async fn a_secret_output_stays_secret_through_a_refresh() {
    let program = [thing("a").with("w", "1").but(|goal| goal.additional_secret_outputs = vec!["w".to_owned()])];
    let (world, state) = standing(&program).await;
    world.drift("a-1", map(&[("w", "2")]));
    let ended = world.refresh(&state).go().await.expect(Outcome::Succeeded);
    let outputs = &entry(&ended.state, "a").outputs;
    assert_eq!(outputs["w"], PropertyValue::secret("2".into()));
    assert_eq!(ended.counts[&StepOp::Update], 1);
}

#[tokio::test]
async fn what_a_preview_does_not_know_is_sent_as_unknown() {
    let world = World::default();
    let program = [thing("a"), thing("b").of("v", "a")];
    let ended = world.up(&Snapshot::default(), &program).preview().go().await.expect(Outcome::Succeeded);
    let sent = ended.calls.iter().find(|call| call.said() == "preview b").unwrap();
    assert!(sent.news["v"].contains_unknowns());
}

#[tokio::test]
async fn a_provider_whose_configuration_is_not_known_yet_is_asked_nothing() {
    let world = World::default();
    let program = [thing("a"), provider("p").of("v", "a"), thing("b").by("p")];
    let ended = world.up(&Snapshot::default(), &program).preview().go().await.expect(Outcome::Succeeded);
    assert_eq!((ended.called("configure p"), ended.called("check b"), ended.called("preview b")), (0, 0, 0));
}

#[tokio::test]
async fn a_probe_of_a_dependent_says_what_would_become_unknown_in_real_runs_too() {
    let program = |d: &str| [thing("a").with("d", d), thing("b").of("v", "a").with("w", "1")];
    let (world, state) = standing(&program("1")).await;
    let ended = world.up(&state, &program("2")).go().await.expect(Outcome::Succeeded);
    let probe = ended.calls.iter().find(|call| call.said() == "diff b").unwrap();
    assert!(probe.news["v"].contains_unknowns() && !probe.news["w"].contains_unknowns());
    assert_eq!(ended.changes(), ["delete a-1", "create a", "update b-1"]);
}

#[tokio::test]
async fn what_a_refresh_does_not_find_is_made_again_and_nothing_refers_to_it_meanwhile() {
    let program = [thing("a"), thing("b").of("v", "a")];
    let (world, state) = standing(&program).await;
    world.when("read a-1", Goes::Gone);
    let refreshed = world.refresh(&state).go().await.expect(Outcome::Succeeded);
    assert_eq!(refreshed.entries(), ["b-1"]);
    assert_eq!(entry(&refreshed.state, "b").dependencies.len(), 0);
    world.mend();
    let ended = world.up(&refreshed.state, &program).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["create a", "update b-1"]);
}

#[tokio::test]
async fn nothing_is_registered_before_everything_was_read() {
    let (world, state) = standing(&[thing("a"), thing("b")]).await;
    let held = world.hold("read b-1");
    let run = world.up(&state, &[thing("a"), thing("b")]).refreshing().go();
    let (ended, ()) = tokio::join!(run, async {
        held.reached().await;
        crate::world::calm().await;
        assert_eq!(world.count("check a"), 1, "in the first run alone");
        held.release();
    });
    ended.expect(Outcome::Succeeded);
}

#[tokio::test]
async fn one_failed_read_does_not_keep_the_others_from_being_recorded() {
    let (world, state) = standing(&[thing("a"), thing("b").with("v", "1")]).await;
    world.when("read a-1", Goes::Wrong);
    world.drift("b-1", map(&[("v", "2")]));
    let ended = world.refresh(&state).go().await.expect(Outcome::Failed);
    assert_eq!(entry(&ended.state, "b").outputs["v"].as_str(), Some("2"));
}

#[tokio::test]
async fn a_resource_that_is_read_as_not_up_is_updated_by_the_next_run() {
    let (world, state) = standing(&[thing("a")]).await;
    world.when("read a-1", Goes::HalfWell);
    let refreshed = world.refresh(&state).go().await.expect(Outcome::Succeeded);
    world.mend();
    let ended = world.up(&refreshed.state, &[thing("a")]).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["update a-1"]);
}

#[tokio::test]
async fn a_function_that_refuses_its_arguments_fails_the_run() {
    let world = World::default();
    world.refuse_invokes();
    let ended = world.up(&Snapshot::default(), &[invoke("ask")]).go().await.expect(Outcome::Failed);
    assert!(ended.errors[0].contains("no such thing"), "{:?}", ended.errors);
}

#[tokio::test]
async fn a_check_that_refuses_inputs_ends_the_run_in_a_preview_too() {
    let world = World::default();
    world.when("check a", Goes::HalfWell);
    let ended = world.up(&Snapshot::default(), &[thing("a")]).preview().go().await.expect(Outcome::Failed);
    assert_eq!(ended.errors, ["a: property v: not allowed"]);
}

#[tokio::test]
async fn who_is_marked_is_replaced_without_a_question() {
    let (world, state) = standing(&[thing("a")]).await;
    let ended = world.up(&state, &[thing("a")]).replace("a").go().await.expect(Outcome::Succeeded);
    assert_eq!((ended.called("diff a"), ended.called("check a"), ended.changes().len()), (0, 1, 2));
}

#[tokio::test]
async fn a_reference_to_another_stack_that_pulumi_recorded_stays_as_it_was_read_and_goes_with_the_rest() {
    let (world, mut state) = standing(&[thing("a")]).await;
    let urn = |text: &str| format!("urn:pulumi:s::p::{text}").parse::<Urn>().unwrap();
    let mut provider = ResourceState::new(urn("pulumi:providers:pulumi::default"), true);
    provider.id = ResourceId::new("0");
    let mut reference = ResourceState::new(urn("pulumi:pulumi:StackReference::other"), true);
    (reference.id, reference.external) = (ResourceId::new("organization/p/other"), true);
    reference.provider = provider.as_provider_reference();
    state.resources.extend([Arc::new(provider), Arc::new(reference)]);
    let ended = world.refresh(&state).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.state.resources.len(), state.resources.len());
    world.destroy(&ended.state).go().await.expect(Outcome::Succeeded);
    assert!(world.booted().iter().all(|request| request.package != "pulumi"));
}
