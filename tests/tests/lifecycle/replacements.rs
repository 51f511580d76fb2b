//! Tests of replacements in both orders, of dependent, pending and failed replacements, of changed parents and URNs,
//! and of imports and reads that replace.

use std::sync::Arc;

use engine::events::Outcome;
use engine::masking::MASK;
use pulumi_proto::property::PropertyValue;
use pulumi_proto::resource_id::ResourceId;
use state::Snapshot;

use crate::deploy;
use crate::fake_cloud::{CallFailure, FakeCloud, yield_until_idle};
use crate::program::{component, get, provider, resource};
use crate::run::entry;

/// Shows: engine.md#replacement "The old entry becomes a pending delete, and the engine deletes it at the end of the
///   run."
#[tokio::test]
async fn create_before_delete_deletes_at_end_of_run() {
    let program = |k: &str| [resource("a").input("k", k), resource("b").input_from("v", "a")];
    let (cloud, state) = deploy(&program("1")).await;
    let ended = cloud.up(&state, &program("2")).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["create a", "update b-1", "delete a-1"]);
}

#[tokio::test]
async fn pending_deletes_of_several_runs_are_deleted_together() {
    let program = |k: &str| [resource("a").input("k", k)];
    let (cloud, state) = deploy(&program("1")).await;
    cloud.fail("delete a-1", CallFailure::Error).fail("delete a-2", CallFailure::Error);
    let ended = cloud.up(&state, &program("2")).run().await.expect(Outcome::Failed);
    let ended = cloud.up(&ended.state, &program("3")).run().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["a-3", "a-2 (delete)", "a-1 (delete)"]);
    cloud.clear_failures();
    let ended = cloud.up(&ended.state, &program("3")).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes().len(), 2);
}

#[tokio::test]
async fn pending_delete_is_deleted_after_its_dependents() {
    let program = |k: &str| [resource("a").input("k", k), resource("b").input_from("k", "a")];
    let (cloud, state) = deploy(&program("1")).await;
    let ended = cloud.up(&state, &program("2")).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["create a", "create b", "delete b-1", "delete a-1"]);
}

#[tokio::test]
async fn renamed_and_replaced_resource_is_deleted_after_its_dependents() {
    let (cloud, state) = deploy(&[resource("a").input("k", "1"), resource("b").input_from("v", "a")]).await;
    let ended = cloud.up(&state, &[resource("c").alias("a").input("k", "2")]).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["create c", "delete b-1", "delete a-1"]);
}

#[tokio::test]
async fn failed_delete_before_replace_keeps_all_entries() {
    let program = |d: &str| [resource("a").input("d", d), resource("b").input_from("k", "a")];
    let (cloud, state) = deploy(&program("1")).await;
    cloud.fail("delete b-1", CallFailure::Error);
    let ended = cloud.up(&state, &program("2")).run().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["a-1", "b-1"]);
}

#[tokio::test]
async fn failed_dependent_delete_is_not_retried_in_the_same_run() {
    let (cloud, state) = deploy(&[resource("a").input("d", "1"), resource("b").input_from("k", "a")]).await;
    cloud.fail("delete b-1", CallFailure::Error);
    let ended =
        cloud.up(&state, &[resource("a").input("d", "2")]).continue_on_error().run().await.expect(Outcome::Failed);
    assert_eq!(ended.changes(), ["delete b-1"]);
    assert_eq!(ended.entries(), ["a-1", "b-1"]);
}

/// Shows: engine.md#replacement "the next run creates the replacement without another Delete"
#[tokio::test]
async fn pending_replacement_is_created_without_second_delete() {
    let program = |d: &str| [resource("a").input("d", d), resource("b").input_from("k", "a")];
    let (cloud, state) = deploy(&program("1")).await;
    cloud.fail("create a", CallFailure::Error);
    let ended = cloud.up(&state, &program("2")).run().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["a-1 (pending replacement)", "b-1 (pending replacement)"]);
    cloud.clear_failures();
    let ended = cloud.up(&ended.state, &program("1")).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["create a", "create b"]);
}

#[tokio::test]
async fn pending_replacement_missing_in_program_is_removed() {
    let (cloud, state) = deploy(&[resource("a").input("d", "1"), resource("b").input_from("k", "a")]).await;
    cloud.fail("create a", CallFailure::Error);
    let program = [resource("a").input("d", "2"), resource("b").input_from("k", "a")];
    let ended = cloud.up(&state, &program).run().await.expect(Outcome::Failed);
    cloud.clear_failures();
    let ended = cloud.up(&ended.state, &[]).run().await.expect(Outcome::Succeeded);
    assert_eq!((ended.changes().len(), ended.entries().len()), (0, 0));
}

#[tokio::test]
async fn partially_failed_replacement_is_updated_by_next_run() {
    let program = |k: &str| [resource("a").input("k", k)];
    let (cloud, state) = deploy(&program("1")).await;
    cloud.fail("create a", CallFailure::Partial);
    let ended = cloud.up(&state, &program("2")).run().await.expect(Outcome::Failed);
    assert_eq!((ended.entries().join(", "), ended.partial_failures.len()), ("a-2, a-1 (delete)".to_owned(), 1));
    cloud.clear_failures();
    let ended = cloud.up(&ended.state, &program("2")).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["update a-2", "delete a-1"]);
}

/// Shows: engine.md#failures "The resource that it replaces stays until then."
#[tokio::test]
async fn replaced_resource_stays_until_the_new_one_is_initialized() {
    let program = |k: &str| [resource("a").input("k", k)];
    let (cloud, state) = deploy(&program("1")).await;
    cloud.fail("create a", CallFailure::Partial).fail("update a-2", CallFailure::Partial);
    let mut ended = cloud.up(&state, &program("2")).continue_on_error().run().await.expect(Outcome::Failed);
    assert_eq!(ended.changes(), ["create a"]);
    for _ in 0..2 {
        let refreshed = cloud.refresh(&ended.state).run().await.expect(Outcome::Succeeded);
        let run = cloud.up(&refreshed.state, &program("2")).refresh_first().continue_on_error();
        ended = run.run().await.expect(Outcome::Failed);
        assert_eq!(ended.changes(), ["update a-2"]);
        assert_eq!(ended.entries(), ["a-2", "a-1 (delete)"]);
    }
    cloud.clear_failures();
    let ended = cloud.up(&ended.state, &program("2")).refresh_first().run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["update a-2", "delete a-1"]);
}

#[tokio::test]
async fn destroy_deletes_a_replaced_resource_whose_successor_is_not_initialized() {
    let program = |k: &str| [resource("a").input("k", k)];
    let (cloud, state) = deploy(&program("1")).await;
    cloud.fail("create a", CallFailure::Partial);
    let failed = cloud.up(&state, &program("2")).run().await.expect(Outcome::Failed);
    let ended = cloud.destroy(&failed.state).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes().len(), 2);
}

#[tokio::test]
async fn resource_that_the_program_drops_is_deleted_with_its_uninitialized_successor() {
    let program = |k: &str| [resource("a").input("k", k)];
    let (cloud, state) = deploy(&program("1")).await;
    cloud.fail("create a", CallFailure::Partial);
    let failed = cloud.up(&state, &program("2")).run().await.expect(Outcome::Failed);
    let ended = cloud.up(&failed.state, &[]).continue_on_error().run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes().len(), 2);
}

#[tokio::test]
async fn partial_failure_without_id_is_a_pending_create() {
    let program = |k: &str| [resource("a").input("k", k)];
    let (cloud, state) = deploy(&program("1")).await;
    cloud.fail("create a", CallFailure::PartialWithoutId);
    let ended = cloud.up(&state, &program("2")).run().await.expect(Outcome::Failed);
    assert_eq!((ended.entries(), ended.partial_failures), (vec!["a-1".to_owned()], Vec::new()));
    assert!(ended.state.pending_operations.iter().all(|operation| operation.is_create_without_id()));
    assert_eq!(ended.state.pending_operations.len(), 1);
    cloud.clear_failures();
    let ended = cloud.up(&ended.state, &program("2")).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["create a", "delete a-1"]);
}

/// Shows: engine.md#failures "Update after which the resource failed to initialize | new outputs, **old** inputs, the
///   errors"
#[tokio::test]
async fn partially_failed_update_keeps_old_inputs_and_is_retried() {
    let (cloud, state) = deploy(&[resource("a").input("v", "1")]).await;
    cloud.fail("update a-1", CallFailure::Partial);
    let ended = cloud.up(&state, &[resource("a").input("v", "2")]).run().await.expect(Outcome::Failed);
    let a = entry(&ended.state, "a");
    assert_eq!((a.inputs["v"].as_str(), a.outputs["v"].as_str()), (Some("1"), Some("2")));
    cloud.clear_failures();
    let ended = cloud.up(&ended.state, &[resource("a").input("v", "1")]).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["update a-1"]);
}

#[tokio::test]
async fn replace_with_replaces_both_resources() {
    let program = |k: &str| [resource("a").input("k", k), resource("b").depends_on("a").replace_with("a")];
    let (cloud, state) = deploy(&program("1")).await;
    let ended = cloud.up(&state, &program("2")).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes().len(), 4);
    assert_eq!(ended.call_count("diff b"), 0);
}

/// Shows: engine.md#replacement "If one of the dependent replacements is protected, the run fails before it deletes any
///   of them."
#[tokio::test]
async fn protected_dependent_prevents_delete_before_replace() {
    let (cloud, state) = deploy(&[resource("a").input("d", "1"), resource("b").input_from("k", "a").protected()]).await;
    let program = [resource("a").input("d", "2"), resource("b").input_from("k", "a").protected()];
    let ended = cloud.up(&state, &program).run().await.expect(Outcome::Failed);
    assert_eq!(ended.changes(), [""; 0]);
    assert_eq!(ended.hints, ["run `sc state unprotect b`, or undo the change that replaces a"]);
}

#[tokio::test]
async fn rename_of_parent_renames_descendants() {
    let (cloud, state) = deploy(&[
        component("g"),
        component("h").parent("g"),
        resource("a").parent("h"),
        resource("b").input_from("v", "a"),
    ])
    .await;
    // The grandchild is not registered yet when its dependent still refers to its former URN.
    let program = [
        component("g2").alias("g"),
        component("h").parent("g2"),
        resource("a").parent("h"),
        resource("b").input_from("v", "a"),
    ];
    let ended = cloud.up(&state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0]);
    assert_eq!(ended.entries(), ["g2", "h", "a-1", "b-1"]);
}

#[tokio::test]
async fn dependent_of_child_is_replaced_with_it_after_parent_type_change() {
    let program =
        |parent, d: &str| [parent, resource("a").parent("g").input("d", d), resource("b").input_from("k", "a")];
    let (cloud, state) = deploy(&program(component("g"), "1")).await;
    let parent = component("g").of_type("OtherThing").alias_spec("g", "Thing", None);
    let ended = cloud.up(&state, &program(parent, "2")).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["delete b-1", "delete a-1", "create a", "create b"]);
}

#[tokio::test]
async fn deleted_with_child_needs_no_delete_after_parent_type_change() {
    let program = |parent, d: &str| {
        let deleted_with_a = resource("b").depends_on("a").deleted_with("a");
        [parent, resource("a").parent("g").input("d", d), deleted_with_a]
    };
    let (cloud, state) = deploy(&program(component("g"), "1")).await;
    let parent = component("g").of_type("OtherThing").alias_spec("g", "Thing", None);
    let ended = cloud.up(&state, &program(parent, "2")).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["delete a-1", "create a", "create b"]);
}

#[tokio::test]
async fn delete_of_child_waits_for_dependent_after_parent_type_change() {
    let (cloud, state) = deploy(&[
        component("g"),
        resource("a").parent("g").input("d", "1"),
        resource("b").input_from("v", "a").input("d", "1"),
    ])
    .await;
    let parent = component("g").of_type("OtherThing").alias_spec("g", "Thing", None).depends_on("slow");
    let program = [resource("slow"), parent, resource("a").parent("g").input("d", "2"), resource("b").input("d", "2")];
    let (before, deleting) = (cloud.hold("create slow"), cloud.hold("delete b-1"));
    let run = tokio::spawn(cloud.up(&state, &program).run());
    deleting.reached().await;
    before.release();
    yield_until_idle().await;
    assert_eq!(cloud.call_count("delete a-1"), 0, "b still depends on a while it is being deleted");
    deleting.release();
    run.await.expect("the run does not panic").expect(Outcome::Succeeded);
}

#[tokio::test]
async fn import_of_missing_resource_fails_alone_with_continue_on_error() {
    let cloud = FakeCloud::default();
    cloud.fail("read nothing", CallFailure::Missing);
    let import =
        |name: &str, id: &'static str| resource(name).edit_goal(move |goal| goal.import_id = ResourceId::new(id));
    cloud.add("there");
    let program = [import("a", "nothing"), import("b", "there"), resource("c").depends_on("a")];
    let ended = cloud.up(&Snapshot::default(), &program).continue_on_error().run().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["there"]);
}

#[tokio::test]
async fn import_replaces_managed_resource() {
    let (cloud, state) = deploy(&[resource("a"), resource("b").input_from("v", "a")]).await;
    cloud.add("there");
    let program =
        [resource("a").edit_goal(|goal| goal.import_id = ResourceId::new("there")), resource("b").input_from("v", "a")];
    let ended = cloud.up(&state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["update b-1", "delete a-1"]);
    assert_eq!(entry(&ended.state, "a").import_id, ResourceId::new("there"));
}

#[tokio::test]
async fn import_completes_pending_replacement() {
    let program = |d: &str, import: &'static str| {
        let imported =
            resource("a").input("v", "1").provider("p").edit_goal(move |goal| goal.import_id = ResourceId::new(import));
        [provider("p").input("d", d), imported]
    };
    let (cloud, state) = deploy(&program("1", "")).await;
    cloud.add("there");
    let ended = cloud.up(&state, &program("2", "there")).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["delete a-1", "update there"]);
    assert_eq!(ended.entries(), ["p", "there"]);
}

#[tokio::test]
async fn managed_resource_that_becomes_external_is_deleted_only_if_id_differs() {
    let (cloud, state) = deploy(&[resource("a"), resource("b")]).await;
    cloud.add("theirs");
    let ended = cloud.up(&state, &[get("a", "theirs"), get("b", "b-1")]).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["delete a-1"]);
}

/// Shows: engine.md#registration "Check is called a second time, with the same random seed and without old inputs"
#[tokio::test]
async fn row_05_both_checks_of_a_replacement_share_one_random_seed() {
    let program = |k: &str| [resource("a").input("k", k), resource("b")];
    let (cloud, state) = deploy(&program("1")).await;
    let before = cloud.checked().len();
    cloud.up(&state, &program("2")).run().await.expect(Outcome::Succeeded);
    let checked = cloud.checked();
    let seeds = |name: &str| {
        let checks = checked[before..].iter().filter(|check| check.urn.name() == name);
        checks.map(|check| check.random_seed).collect::<Vec<_>>()
    };
    let (of_a, of_b) = (seeds("a"), seeds("b"));
    assert_eq!((of_a.len(), of_b.len()), (2, 1));
    assert_eq!(of_a[0], of_a[1]);
    assert_ne!(of_a[0], of_b[0]);
    assert_ne!(of_a[0], checked[0].random_seed, "each run has another seed");
}

#[tokio::test]
async fn pending_replacement_in_cycle_with_entry_out_of_scope_is_rejected() {
    let (cloud, state) = deploy(&[
        resource("a").input("d", "1"),
        resource("b").input_from("k", "a"),
        resource("c").input_from("v", "b"),
    ])
    .await;
    let program = [resource("a").input("d", "2"), resource("c").depends_on("a"), resource("b").input_from("v", "c")];
    let ended = cloud.up(&state, &program).target("a").run().await.expect(Outcome::Failed);
    let message = "b depends on c, which is out of scope and still depends on b";
    assert!(ended.errors[0].contains(message), "{:?}", ended.errors);
    assert_eq!(ended.entries(), ["a-2", "b-1 (pending replacement)", "c-1"]);
    let ended = cloud.up(&ended.state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.entries(), ["a-2", "c-1", "b-2"]);
}

#[tokio::test]
async fn cycle_through_renamed_entry_out_of_scope_is_rejected() {
    let (cloud, state) = deploy(&[
        resource("c").input("v", "1"),
        resource("b").parent("c").input("k", "1"),
        component("a").parent("b").deleted_with("c"),
    ])
    .await;
    let was = |name: &str| entry(&state, name).urn.clone();
    // The program refers to `a` by its old URN; `a` gets another one with its parent.
    let program = [
        component("a").alias_urn(was("a")),
        resource("b").alias_urn(was("b")).input("k", "2"),
        resource("c").input("v", "2").depends_on("a").depends_on("b"),
    ];
    let ended = cloud.up(&state, &program).exclude("a").run().await.expect(Outcome::Failed);
    assert!(ended.errors[0].contains("depends on a, which is out of scope and still depends on"), "{:?}", ended.errors);
}

#[tokio::test]
async fn urn_of_pending_delete_entry_is_released() {
    let (cloud, state) =
        deploy(&[component("g"), resource("a"), resource("c").parent("a"), resource("h").parent("g")]).await;
    let with_both = [component("g"), resource("a"), resource("h").parent("g"), resource("c").parent("h")];
    cloud.fail("delete c-1", CallFailure::Error);
    let state = cloud.up(&state, &with_both).run().await.expect(Outcome::Failed).state;
    cloud.clear_failures();
    let was = |name: &str| entry(&state, name).urn.clone();
    let program = [
        component("g2").of_type("OtherThing"),
        resource("a").parent("g2").alias_urn(was("a")),
        resource("h").alias_urn(was("h")).depends_on("a"),
        resource("c").parent("h"),
    ];
    let ended = cloud.up(&state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.entries(), ["g2", "a-1", "h-1", "c-1"]);
}

#[tokio::test]
async fn reference_uses_new_urn_while_pending_delete_entry_keeps_old_urn() {
    let (cloud, state) = deploy(&[resource("a"), resource("b"), resource("c").input("k", "1")]).await;
    cloud.fail("delete c-1", CallFailure::Error);
    let within = resource("c").input("k", "2").parent("b").alias_urn(entry(&state, "c").urn.clone());
    let state = cloud.up(&state, &[resource("a"), resource("b"), within]).run().await.expect(Outcome::Failed).state;
    cloud.clear_failures();
    let (b, c) = (entry(&state, "b").urn.clone(), entry(&state, "c").urn.clone());
    // `c` is out of scope, and gets another URN once its parent has one.
    let program = [
        resource("a"),
        resource("c").alias_urn(c),
        resource("b").parent("a").alias_urn(b),
        resource("h").depends_on("b").depends_on("c"),
    ];
    let ended =
        cloud.up(&state, &program).target("a").with_dependents().parallel(1).run().await.expect(Outcome::Succeeded);
    let h = entry(&ended.state, "h");
    let live = ended.state.resources.iter().find(|state| state.urn.name() == "c" && !state.delete).unwrap();
    assert!(h.dependencies.contains(&live.urn), "{:?}", h.dependencies);
}

#[tokio::test]
async fn secrets_of_dependent_are_masked_before_its_diff() {
    let (cloud, mut state) = deploy(&[resource("a").input("d", "1"), resource("b").input_from("k", "a")]).await;
    let recorded = state.resources.iter_mut().find(|state| state.urn.name() == "b").unwrap();
    let inputs = Arc::make_mut(&mut Arc::make_mut(recorded).inputs);
    inputs.insert("token".to_owned(), PropertyValue::secret("hush".into()));
    let ended = cloud.up(&state, &[resource("a").input("d", "2")]).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.masker.mask("hush"), MASK);
}

#[tokio::test]
async fn requested_replacement_that_does_not_happen_is_reported() {
    let program = [resource("a"), resource("b"), resource("c").depends_on("b")];
    let (cloud, state) = deploy(&program).await;
    let run = |name: &str| cloud.up(&state, &program).replace(name);
    for (run, expected) in [
        (run("b").target("a"), "b: not replaced despite --replace: it is not among the targets"),
        (run("b").target("a").preview(), "b: not replaced despite --replace: it is not among the targets"),
        (run("b*").target("a"), "b: not replaced despite --replace: it is not among the targets"),
        (run("b").exclude("b"), "b: not replaced despite --replace: it is excluded"),
        (
            run("c").exclude("b").with_dependents(),
            "c: not replaced despite --replace: it depends on an excluded resource",
        ),
        (
            cloud.up(&state, &program[..1]).replace("c").target("a"),
            "c: not replaced despite --replace: the program does not have it",
        ),
    ] {
        let ended = run.run().await.expect(Outcome::Succeeded);
        assert_eq!((ended.warnings.as_slice(), ended.changes()), (&[expected.to_owned()][..], Vec::new()));
    }
    let ended = run("b").target("b").run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.warnings, Vec::<String>::new());
    assert_eq!(ended.changes(), ["create b", "delete b-1"]);
}
