//! Tests of a delete before a replacement while the old version of a former dependent exists: the cloud refuses to delete what
//! an existing resource has in its inputs.

use engine::events::Outcome;
use state::Snapshot;

use crate::deploy;
use crate::fake_cloud::{CallFailure, FakeCloud, NAMED};
use crate::program::{ProgramResource, get, remote_component, resource};

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

/// Shows: engine.md#replacement "Such an old version, and each pending delete that uses it, is deleted before the old
///   resource, whatever the order of registration."
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

/// Shows: engine.md#replacement "Such an old version, and each pending delete that uses it, is deleted before the old
///   resource, whatever the order of registration."
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

/// Shows: engine.md#replacement "If the replacement or the update of such a resource is in progress, the engine waits
///   for its end"
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

/// Deploys `a`, its user `b`, and `c`, which uses `b`.
async fn deploy_chain(edit: impl Fn(ProgramResource) -> ProgramResource) -> (FakeCloud, Snapshot) {
    let b = edit(resource("b").input_from("v", "a"));
    let (cloud, state) = deploy(&[resource("a").input("d", "1"), b, edit(resource("c").input_from("v", "b"))]).await;
    cloud.refuse_deletes_in_use();
    (cloud, state)
}

/// Returns the program that deletes and replaces `a`.
fn replaced() -> ProgramResource {
    resource("a").input("d", "2")
}

#[tokio::test]
async fn dependents_that_leave_the_program_are_deleted_first() {
    for parallel in [1, 16] {
        let (cloud, state) = deploy_chain(|resource| resource).await;
        let ended = cloud.up(&state, &[replaced()]).parallel(parallel).run().await.expect(Outcome::Succeeded);
        assert_eq!(ended.changes(), ["delete c-1", "delete b-1", "delete a-1", "create a"]);
        assert_eq!((ended.deletions.removed, ended.deletions.replaced), (2, 1));
        assert_eq!(ended.entries(), ["a-2"]);
    }
}

#[tokio::test]
async fn preview_plans_the_delete_of_leaving_dependents_first() {
    let (cloud, state) = deploy_chain(|resource| resource).await;
    let ended = cloud.up(&state, &[replaced()]).preview().run().await.expect(Outcome::Succeeded);
    let deletes: Vec<&String> = ended.steps.iter().filter(|step| step.starts_with("delete")).collect();
    assert_eq!(deletes, ["delete c", "delete b", "delete-replaced a"]);
}

#[tokio::test]
async fn leaving_dependents_count_against_the_limit_before_anything_is_deleted() {
    let (cloud, state) = deploy_chain(|resource| resource).await;
    for limit in [1, 2] {
        let fork = cloud.fork(&cloud.state());
        let ended = fork.up(&state, &[replaced()]).deletion_limit(limit).run().await.expect(Outcome::Failed);
        let error = "a: a would be replaced: the run would delete or replace more resources than the limit of";
        assert_eq!(ended.errors.first().map(|first| first.starts_with(error)), Some(true), "{:?}", ended.errors);
        // The deletions at the end, which the limit allows, do not depend on the replacement.
        assert_eq!(ended.changes().len(), if limit == 2 { 2 } else { 0 });
    }
    let ended = cloud.up(&state, &[replaced()]).deletion_limit(3).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes().len(), 4);
}

#[tokio::test]
async fn failed_delete_of_a_leaving_dependent_keeps_the_resource_that_it_uses() {
    let (cloud, state) = deploy_chain(|resource| resource).await;
    cloud.fail("delete c-1", CallFailure::Error);
    let ended = cloud.up(&state, &[replaced()]).continue_on_error().run().await.expect(Outcome::Failed);
    assert_eq!(ended.changes(), ["delete c-1"]);
    cloud.clear_failures();
    let ended = cloud.up(&ended.state, &[replaced()]).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["delete c-1", "delete b-1", "delete a-1", "create a"]);
}

#[tokio::test]
async fn leaving_dependent_stays_if_it_or_its_user_is_protected_or_out_of_scope() {
    let stuck = ["delete a-1"];
    let (cloud, state) = deploy_chain(ProgramResource::protected).await;
    let ended = cloud.up(&state, &[replaced()]).run().await.expect(Outcome::Failed);
    assert_eq!(ended.changes(), stuck);
    let (cloud, state) =
        deploy_chain(|resource| if resource.name == "c" { resource.protected() } else { resource }).await;
    let ended = cloud.up(&state, &[replaced()]).run().await.expect(Outcome::Failed);
    assert_eq!(ended.changes(), stuck, "c stays and uses b");
    let (cloud, state) = deploy_chain(|resource| resource).await;
    let ended = cloud.up(&state, &[replaced()]).target("a").run().await.expect(Outcome::Failed);
    assert_eq!(ended.changes(), stuck);
    let ended = cloud.up(&state, &[replaced()]).exclude("c").run().await.expect(Outcome::Failed);
    assert_eq!(ended.changes(), stuck);
    let ended = cloud.up(&state, &[replaced()]).target("a").target("b").target("c").run().await;
    assert_eq!(ended.expect(Outcome::Succeeded).changes().len(), 4);
}

#[tokio::test]
async fn leaving_dependent_stays_until_its_own_user_is_updated() {
    let c = || resource("c").input("v", "none");
    // One at once, the order of the program decides.
    for (program, parallel) in [([c(), replaced()], 1), ([c(), replaced()], 16), ([replaced(), c()], 16)] {
        let (cloud, state) = deploy_chain(|resource| resource).await;
        let ended = cloud.up(&state, &program).parallel(parallel).run().await.expect(Outcome::Succeeded);
        assert_eq!(ended.changes(), ["update c-1", "delete b-1", "delete a-1", "create a"]);
    }
    let (cloud, state) = deploy_chain(|resource| resource).await;
    let later = resource("c").input_from("v", "d");
    let ended = cloud.up(&state, &[replaced(), resource("d").input_from("v", "a"), later]).run().await;
    assert_eq!(ended.expect(Outcome::Failed).changes(), ["delete a-1"], "c uses b until a is replaced");
}

#[tokio::test]
async fn renamed_dependent_is_not_leaving() {
    let (cloud, state) = deploy_user("v").await;
    for program in [
        [replaced(), resource("e").alias("b").input("v", "none")],
        [resource("e").alias("b").input("v", "none"), replaced()],
    ] {
        let fork = cloud.fork(&cloud.state());
        let ended = fork.up(&state, &program).run().await;
        assert!(!ended.changes().contains(&"delete b-1".to_owned()), "{:?}", ended.changes());
    }
}

#[tokio::test]
async fn dependent_that_is_imported_under_another_name_is_not_leaving() {
    let (cloud, state) = deploy_user("v").await;
    cloud.refuse_deletes_in_use();
    let imported = |id| resource("e").input("v", "none").imported(id);
    for id in ["b-1", "https://b-1"] {
        let fork = cloud.fork(&cloud.state());
        fork.refuse_deletes_in_use();
        let ended = fork.up(&state, &[replaced(), imported(id).depends_on("a")]).run().await.expect(Outcome::Failed);
        assert_eq!(ended.changes(), ["delete a-1"]);
    }
    // An import of an earlier run imports nothing.
    let (cloud, state) = deploy_chain(|resource| resource).await;
    cloud.add("other");
    let import = || imported("other");
    let program = [resource("a").input("d", "1"), import(), resource("b").input_from("v", "a")];
    let imported = cloud.up(&state, &program).run().await.expect(Outcome::Succeeded);
    let ended = cloud.up(&imported.state, &[replaced(), import()]).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["delete b-1", "delete a-1", "create a"]);
}

#[tokio::test]
async fn old_version_of_a_former_dependent_whose_object_the_new_one_has_is_not_deleted() {
    let b = |key: &str, value: &str| resource("b").input(NAMED, "named-b").input(key, value);
    let program = [resource("a").input("d", "1"), resource("b").input(NAMED, "named-b").input_from("k", "a")];
    for parallel in [1, 16] {
        let (cloud, state) = deploy(&program).await;
        let after = [b("k", "none"), replaced()];
        let ended = cloud.up(&state, &after).parallel(parallel).run().await.expect(Outcome::Succeeded);
        assert!(!ended.changes().contains(&"delete named-b".to_owned()), "{:?}", ended.changes());
    }
}

#[tokio::test]
async fn read_waits_for_the_planned_delete_of_its_resource() {
    let user = |name: &str, used: &str| resource(name).input_from("k", used);
    let program = [resource("a").input("d", "1"), user("b", "a"), user("c", "b"), user("e", "c")];
    let (cloud, state) = deploy(&program).await;
    // The read begins while `e` and `c` are deleted, which use `b`.
    let read = get("b", "b-1").depends_on("f");
    let ended = cloud.up(&state, &[replaced(), resource("f"), read]).run().await.expect(Outcome::Failed);
    assert_eq!(ended.errors, ["b: cloud:index:Thing \"b-1\" does not exist"]);
    assert!(ended.entries().contains(&"b-1 (pending replacement)".to_owned()), "{:?}", ended.entries());
}

#[tokio::test]
async fn child_of_a_component_that_its_plugin_constructs_is_not_leaving() {
    let program = |a: &str| [resource("a").input("d", a), remote_component("g").input_from("v", "a")];
    let (cloud, state) = deploy(&program("1")).await;
    let ended = cloud.up(&state, &program("2")).run().await.expect(Outcome::Succeeded);
    assert!(!ended.changes().iter().any(|change| change.starts_with("delete g")), "{:?}", ended.changes());
}

#[tokio::test]
async fn old_version_stays_before_a_replacement_while_its_user_stays() {
    let c = || resource("c").input_from("v", "b").protected();
    let (cloud, state) = deploy(&[resource("a").input("d", "1"), resource("b").input_from("k", "a"), c()]).await;
    cloud.refuse_deletes_in_use();
    cloud.fail("update c-1", CallFailure::Error);
    let moved = [resource("a").input("d", "1"), resource("b").input("k", "none"), c()];
    let ended = cloud.up(&state, &moved).continue_on_error().run().await.expect(Outcome::Failed);
    assert!(ended.entries().contains(&"b-1 (delete)".to_owned()), "{:?}", ended.entries());
    cloud.clear_failures();
    let program = [replaced(), resource("b").input("k", "none")];
    let run = cloud.up(&ended.state, &program).continue_on_error();
    assert_eq!(run.run().await.expect(Outcome::Failed).changes(), ["delete a-1"], "c uses b-1, which uses a-1");
}

#[tokio::test]
async fn dependent_that_is_replaced_too_loses_its_reference_to_a_leaving_one() {
    let f = |resource: ProgramResource| resource.input_from("k", "a");
    let program = [resource("a").input("d", "1"), resource("b").input_from("v", "a"), f(resource("f")).depends_on("b")];
    let (cloud, state) = deploy(&program).await;
    cloud.refuse_deletes_in_use();
    let ended = cloud.up(&state, &[replaced(), f(resource("f"))]).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["delete f-1", "delete b-1", "delete a-1", "create a", "create f"]);
}
