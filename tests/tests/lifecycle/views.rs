//! Tests of views: entries that a provider publishes beside a resource. They stay with their resource and are deleted
//! with it, even if another provider published them.

use std::sync::Arc;

use engine::RegistrationResult;
use engine::events::{Outcome, StepOp};
use pulumi_proto::property::PropertyValue;
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;
use state::{ResourceState, Snapshot};

use crate::program::{PROJECT, STACK, Thing, thing};
use crate::run::entry;
use crate::standing;
use crate::world::{Goes, PARTS, RENEWAL, World, calm, map};

/// Returns a world with `a` and its dependent `b`, and a state with views of another provider: `a` has a view, which
/// has a child.
async fn viewed() -> (World, Snapshot) {
    let (world, mut state) = standing(&[thing("a").with("v", "1"), thing("b").of("v", "a")]).await;
    let owner = entry(&state, "a").urn.clone();
    let mut parent = owner.clone();
    for name in ["inside", "deeper"] {
        let mut view = ResourceState::new(Urn::new(STACK, PROJECT, Some(&parent), "cloud:index:View", name), true);
        view.parent = Some(parent);
        view.view_of = Some(owner.clone());
        parent = view.urn.clone();
        state.resources.push(Arc::new(view));
    }
    (world, state)
}

fn views(state: &Snapshot) -> Vec<&str> {
    state.resources.iter().filter(|state| state.view_of.is_some()).map(|state| state.urn.name()).collect()
}

/// Returns `a` with parts, and its dependent `b`.
fn with_parts(v: &str, parts: &str) -> [Thing; 2] {
    [thing("a").with("v", v).with(PARTS, parts), thing("b").of("v", "a")]
}

#[tokio::test]
async fn a_view_stays_with_its_resource() {
    let (world, state) = viewed().await;
    let ended = world.up(&state, &[thing("a").with("v", "2"), thing("b").of("v", "a")]).go().await;
    assert_eq!(views(&ended.expect(Outcome::Succeeded).state), ["inside", "deeper"]);
}

#[tokio::test]
async fn a_view_follows_its_resource_to_a_new_name() {
    let (world, state) = viewed().await;
    let program = [thing("c").with("v", "1").was("a"), thing("b").of("v", "c")];
    let ended = world.up(&state, &program).go().await.expect(Outcome::Succeeded);
    let owner = &entry(&ended.state, "c").urn;
    assert_eq!(entry(&ended.state, "inside").view_of.as_ref(), Some(owner));
    assert_eq!(entry(&ended.state, "deeper").view_of.as_ref(), Some(owner));
}

#[tokio::test]
async fn a_view_follows_what_an_import_supersedes_to_a_new_name() {
    let (world, state) = standing(&[thing("a").with("k", "1").with(PARTS, "x")]).await;
    world.add("there");
    // A superseded entry with the old name exists already.
    world.when("delete a-1", Goes::Wrong);
    let replaced = world.up(&state, &[thing("a").with("k", "2").with(PARTS, "x")]).go().await;
    let state = replaced.expect(Outcome::Failed).state;
    world.mend();
    let imported = thing("c").was("a").but(|goal| goal.import_id = ResourceId::new("there"));
    let ended = world.up(&state, &[imported]).go().await.expect(Outcome::Succeeded);
    assert_eq!((ended.changes().len(), ended.entries()), (2, vec!["there".to_owned()]));
}

#[tokio::test]
async fn a_view_is_neither_read_nor_deleted_and_goes_with_its_resource() {
    let (world, state) = standing(&with_parts("1", "x,y")).await;
    let ended = world.refresh(&state).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.calls.iter().filter(|call| call.verb == "read").count(), 2);
    let ended = world.destroy(&ended.state).go().await.expect(Outcome::Succeeded);
    assert_eq!((ended.changes().len(), ended.state.resources.len()), (2, 0));
}

#[tokio::test]
async fn the_views_of_what_is_gone_are_gone() {
    let (world, state) = viewed().await;
    world.when("read a-1", Goes::Gone);
    let ended = world.refresh(&state).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.entries(), ["b-1"]);
}

#[tokio::test]
async fn what_a_provider_publishes_is_told_as_steps_and_recorded_behind_its_resource() {
    let (world, state) = standing(&with_parts("1", "x,y")).await;
    let owner = entry(&state, "a");
    let x = entry(&state, "x");
    assert_eq!((x.view_of.as_ref(), x.parent.as_ref(), x.custom), (Some(&owner.urn), Some(&owner.urn), false));
    assert_eq!(x.outputs, Arc::new(map(&[("v", "1")])));

    let ended = world.up(&state, &with_parts("1", "x,y")).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.counts.get(&StepOp::Same), Some(&5), "{:?}: the stack, two things, two parts", ended.counts);
    assert_eq!(ended.state.resources, state.resources);

    let ended = world.up(&ended.state, &with_parts("2", "y,z")).go().await.expect(Outcome::Succeeded);
    let told: Vec<_> = ended.steps.iter().filter(|step| step.ends_with(['x', 'y', 'z'])).collect();
    assert_eq!(told, ["delete x", "update y", "create z"]);
    assert_eq!(views(&ended.state), ["y", "z"]);
    assert_eq!(entry(&ended.state, "y").outputs, Arc::new(map(&[("v", "2")])));
}

#[tokio::test]
async fn a_preview_tells_of_views_and_keeps_none() {
    let (world, state) = standing(&with_parts("1", "x")).await;
    let ended = world.up(&state, &with_parts("2", "x,y")).preview().go().await.expect(Outcome::Succeeded);
    assert!(ended.steps.contains(&"update x".to_owned()) && ended.steps.contains(&"create y".to_owned()));
    // A preview sends no Delete, so the engine reports the views itself.
    let ended = world.destroy(&state).preview().go().await.expect(Outcome::Succeeded);
    assert!(ended.steps.contains(&"delete x".to_owned()), "{:?}", ended.steps);
    assert_eq!(ended.counts.get(&StepOp::Delete), Some(&4));
}

#[tokio::test]
async fn a_view_that_fails_fails_the_run_and_what_hangs_on_its_resource_does_not_go_on() {
    let (world, state) = standing(&with_parts("1", "x")).await;
    world.when("part a.x", Goes::Wrong);
    let ended = world.up(&state, &with_parts("2", "x")).going_on().go().await.expect(Outcome::Failed);
    assert_eq!(ended.errors[0], "x: x went wrong");
    assert_eq!(ended.result("a"), RegistrationResult::Failed);
    assert_eq!(ended.result("b"), RegistrationResult::Skipped);
    // The resource is recorded with its new inputs, and the view unchanged.
    assert_eq!(entry(&ended.state, "a").inputs.get("v"), Some(&"2".into()));
    assert_eq!(entry(&ended.state, "x").outputs, Arc::new(map(&[("v", "1")])));

    world.mend().when("part a.x", Goes::HalfWell);
    let ended = world.up(&ended.state, &with_parts("3", "x")).go().await.expect(Outcome::Failed);
    assert_eq!(entry(&ended.state, "x").outputs, Arc::new(map(&[("v", "3")])), "it is there all the same");
}

#[tokio::test]
async fn a_delete_that_fails_leaves_the_views_that_are_left() {
    let (world, state) = standing(&with_parts("1", "x,y")).await;
    world.when("delete a-1", Goes::Wrong).when("part a.y", Goes::Wrong);
    let ended = world.destroy(&state).go().await.expect(Outcome::Failed);
    assert_eq!((ended.entries(), views(&ended.state)), (vec!["a-1".to_owned(), "y".to_owned()], vec!["y"]));
}

#[tokio::test]
async fn an_update_that_fails_adds_no_view_and_changes_those_that_are_there() {
    let (world, state) = standing(&with_parts("1", "x,y")).await;
    world.when("update a-1", Goes::Wrong);
    let ended = world.up(&state, &with_parts("2", "x,z")).go().await.expect(Outcome::Failed);
    assert_eq!(views(&ended.state), ["x"]);
    assert_eq!(entry(&ended.state, "x").outputs, Arc::new(map(&[("v", "2")])));
}

#[tokio::test]
async fn views_are_superseded_with_their_resource_and_go_with_it() {
    let program = |k| [thing("a").with("k", k).with(PARTS, "x,y"), thing("b").of("v", "a")];
    let (world, state) = standing(&program("1")).await;
    world.when("delete a-1", Goes::Wrong);
    let ended = world.up(&state, &program("2")).go().await.expect(Outcome::Failed);
    world.mend();
    // The provider reports the old views as deleted, although its Delete failed.
    assert_eq!(ended.entries(), ["a-2", "x", "y", "b-1", "a-1 (delete)"]);
    let ended = world.up(&ended.state, &program("3")).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.entries(), ["a-3", "x", "y", "b-1"]);
}

#[tokio::test]
async fn views_go_before_the_replacement_of_their_resource_where_that_does() {
    let program = |d| [thing("a").with("d", d).with(PARTS, "x"), thing("b").of("v", "a")];
    let (world, state) = standing(&program("1")).await;
    world.when("create a", Goes::Wrong);
    let ended = world.up(&state, &program("2")).go().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["a-1 (owed)", "b-1"]);
    world.mend();
    let ended = world.up(&ended.state, &program("2")).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.entries(), ["a-2", "x", "b-1"]);
}

#[tokio::test]
async fn a_view_that_is_replaced_is_there_once_whichever_half_comes_first() {
    for (way, told) in [
        ("first", ["create-replacement x", "replace x", "delete-replaced x"]),
        ("last", ["delete-replaced x", "replace x", "create-replacement x"]),
    ] {
        let (world, state) = standing(&with_parts("1", "x")).await;
        let program =
            with_parts("2", "x").map(|thing| if thing.name == "a" { thing.with(RENEWAL, way) } else { thing });
        let ended = world.up(&state, &program).go().await.expect(Outcome::Succeeded);
        let steps: Vec<_> = ended.steps.iter().filter(|step| step.ends_with(" x")).collect();
        assert_eq!(steps, told);
        assert_eq!(views(&ended.state), ["x"]);
        assert_eq!(entry(&ended.state, "x").outputs, Arc::new(map(&[("v", "2")])));
        assert_eq!(ended.counts.get(&StepOp::Replace), Some(&1));
    }
}

#[tokio::test]
async fn a_refresh_takes_what_is_read_of_views_that_are_recorded() {
    let (world, state) = standing(&with_parts("1", "x,y")).await;
    world.drift("a-1", map(&[("v", "7"), (PARTS, "y,z")]));
    for run in [world.refresh(&state), world.refresh_with(&state, &with_parts("1", "x,y"))] {
        let ended = run.go().await.expect(Outcome::Succeeded);
        assert_eq!(views(&ended.state), ["y"], "a new one is added by what is done next");
        assert_eq!(entry(&ended.state, "y").outputs, Arc::new(map(&[("v", "7")])));
        assert_eq!(ended.counts.get(&StepOp::Delete), Some(&1));
    }
}

#[tokio::test]
async fn a_view_survives_a_crash_with_its_resource_or_not_at_all() {
    let world = World::default();
    let ended = world.up(&Snapshot::default(), &with_parts("1", "x")).go().await.expect(Outcome::Succeeded);
    for state in &ended.prefixes {
        let there = |name: &str| state.resources.iter().any(|state| state.urn.name() == name);
        assert_eq!(there("x"), there("a"));
    }
}

#[tokio::test]
async fn a_view_under_the_name_of_another_one_is_not_recorded() {
    let program = [thing("a").with(PARTS, "x"), thing("b").after("a").with(PARTS, "x,y")];
    let (world, state) = standing(&program).await;
    assert_eq!((views(&state), entry(&state, "x").view_of.as_ref()), (vec!["x", "y"], Some(&entry(&state, "a").urn)));
    world.destroy(&state).go().await.expect(Outcome::Succeeded);
}

#[tokio::test]
async fn the_views_of_a_copy_stay_with_it_whatever_it_is_called() {
    let (world, state) = standing(&[thing("a").with("k", "1").with(PARTS, "x")]).await;
    world.when("delete a-1", Goes::Wrong).when("part a.x", Goes::Wrong);
    let ended = world.up(&state, &[thing("c").with("k", "2").was("a")]).go().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["c-1", "a-1 (delete)", "x (delete)"]);
    let ended = world.mend().up(&ended.state, &[]).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.entries(), [""; 0]);
}

#[tokio::test]
async fn a_resource_that_is_renamed_and_replaced_has_its_views_again() {
    for key in ["k", "d", "v"] {
        let (world, state) = standing(&[thing("a").with(key, "1").with(PARTS, "x")]).await;
        let program = [thing("c").with(key, "2").with(PARTS, "x,y").was("a")];
        let ended = world.up(&state, &program).go().await.expect(Outcome::Succeeded);
        assert_eq!(views(&ended.state), ["x", "y"], "{key}");
        let owner = &entry(&ended.state, "c").urn;
        assert!(["x", "y"].iter().all(|part| entry(&ended.state, part).view_of.as_ref() == Some(owner)), "{key}");
    }
}

#[tokio::test]
async fn a_part_that_one_resource_drops_another_one_may_show() {
    let program = |a: &str, b: &str| [thing("a").with(PARTS, a), thing("b").after("a").with(PARTS, b)];
    let (world, state) = standing(&program("x", "")).await;
    let ended = world.up(&state, &program("", "x")).go().await.expect(Outcome::Succeeded);
    assert_eq!(entry(&ended.state, "x").view_of.as_ref(), Some(&entry(&ended.state, "b").urn));
}

#[tokio::test]
async fn no_resource_is_registered_under_the_name_of_a_view() {
    let (world, state) = standing(&with_parts("1", "x")).await;
    let [a, b] = with_parts("1", "x");
    let program = [a, b, thing("x").of_type("Part").within("a")];
    let ended = world.up(&state, &program).go().await.expect(Outcome::Failed);
    let words = "is the name of a view that the provider of urn:pulumi:s::p::cloud:index:Thing::a shows";
    assert!(ended.errors.iter().any(|error| error.contains(words)), "{:?}", ended.errors);
    assert_eq!(views(&ended.state), ["x"]);
}

#[tokio::test]
async fn an_output_of_a_view_is_secret_where_its_input_of_that_name_is() {
    let secret = PropertyValue::secret("hush".into());
    let (_, state) = standing(&[thing("a").with("v", secret.clone()).with(PARTS, "x")]).await;
    let x = entry(&state, "x");
    assert_eq!((x.inputs.get("v"), x.outputs.get("v")), (Some(&secret), Some(&secret)));
}

#[tokio::test]
async fn what_is_within_a_view_goes_with_it() {
    let (world, mut state) = standing(&with_parts("1", "x")).await;
    let (owner, x) = (entry(&state, "a").urn.clone(), entry(&state, "x").urn.clone());
    let mut inner = ResourceState::new(Urn::new(STACK, PROJECT, Some(&x), "cloud:index:View", "inner"), false);
    (inner.parent, inner.view_of) = (Some(x), Some(owner));
    state.resources.push(Arc::new(inner));
    let ended = world.up(&state, &with_parts("2", "x")).go().await.expect(Outcome::Succeeded);
    assert_eq!(views(&ended.state), ["x", "inner"]);
    let ended = world.up(&ended.state, &with_parts("2", "y")).go().await.expect(Outcome::Succeeded);
    assert_eq!(views(&ended.state), ["y"]);
}

#[tokio::test]
async fn a_superseded_view_goes_with_the_last_of_its_resource() {
    let (world, mut state) = standing(&with_parts("1", "x")).await;
    let view = state.resources.iter_mut().find(|state| state.view_of.is_some()).unwrap();
    Arc::make_mut(view).delete = true;
    let ended = world.destroy(&state).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.entries(), [""; 0]);
}

#[tokio::test]
async fn a_view_that_cannot_be_read_holds_nothing_up_but_fails_the_run() {
    let (world, state) = standing(&with_parts("1", "x")).await;
    world.when("part a.x", Goes::Wrong);
    let ended = world.up(&state, &with_parts("1", "x")).refreshing().going_on().go().await.expect(Outcome::Failed);
    assert_eq!((ended.result("a"), ended.result("b")), (RegistrationResult::Succeeded, RegistrationResult::Succeeded));
}

#[tokio::test]
async fn what_a_preview_tells_of_views_the_run_does() {
    let program = |k, parts| [thing("a").with("k", k).with(PARTS, parts), thing("b").with(PARTS, "z").protected()];
    let (world, state) = standing(&program("1", "x")).await;
    let replaced = program("2", "x,y");
    let told = world.up(&state, &replaced).preview().go().await.expect(Outcome::Succeeded);
    let ended = world.up(&state, &replaced).go().await.expect(Outcome::Succeeded);
    assert_eq!(told.counts, ended.counts);
    // A protected resource stays, and so do its views.
    let told = world.destroy(&ended.state).preview().go().await.expect(Outcome::Failed);
    assert!(!told.steps.contains(&"delete z".to_owned()), "{:?}", told.steps);
}

#[tokio::test]
async fn what_is_not_recorded_does_not_count() {
    let world = World::default();
    world.when("create a", Goes::Wrong);
    let ended = world.up(&Snapshot::default(), &with_parts("1", "x")).go().await.expect(Outcome::Failed);
    assert_eq!((ended.counts.get(&StepOp::Create), views(&ended.state).len()), (Some(&1), 0), "the stack alone");
}

#[tokio::test]
async fn a_view_that_gets_a_new_name_while_its_resource_is_read_is_there_once() {
    let (world, state) = standing(&[thing("c"), thing("d").within("c").with(PARTS, "x")]).await;
    let was = entry(&state, "d").urn.clone();
    let parent = thing("c").of_type("OtherThing").was_all("c", "Thing", None);
    let program = [parent, thing("d").was_urn(was).with(PARTS, "x")];
    let held = world.hold("read d-1");
    let run = tokio::spawn(world.refresh_with(&state, &program).with_program().go());
    held.reached().await;
    calm().await;
    held.release();
    let ended = run.await.expect("it does not panic").expect(Outcome::Succeeded);
    assert_eq!(views(&ended.state), ["x"]);
}
