//! Tests of views: entries that a provider publishes beside a resource. They stay with their resource and are deleted
//! with it, even if another provider published them.

use std::sync::Arc;

use engine::RegistrationResult;
use engine::events::{Outcome, StepOp};
use pulumi_proto::property::PropertyValue;
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;
use state::{ResourceState, Snapshot};

use crate::deploy;
use crate::fake_cloud::{CallFailure, FakeCloud, REPLACE_VIEWS, VIEWS, map, yield_until_idle};
use crate::program::{PROJECT, ProgramResource, STACK, resource};
use crate::run::entry;

/// Returns a fake cloud with `a` and its dependent `b`, and a state with views of another provider: `a` has a view with
/// a child.
async fn deploy_with_foreign_views() -> (FakeCloud, Snapshot) {
    let (cloud, mut state) = deploy(&[resource("a").input("v", "1"), resource("b").input_from("v", "a")]).await;
    let owner = entry(&state, "a").urn.clone();
    let mut parent = owner.clone();
    for name in ["inside", "deeper"] {
        let mut view = ResourceState::new(Urn::new(STACK, PROJECT, Some(&parent), "cloud:index:View", name), true);
        view.parent = Some(parent);
        view.view_of = Some(owner.clone());
        parent = view.urn.clone();
        state.resources.push(Arc::new(view));
    }
    (cloud, state)
}

fn views(state: &Snapshot) -> Vec<&str> {
    state.resources.iter().filter(|state| state.view_of.is_some()).map(|state| state.urn.name()).collect()
}

/// Returns a program with the resource `a`, which has views, and its dependent `b`.
fn program_with_views(v: &str, names: &str) -> [ProgramResource; 2] {
    [resource("a").input("v", v).input(VIEWS, names), resource("b").input_from("v", "a")]
}

#[tokio::test]
async fn view_is_kept_with_its_resource() {
    let (cloud, state) = deploy_with_foreign_views().await;
    let ended = cloud.up(&state, &[resource("a").input("v", "2"), resource("b").input_from("v", "a")]).run().await;
    assert_eq!(views(&ended.expect(Outcome::Succeeded).state), ["inside", "deeper"]);
}

#[tokio::test]
async fn view_follows_rename_of_its_resource() {
    let (cloud, state) = deploy_with_foreign_views().await;
    let program = [resource("c").input("v", "1").alias("a"), resource("b").input_from("v", "c")];
    let ended = cloud.up(&state, &program).run().await.expect(Outcome::Succeeded);
    let owner = &entry(&ended.state, "c").urn;
    assert_eq!(entry(&ended.state, "inside").view_of.as_ref(), Some(owner));
    assert_eq!(entry(&ended.state, "deeper").view_of.as_ref(), Some(owner));
}

#[tokio::test]
async fn view_follows_rename_of_resource_replaced_by_import() {
    let (cloud, state) = deploy(&[resource("a").input("k", "1").input(VIEWS, "x")]).await;
    cloud.add("there");
    // A pending delete with the old name exists already.
    cloud.fail("delete a-1", CallFailure::Error);
    let replaced = cloud.up(&state, &[resource("a").input("k", "2").input(VIEWS, "x")]).run().await;
    let state = replaced.expect(Outcome::Failed).state;
    cloud.clear_failures();
    let imported = resource("c").alias("a").edit_goal(|goal| goal.import_id = ResourceId::new("there"));
    let ended = cloud.up(&state, &[imported]).run().await.expect(Outcome::Succeeded);
    assert_eq!((ended.changes().len(), ended.entries()), (2, vec!["there".to_owned()]));
}

#[tokio::test]
async fn view_is_not_read_or_deleted_by_itself() {
    let (cloud, state) = deploy(&program_with_views("1", "x,y")).await;
    let ended = cloud.refresh(&state).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.calls.iter().filter(|call| call.verb == "read").count(), 2);
    let ended = cloud.destroy(&ended.state).run().await.expect(Outcome::Succeeded);
    assert_eq!((ended.changes().len(), ended.state.resources.len()), (2, 0));
}

#[tokio::test]
async fn views_of_missing_resource_are_removed() {
    let (cloud, state) = deploy_with_foreign_views().await;
    cloud.fail("read a-1", CallFailure::Missing);
    let ended = cloud.refresh(&state).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.entries(), ["b-1"]);
}

#[tokio::test]
async fn published_views_are_reported_as_steps_and_recorded() {
    let (cloud, state) = deploy(&program_with_views("1", "x,y")).await;
    let owner = entry(&state, "a");
    let x = entry(&state, "x");
    assert_eq!((x.view_of.as_ref(), x.parent.as_ref(), x.custom), (Some(&owner.urn), Some(&owner.urn), false));
    assert_eq!(x.outputs, Arc::new(map(&[("v", "1")])));

    let ended = cloud.up(&state, &program_with_views("1", "x,y")).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.counts.get(&StepOp::Same), Some(&5), "{:?}: the stack, two resources, two views", ended.counts);
    assert_eq!(ended.state.resources, state.resources);

    let ended = cloud.up(&ended.state, &program_with_views("2", "y,z")).run().await.expect(Outcome::Succeeded);
    let steps: Vec<_> = ended.steps.iter().filter(|step| step.ends_with(['x', 'y', 'z'])).collect();
    assert_eq!(steps, ["delete x", "update y", "create z"]);
    assert_eq!(views(&ended.state), ["y", "z"]);
    assert_eq!(entry(&ended.state, "y").outputs, Arc::new(map(&[("v", "2")])));
}

#[tokio::test]
async fn preview_reports_views_and_records_none() {
    let (cloud, state) = deploy(&program_with_views("1", "x")).await;
    let ended = cloud.up(&state, &program_with_views("2", "x,y")).preview().run().await.expect(Outcome::Succeeded);
    assert!(ended.steps.contains(&"update x".to_owned()) && ended.steps.contains(&"create y".to_owned()));
    // A preview sends no Delete, so the engine reports the views itself.
    let ended = cloud.destroy(&state).preview().run().await.expect(Outcome::Succeeded);
    assert!(ended.steps.contains(&"delete x".to_owned()), "{:?}", ended.steps);
    assert_eq!(ended.counts.get(&StepOp::Delete), Some(&4));
}

#[tokio::test]
async fn failed_view_fails_its_resource_and_skips_dependents() {
    let (cloud, state) = deploy(&program_with_views("1", "x")).await;
    cloud.fail("view a.x", CallFailure::Error);
    let ended = cloud.up(&state, &program_with_views("2", "x")).continue_on_error().run().await.expect(Outcome::Failed);
    assert_eq!(ended.errors[0], "x: x went wrong");
    assert_eq!(ended.result("a"), RegistrationResult::Failed);
    assert_eq!(ended.result("b"), RegistrationResult::Skipped);
    // The resource is recorded with its new inputs, and the view unchanged.
    assert_eq!(entry(&ended.state, "a").inputs.get("v"), Some(&"2".into()));
    assert_eq!(entry(&ended.state, "x").outputs, Arc::new(map(&[("v", "1")])));

    cloud.clear_failures().fail("view a.x", CallFailure::Partial);
    let ended = cloud.up(&ended.state, &program_with_views("3", "x")).run().await.expect(Outcome::Failed);
    assert_eq!(
        entry(&ended.state, "x").outputs,
        Arc::new(map(&[("v", "3")])),
        "the view is recorded in spite of the failure"
    );
}

#[tokio::test]
async fn failed_delete_keeps_remaining_views() {
    let (cloud, state) = deploy(&program_with_views("1", "x,y")).await;
    cloud.fail("delete a-1", CallFailure::Error).fail("view a.y", CallFailure::Error);
    let ended = cloud.destroy(&state).run().await.expect(Outcome::Failed);
    assert_eq!((ended.entries(), views(&ended.state)), (vec!["a-1".to_owned(), "y".to_owned()], vec!["y"]));
}

#[tokio::test]
async fn failed_update_adds_no_view_and_updates_recorded_views() {
    let (cloud, state) = deploy(&program_with_views("1", "x,y")).await;
    cloud.fail("update a-1", CallFailure::Error);
    let ended = cloud.up(&state, &program_with_views("2", "x,z")).run().await.expect(Outcome::Failed);
    assert_eq!(views(&ended.state), ["x"]);
    assert_eq!(entry(&ended.state, "x").outputs, Arc::new(map(&[("v", "2")])));
}

#[tokio::test]
async fn views_of_pending_delete_entry_are_removed_with_it() {
    let program = |k| [resource("a").input("k", k).input(VIEWS, "x,y"), resource("b").input_from("v", "a")];
    let (cloud, state) = deploy(&program("1")).await;
    cloud.fail("delete a-1", CallFailure::Error);
    let ended = cloud.up(&state, &program("2")).run().await.expect(Outcome::Failed);
    cloud.clear_failures();
    // The provider reports the old views as deleted, although its Delete failed.
    assert_eq!(ended.entries(), ["a-2", "x", "y", "b-1", "a-1 (delete)"]);
    let ended = cloud.up(&ended.state, &program("3")).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.entries(), ["a-3", "x", "y", "b-1"]);
}

#[tokio::test]
async fn delete_before_replace_removes_views_first() {
    let program = |d| [resource("a").input("d", d).input(VIEWS, "x"), resource("b").input_from("v", "a")];
    let (cloud, state) = deploy(&program("1")).await;
    cloud.fail("create a", CallFailure::Error);
    let ended = cloud.up(&state, &program("2")).run().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["a-1 (pending replacement)", "b-1"]);
    cloud.clear_failures();
    let ended = cloud.up(&ended.state, &program("2")).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.entries(), ["a-2", "x", "b-1"]);
}

#[tokio::test]
async fn replaced_view_is_recorded_once_in_either_order() {
    for (order, expected) in [
        ("first", ["create-replacement x", "replace x", "delete-replaced x"]),
        ("last", ["delete-replaced x", "replace x", "create-replacement x"]),
    ] {
        let (cloud, state) = deploy(&program_with_views("1", "x")).await;
        let program = program_with_views("2", "x")
            .map(|resource| if resource.name == "a" { resource.input(REPLACE_VIEWS, order) } else { resource });
        let ended = cloud.up(&state, &program).run().await.expect(Outcome::Succeeded);
        let steps: Vec<_> = ended.steps.iter().filter(|step| step.ends_with(" x")).collect();
        assert_eq!(steps, expected);
        assert_eq!(views(&ended.state), ["x"]);
        assert_eq!(entry(&ended.state, "x").outputs, Arc::new(map(&[("v", "2")])));
        assert_eq!(ended.counts.get(&StepOp::Replace), Some(&1));
    }
}

#[tokio::test]
async fn refresh_updates_and_removes_only_recorded_views() {
    let (cloud, state) = deploy(&program_with_views("1", "x,y")).await;
    cloud.drift("a-1", map(&[("v", "7"), (VIEWS, "y,z")]));
    for run in [cloud.refresh(&state), cloud.refresh_with(&state, &program_with_views("1", "x,y"))] {
        let ended = run.run().await.expect(Outcome::Succeeded);
        assert_eq!(views(&ended.state), ["y"], "a new view is added by the next update");
        assert_eq!(entry(&ended.state, "y").outputs, Arc::new(map(&[("v", "7")])));
        assert_eq!(ended.counts.get(&StepOp::Delete), Some(&1));
    }
}

#[tokio::test]
async fn view_and_resource_are_recorded_atomically() {
    let cloud = FakeCloud::default();
    let ended = cloud.up(&Snapshot::default(), &program_with_views("1", "x")).run().await.expect(Outcome::Succeeded);
    for state in &ended.crash_states {
        let is_recorded = |name: &str| state.resources.iter().any(|state| state.urn.name() == name);
        assert_eq!(is_recorded("x"), is_recorded("a"));
    }
}

#[tokio::test]
async fn view_with_urn_of_another_view_is_not_recorded() {
    let program = [resource("a").input(VIEWS, "x"), resource("b").depends_on("a").input(VIEWS, "x,y")];
    let (cloud, state) = deploy(&program).await;
    assert_eq!((views(&state), entry(&state, "x").view_of.as_ref()), (vec!["x", "y"], Some(&entry(&state, "a").urn)));
    cloud.destroy(&state).run().await.expect(Outcome::Succeeded);
}

#[tokio::test]
async fn views_of_renamed_pending_delete_entry_are_kept() {
    let (cloud, state) = deploy(&[resource("a").input("k", "1").input(VIEWS, "x")]).await;
    cloud.fail("delete a-1", CallFailure::Error).fail("view a.x", CallFailure::Error);
    let ended = cloud.up(&state, &[resource("c").input("k", "2").alias("a")]).run().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["c-1", "a-1 (delete)", "x (delete)"]);
    let ended = cloud.clear_failures().up(&ended.state, &[]).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.entries(), [""; 0]);
}

#[tokio::test]
async fn renamed_and_replaced_resource_has_its_views() {
    for key in ["k", "d", "v"] {
        let (cloud, state) = deploy(&[resource("a").input(key, "1").input(VIEWS, "x")]).await;
        let program = [resource("c").input(key, "2").input(VIEWS, "x,y").alias("a")];
        let ended = cloud.up(&state, &program).run().await.expect(Outcome::Succeeded);
        assert_eq!(views(&ended.state), ["x", "y"], "{key}");
        let owner = &entry(&ended.state, "c").urn;
        assert!(["x", "y"].iter().all(|name| entry(&ended.state, name).view_of.as_ref() == Some(owner)), "{key}");
    }
}

#[tokio::test]
async fn view_dropped_by_one_resource_can_be_published_by_another() {
    let program = |a: &str, b: &str| [resource("a").input(VIEWS, a), resource("b").depends_on("a").input(VIEWS, b)];
    let (cloud, state) = deploy(&program("x", "")).await;
    let ended = cloud.up(&state, &program("", "x")).run().await.expect(Outcome::Succeeded);
    assert_eq!(entry(&ended.state, "x").view_of.as_ref(), Some(&entry(&ended.state, "b").urn));
}

#[tokio::test]
async fn registration_with_urn_of_a_view_is_rejected() {
    let (cloud, state) = deploy(&program_with_views("1", "x")).await;
    let [a, b] = program_with_views("1", "x");
    let program = [a, b, resource("x").of_type("Part").parent("a")];
    let ended = cloud.up(&state, &program).run().await.expect(Outcome::Failed);
    let message = "is the URN of a view that the provider of urn:pulumi:s::p::cloud:index:Thing::a publishes";
    assert!(ended.errors.iter().any(|error| error.contains(message)), "{:?}", ended.errors);
    assert_eq!(views(&ended.state), ["x"]);
}

#[tokio::test]
async fn view_output_is_secret_with_its_input() {
    let secret = PropertyValue::secret("hush".into());
    let (_, state) = deploy(&[resource("a").input("v", secret.clone()).input(VIEWS, "x")]).await;
    let x = entry(&state, "x");
    assert_eq!((x.inputs.get("v"), x.outputs.get("v")), (Some(&secret), Some(&secret)));
}

#[tokio::test]
async fn child_of_view_is_removed_with_it() {
    let (cloud, mut state) = deploy(&program_with_views("1", "x")).await;
    let (owner, x) = (entry(&state, "a").urn.clone(), entry(&state, "x").urn.clone());
    let mut inner = ResourceState::new(Urn::new(STACK, PROJECT, Some(&x), "cloud:index:View", "inner"), false);
    (inner.parent, inner.view_of) = (Some(x), Some(owner));
    state.resources.push(Arc::new(inner));
    let ended = cloud.up(&state, &program_with_views("2", "x")).run().await.expect(Outcome::Succeeded);
    assert_eq!(views(&ended.state), ["x", "inner"]);
    let ended = cloud.up(&ended.state, &program_with_views("2", "y")).run().await.expect(Outcome::Succeeded);
    assert_eq!(views(&ended.state), ["y"]);
}

#[tokio::test]
async fn pending_delete_view_is_removed_with_its_resource() {
    let (cloud, mut state) = deploy(&program_with_views("1", "x")).await;
    let view = state.resources.iter_mut().find(|state| state.view_of.is_some()).unwrap();
    Arc::make_mut(view).delete = true;
    let ended = cloud.destroy(&state).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.entries(), [""; 0]);
}

#[tokio::test]
async fn failed_view_read_fails_the_run_without_skipping_dependents() {
    let (cloud, state) = deploy(&program_with_views("1", "x")).await;
    cloud.fail("view a.x", CallFailure::Error);
    let ended = cloud
        .up(&state, &program_with_views("1", "x"))
        .refresh_first()
        .continue_on_error()
        .run()
        .await
        .expect(Outcome::Failed);
    assert_eq!((ended.result("a"), ended.result("b")), (RegistrationResult::Succeeded, RegistrationResult::Succeeded));
}

/// Shows: engine.md#views "Each published step is reported and counted like any other step."
#[tokio::test]
async fn preview_and_update_report_the_same_view_counts() {
    let program =
        |k, names| [resource("a").input("k", k).input(VIEWS, names), resource("b").input(VIEWS, "z").protected()];
    let (cloud, state) = deploy(&program("1", "x")).await;
    let replaced = program("2", "x,y");
    let preview = cloud.up(&state, &replaced).preview().run().await.expect(Outcome::Succeeded);
    let ended = cloud.up(&state, &replaced).run().await.expect(Outcome::Succeeded);
    assert_eq!(preview.counts, ended.counts);
    // A protected resource is kept with its views.
    let preview = cloud.destroy(&ended.state).preview().run().await.expect(Outcome::Failed);
    assert!(!preview.steps.contains(&"delete z".to_owned()), "{:?}", preview.steps);
}

#[tokio::test]
async fn views_of_failed_create_are_not_counted() {
    let cloud = FakeCloud::default();
    cloud.fail("create a", CallFailure::Error);
    let ended = cloud.up(&Snapshot::default(), &program_with_views("1", "x")).run().await.expect(Outcome::Failed);
    assert_eq!(
        (ended.counts.get(&StepOp::Create), views(&ended.state).len()),
        (Some(&1), 0),
        "only the stack is counted"
    );
}

#[tokio::test]
async fn view_renamed_during_read_is_recorded_once() {
    let (cloud, state) = deploy(&[resource("c"), resource("d").parent("c").input(VIEWS, "x")]).await;
    let was = entry(&state, "d").urn.clone();
    let parent = resource("c").of_type("OtherThing").alias_spec("c", "Thing", None);
    let program = [parent, resource("d").alias_urn(was).input(VIEWS, "x")];
    let held = cloud.hold("read d-1");
    let run = tokio::spawn(cloud.refresh_with(&state, &program).run_program().run());
    held.reached().await;
    yield_until_idle().await;
    held.release();
    let ended = run.await.expect("the run does not panic").expect(Outcome::Succeeded);
    assert_eq!(views(&ended.state), ["x"]);
}
