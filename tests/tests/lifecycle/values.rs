//! Tests of secrets, unknowns, functions, and refreshed values.

use std::sync::Arc;

use engine::events::{Outcome, StepOp};
use engine::masking::MASK;
use pulumi_proto::property::PropertyValue;
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;
use state::{ResourceState, Snapshot};

use crate::deploy;
use crate::fake_cloud::{CHECKED_SECRET, CallFailure, FakeCloud, REFRESH_BEFORE_UPDATE, map};
use crate::program::{invoke, provider, resource};
use crate::run::{EndedRun, Run, entry};

#[tokio::test]
async fn output_is_secret_with_its_input_or_additional_secret_outputs() {
    let cloud = FakeCloud::default();
    let secret = PropertyValue::secret("x".into());
    let program = [resource("a")
        .input("v", secret.clone())
        .input("list", vec![secret])
        .input("w", "1")
        .edit_goal(|goal| goal.additional_secret_outputs = vec!["id".to_owned(), "w".to_owned()])];
    let ended = cloud.up(&Snapshot::default(), &program).run().await.expect(Outcome::Succeeded);
    let outputs = &entry(&ended.state, "a").outputs;
    assert!(outputs["v"].is_secret() && outputs["w"].is_secret() && !outputs["id"].is_secret());
    assert!(!outputs["list"].is_secret() && outputs["list"].contains_secrets());
}

#[tokio::test]
async fn output_named_id_is_secret_with_its_input() {
    let program = [resource("a").input("id", PropertyValue::secret("x".into()))];
    let ended = FakeCloud::default().up(&Snapshot::default(), &program).run().await.expect(Outcome::Succeeded);
    assert!(entry(&ended.state, "a").outputs["id"].is_secret());
}

#[tokio::test]
async fn value_becoming_secret_is_recorded_without_update() {
    let (cloud, state) = deploy(&[resource("a").input("v", "1")]).await;
    let program = [resource("a").input("v", PropertyValue::secret("1".into()))];
    let ended = cloud.up(&state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0]);
    assert!(entry(&ended.state, "a").outputs["v"].is_secret());
}

#[tokio::test]
async fn secret_output_stays_secret_after_refresh() {
    let program =
        [resource("a").input("w", "1").edit_goal(|goal| goal.additional_secret_outputs = vec!["w".to_owned()])];
    let (cloud, state) = deploy(&program).await;
    cloud.drift("a-1", map(&[("w", "2")]));
    let ended = cloud.refresh(&state).run().await.expect(Outcome::Succeeded);
    let outputs = &entry(&ended.state, "a").outputs;
    assert_eq!(outputs["w"], PropertyValue::secret("2".into()));
    assert_eq!(ended.counts[&StepOp::Update], 1);
}

/// Shows: plugin-authoring.md#calls "the requests of `Check`, `Diff`, `Create` and `Update` contain values that are not
///   known yet"
#[tokio::test]
async fn unknown_input_is_sent_as_unknown_in_preview() {
    let cloud = FakeCloud::default();
    let program = [resource("a"), resource("b").input_from("v", "a")];
    let ended = cloud.up(&Snapshot::default(), &program).preview().run().await.expect(Outcome::Succeeded);
    let sent = ended.calls.iter().find(|call| call.text() == "preview b").unwrap();
    assert!(sent.news["v"].contains_unknowns());
}

#[tokio::test]
async fn reply_has_all_outputs_unless_a_preview_would_change_the_resource() {
    let program = |v: &str| [resource("same").input("v", "1"), resource("changed").input("v", v)];
    let (cloud, state) = deploy(&program("1")).await;
    let [same, changed] = program("2");
    let program = [same, changed, resource("new")];
    let run = || cloud.up(&state, &program);
    for (run, expected) in [
        (run().preview(), [true, false, false]),
        (run().preview().target("new"), [true, true, false]),
        (run(), [true, true, true]),
    ] {
        let ended = run.run().await.expect(Outcome::Succeeded);
        assert_eq!(["same", "changed", "new"].map(|name| ended.registered(name).has_all_outputs), expected);
    }
}

/// Shows: engine.md#registration "A provider whose own configuration is unknown is not called."
#[tokio::test]
async fn unknown_provider_configuration_prevents_calls_in_preview() {
    let cloud = FakeCloud::default();
    let program = [resource("a"), provider("p").input_from("v", "a"), resource("b").provider("p")];
    let ended = cloud.up(&Snapshot::default(), &program).preview().run().await.expect(Outcome::Succeeded);
    assert_eq!(
        (ended.call_count("configure p"), ended.call_count("check b"), ended.call_count("preview b")),
        (0, 0, 0)
    );
}

#[tokio::test]
async fn diff_of_possible_dependent_replacement_has_unknown_inputs() {
    let program = |d: &str| [resource("a").input("d", d), resource("b").input_from("v", "a").input("w", "1")];
    let (cloud, state) = deploy(&program("1")).await;
    let ended = cloud.up(&state, &program("2")).run().await.expect(Outcome::Succeeded);
    let diff = ended.calls.iter().find(|call| call.text() == "diff b").unwrap();
    assert!(diff.news["v"].contains_unknowns() && !diff.news["w"].contains_unknowns());
    assert_eq!(ended.changes(), ["delete a-1", "create a", "update b-1"]);
}

#[tokio::test]
async fn resource_missing_in_refresh_is_removed_and_created_again() {
    let program = [resource("a"), resource("b").input_from("v", "a")];
    let (cloud, state) = deploy(&program).await;
    cloud.fail("read a-1", CallFailure::Missing);
    let refreshed = cloud.refresh(&state).run().await.expect(Outcome::Succeeded);
    assert_eq!(refreshed.entries(), ["b-1"]);
    assert_eq!(entry(&refreshed.state, "b").dependencies.len(), 0);
    cloud.clear_failures();
    let ended = cloud.up(&refreshed.state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["create a", "update b-1"]);
}

/// Shows: engine.md#refresh "In an update with a refresh, registrations wait until the refresh is done."
#[tokio::test]
async fn registrations_wait_for_the_end_of_refresh() {
    let (cloud, state) = deploy(&[resource("a"), resource("b")]).await;
    let held = cloud.hold("read b-1");
    let run = cloud.up(&state, &[resource("a"), resource("b")]).refresh_first().run();
    let (ended, ()) = tokio::join!(run, async {
        held.reached().await;
        crate::fake_cloud::yield_until_idle().await;
        assert_eq!(cloud.call_count("check a"), 1, "in the first run alone");
        held.release();
    });
    ended.expect(Outcome::Succeeded);
}

#[tokio::test]
async fn failed_read_does_not_prevent_other_reads_from_being_recorded() {
    let (cloud, state) = deploy(&[resource("a"), resource("b").input("v", "1")]).await;
    cloud.fail("read a-1", CallFailure::Error);
    cloud.drift("b-1", map(&[("v", "2")]));
    let ended = cloud.refresh(&state).run().await.expect(Outcome::Failed);
    assert_eq!(entry(&ended.state, "b").outputs["v"].as_str(), Some("2"));
}

#[tokio::test]
async fn resource_read_with_init_errors_is_updated_by_next_run() {
    let (cloud, state) = deploy(&[resource("a")]).await;
    cloud.fail("read a-1", CallFailure::Partial);
    let refreshed = cloud.refresh(&state).run().await.expect(Outcome::Succeeded);
    cloud.clear_failures();
    let ended = cloud.up(&refreshed.state, &[resource("a")]).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["update a-1"]);
}

/// Shows: engine.md#differences-from-pulumi "The errors of a failed initialization stay recorded, also if a refresh
///   reads the resource without them, until a Create or an Update of it succeeds. Each run updates the resource until
///   then."
#[tokio::test]
async fn resource_that_failed_to_initialize_is_updated_after_each_kind_of_refresh() {
    let program = [resource("a").input(REFRESH_BEFORE_UPDATE, "1")];
    let cloud = FakeCloud::default();
    cloud.fail("create a", CallFailure::Partial);
    let failed = cloud.up(&Snapshot::default(), &program).run().await.expect(Outcome::Failed);
    cloud.clear_failures();
    let states = [
        failed.state.clone(),
        cloud.refresh(&failed.state).run().await.expect(Outcome::Succeeded).state,
        cloud.refresh_with(&failed.state, &program).run().await.expect(Outcome::Succeeded).state,
    ];
    for state in states {
        assert!(!entry(&state, "a").init_errors.is_empty());
        let runs =
            [cloud.up(&state, &program), cloud.up(&state, &program).refresh_first()].map(Run::preview).into_iter();
        for preview in runs.chain([cloud.up(&state, &program).refresh_first().run_program().preview()]) {
            let ended = preview.run().await.expect(Outcome::Succeeded);
            assert_eq!(ended.counts.get(&StepOp::Update), Some(&1));
            assert!(ended.notices.iter().any(|text| text.contains("not ready")), "{:?}", ended.notices);
        }
    }
    let ended = cloud.up(&failed.state, &program).refresh_first().run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["update a-1"]);
    assert_eq!(entry(&ended.state, "a").init_errors, [""; 0]);
    let ended = cloud.up(&ended.state, &program).refresh_first().run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0]);
}

#[tokio::test]
async fn dependents_of_a_resource_that_failed_to_initialize_wait_until_its_update_succeeds() {
    let program = [resource("a"), resource("b").input_from("v", "a")];
    let cloud = FakeCloud::default();
    cloud.fail("create a", CallFailure::Partial).fail("update a-1", CallFailure::Partial);
    let ended = cloud.up(&Snapshot::default(), &program).run().await.expect(Outcome::Failed);
    let ended = cloud.up(&ended.state, &program).refresh_first().run().await.expect(Outcome::Failed);
    assert_eq!(ended.changes(), ["update a-1"]);
    cloud.clear_failures();
    let ended = cloud.up(&ended.state, &program).refresh_first().run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["update a-1", "create b"]);
}

/// Shows: state.md#secrets "Secrets in them are masked in all usual spellings before they are recorded."
#[tokio::test]
async fn recorded_init_errors_contain_no_secret() {
    let secret = "pass\"word\nand its second line";
    let resource = |v| resource("a").input("v", v).input("token", PropertyValue::secret(secret.into()));
    let (cloud, state) = deploy(&[resource("1")]).await;
    let check = |ended: EndedRun| {
        let entry = entry(&ended.state, "a");
        assert!(entry.init_errors[0].contains("[secret]"), "{:?}", entry.init_errors);
        for state in ended.crash_states.iter().chain([&ended.state]).flat_map(|state| &state.resources) {
            assert!(!state.init_errors.concat().contains("second line"), "{:?}", state.init_errors);
        }
    };
    cloud.fail("read a-1", CallFailure::Partial);
    check(cloud.refresh(&state).run().await.expect(Outcome::Succeeded));
    cloud.fail("update a-1", CallFailure::Partial);
    check(cloud.up(&state, &[resource("2")]).run().await.expect(Outcome::Failed));
    let cloud = FakeCloud::default();
    cloud.fail("create a", CallFailure::Partial);
    check(cloud.up(&Snapshot::default(), &[resource("1")]).run().await.expect(Outcome::Failed));
}

#[tokio::test]
async fn secret_that_is_read_together_with_an_error_is_masked_in_its_message() {
    let (cloud, state) = deploy(&[resource("a").input("v", "1")]).await;
    cloud.drift("a-1", [("v".to_owned(), PropertyValue::secret("hush-hush".into()))].into());
    cloud.fail("read a-1", CallFailure::Partial);
    let ended = cloud.refresh(&state).run().await.expect(Outcome::Succeeded);
    let is_about_read = |text: &&String| text.contains("did not come up");
    let warning = ended.warnings.iter().find(is_about_read).unwrap();
    assert!(warning.contains("[secret]") && !warning.contains("hush-hush"), "{warning}");
}

#[tokio::test]
async fn secret_that_was_read_before_a_failed_diff_is_masked() {
    let (cloud, state) = deploy(&[resource("a").input("v", "1")]).await;
    cloud.drift("a-1", [("v".to_owned(), PropertyValue::secret("hush-hush".into()))].into());
    cloud.fail("diff a", CallFailure::Error);
    let ended = cloud.refresh(&state).run().await.expect(Outcome::Failed);
    assert_eq!(ended.masker.mask("hush-hush"), MASK);
}

#[tokio::test]
async fn secret_that_check_returned_before_a_failed_diff_is_masked() {
    let resource = |secret: &str| resource("a").input(CHECKED_SECRET, secret);
    let (cloud, state) = deploy(&[resource("hush-one")]).await;
    cloud.fail("diff a", CallFailure::Error);
    let ended = cloud.up(&state, &[resource("hush-two")]).run().await.expect(Outcome::Failed);
    assert_eq!(ended.masker.mask("hush-two"), MASK);
}

#[tokio::test]
async fn secret_output_of_a_resource_that_is_not_recorded_is_masked() {
    let cloud = FakeCloud::default();
    cloud.fail("create a", CallFailure::PartialWithoutId);
    let ended = cloud.up(&Snapshot::default(), &[resource("a")]).run().await.expect(Outcome::Failed);
    assert!(ended.errors.concat().contains(MASK), "{:?}", ended.errors);
}

#[tokio::test]
async fn secrets_of_the_whole_stack_are_masked_in_init_errors() {
    let a = || resource("a").input("token", PropertyValue::secret("hush-hush".into()));
    let (cloud, state) = deploy(&[a()]).await;
    cloud.fail("create b", CallFailure::Partial);
    let program = [a(), resource("b").input("v", "the token hush-hush is invalid")];
    let ended = cloud.up(&state, &program).run().await.expect(Outcome::Failed);
    assert!(entry(&ended.state, "b").init_errors[0].contains("the token [secret] is invalid"));
}

#[tokio::test]
async fn invoke_check_failure_fails_the_run() {
    let cloud = FakeCloud::default();
    cloud.reject_invokes();
    let ended = cloud.up(&Snapshot::default(), &[invoke("ask")]).run().await.expect(Outcome::Failed);
    assert!(ended.errors[0].contains("not found"), "{:?}", ended.errors);
}

#[tokio::test]
async fn check_failure_ends_the_run_in_preview() {
    let cloud = FakeCloud::default();
    cloud.fail("check a", CallFailure::Partial);
    let ended = cloud.up(&Snapshot::default(), &[resource("a")]).preview().run().await.expect(Outcome::Failed);
    assert_eq!(ended.errors, ["a: property v: not allowed"]);
}

#[tokio::test]
async fn replace_option_replaces_without_diff() {
    let (cloud, state) = deploy(&[resource("a")]).await;
    let ended = cloud.up(&state, &[resource("a")]).replace("a").run().await.expect(Outcome::Succeeded);
    assert_eq!((ended.call_count("diff a"), ended.call_count("check a"), ended.changes().len()), (0, 1, 2));
}

#[tokio::test]
async fn recorded_stack_reference_is_not_refreshed_and_is_removed_by_destroy() {
    let (cloud, mut state) = deploy(&[resource("a")]).await;
    let urn = |text: &str| format!("urn:pulumi:s::p::{text}").parse::<Urn>().unwrap();
    let mut provider = ResourceState::new(urn("pulumi:providers:pulumi::default"), true);
    provider.id = ResourceId::new("0");
    let mut reference = ResourceState::new(urn("pulumi:pulumi:StackReference::other"), true);
    (reference.id, reference.external) = (ResourceId::new("organization/p/other"), true);
    reference.provider = provider.as_provider_reference();
    state.resources.extend([Arc::new(provider), Arc::new(reference)]);
    let ended = cloud.refresh(&state).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.state.resources.len(), state.resources.len());
    cloud.destroy(&ended.state).run().await.expect(Outcome::Succeeded);
    assert!(cloud.booted().iter().all(|request| request.package != "pulumi"));
}
