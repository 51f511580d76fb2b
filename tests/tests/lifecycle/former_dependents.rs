//! Tests of a delete before a replacement while the old version of a former dependent exists: the cloud refuses to delete what
//! an existing resource has in its inputs.

use engine::events::Outcome;
use state::Snapshot;

use crate::deploy;
use crate::fake_cloud::{CallFailure, FakeCloud};
use crate::program::{ProgramResource, resource};

/// Deploys a resource `a` and a resource `b` with the id of `a` in an input.
async fn deploy_user(input: &str) -> (FakeCloud, Snapshot) {
    let (cloud, state) = deploy(&[resource("a").input("d", "1"), resource("b").input_from(input, "a")]).await;
    cloud.refuse_deletes_in_use();
    (cloud, state)
}

/// Returns the program whose `b` no longer uses `a`, while `a` is deleted before its replacement, in both orders.
fn programs(input: &str) -> [[ProgramResource; 2]; 2] {
    let (a, b) = (resource("a").input("d", "2"), resource("b").input(input, "none"));
    [[a.clone(), b.clone()], [b, a]]
}

#[tokio::test]
async fn old_version_of_former_dependent_is_deleted_first_in_each_order() {
    for parallel in [1, 16] {
        for program in programs("k") {
            let (cloud, state) = deploy_user("k").await;
            let ended = cloud.up(&state, &program).parallel(parallel).run().await.expect(Outcome::Succeeded);
            let changes = ended.changes();
            let place = |call: &str| changes.iter().position(|change| change == call).unwrap();
            assert!(place("delete b-1") < place("delete a-1"), "{changes:?}");
            assert_eq!(changes.len(), 4, "{changes:?}");
            assert_eq!(cloud.existing().into_iter().collect::<Vec<_>>(), ["a-2", "b-2"]);
        }
    }
}

#[tokio::test]
async fn preview_plans_the_delete_of_the_old_version_first() {
    for program in programs("k") {
        let (cloud, state) = deploy_user("k").await;
        let ended = cloud.up(&state, &program).preview().run().await.expect(Outcome::Succeeded);
        let place = |step: &str| ended.steps.iter().position(|started| started == step).unwrap();
        assert!(place("delete-replaced b") < place("delete-replaced a"), "{:?}", ended.steps);
        assert_eq!(ended.steps.iter().filter(|step| *step == "delete-replaced b").count(), 1, "{:?}", ended.steps);
    }
}

#[tokio::test]
async fn pending_delete_of_earlier_run_is_deleted_before_the_resource_that_it_uses() {
    for parallel in [1, 16] {
        for program in programs("k") {
            let (cloud, state) = deploy_user("k").await;
            cloud.fail("delete b-1", CallFailure::Error);
            let moved = [resource("a").input("d", "1"), resource("b").input("k", "none")];
            let ended = cloud.up(&state, &moved).run().await.expect(Outcome::Failed);
            assert_eq!(ended.entries(), ["a-1", "b-2", "b-1 (delete)"]);
            cloud.clear_failures();
            let ended = cloud.up(&ended.state, &program).parallel(parallel).run().await.expect(Outcome::Succeeded);
            assert_eq!(ended.changes(), ["delete b-1", "delete a-1", "create a"]);
            assert_eq!(ended.entries().len(), 2);
        }
    }
}

#[tokio::test]
async fn pending_deletes_that_use_each_other_are_deleted_dependents_first() {
    let c = |resource: ProgramResource| resource.input_from("k", "b");
    for is_first in [true, false] {
        let program = [resource("a").input("d", "1"), resource("b").input_from("k", "a"), c(resource("c"))];
        let (cloud, state) = deploy(&program).await;
        cloud.refuse_deletes_in_use();
        cloud.fail("delete c-1", CallFailure::Error);
        let moved = [resource("a").input("d", "1"), resource("b").input("k", "none"), c(resource("c"))];
        let ended = cloud.up(&state, &moved).run().await.expect(Outcome::Failed);
        assert_eq!(ended.entries().iter().filter(|entry| entry.ends_with("(delete)")).count(), 2);
        cloud.clear_failures();
        let a = resource("a").input("d", "2");
        let rest = [resource("b").input("k", "none"), c(resource("c"))];
        let program = if is_first { [&[a][..], &rest].concat() } else { [&rest[..], &[a]].concat() };
        let ended = cloud.up(&ended.state, &program).run().await.expect(Outcome::Succeeded);
        assert_eq!(ended.changes(), ["delete c-1", "delete b-1", "delete a-1", "create a"]);
    }
}

#[tokio::test]
async fn delete_waits_for_the_replacement_of_a_former_dependent() {
    let (cloud, state) = deploy_user("k").await;
    let held = cloud.hold("create b");
    let [_, program] = programs("k");
    let ended = cloud.up(&state, &program).run_held_at(held).await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["create b", "delete b-1", "delete a-1", "create a"]);
}

#[tokio::test]
async fn delete_waits_for_the_update_of_a_former_dependent() {
    let (cloud, state) = deploy_user("v").await;
    let held = cloud.hold("update b-1");
    let [_, program] = programs("v");
    let ended = cloud.up(&state, &program).run_held_at(held).await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["update b-1", "delete a-1", "create a"]);
}

#[tokio::test]
async fn resource_stays_if_the_change_of_its_former_dependent_fails() {
    for (input, call) in [("k", "create b"), ("v", "update b-1")] {
        let (cloud, state) = deploy_user(input).await;
        cloud.fail(call, CallFailure::Error);
        let [_, program] = programs(input);
        let ended = cloud.up(&state, &program).continue_on_error().run().await.expect(Outcome::Failed);
        assert_eq!(ended.changes(), [call]);
        let mut entries = ended.entries();
        entries.sort();
        assert_eq!(entries, ["a-1", "b-1"]);
    }
}

#[tokio::test]
async fn failed_delete_of_the_old_version_keeps_the_resource_that_it_uses() {
    let (cloud, state) = deploy_user("k").await;
    cloud.fail("delete b-1", CallFailure::Error);
    let [_, program] = programs("k");
    let ended = cloud.up(&state, &program).continue_on_error().run().await.expect(Outcome::Failed);
    assert_eq!(ended.changes(), ["create b", "delete b-1"]);
    cloud.clear_failures();
    let ended = cloud.up(&ended.state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["delete b-1", "delete a-1", "create a"]);
}

#[tokio::test]
async fn excluded_former_dependent_keeps_its_old_version() {
    let (cloud, state) = deploy_user("k").await;
    cloud.fail("delete b-1", CallFailure::Error);
    let moved = [resource("a").input("d", "1"), resource("b").input("k", "none")];
    let ended = cloud.up(&state, &moved).run().await.expect(Outcome::Failed);
    cloud.clear_failures();
    let [program, _] = programs("k");
    let ended = cloud.up(&ended.state, &program).exclude("b").run().await.expect(Outcome::Failed);
    assert_eq!(ended.changes(), ["delete a-1"]);
    assert!(cloud.existing().contains("a-1") && cloud.existing().contains("b-1"), "{:?}", cloud.existing());
}
