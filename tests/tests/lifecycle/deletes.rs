//! Tests of deletions: their order, and the entries that are kept.

use pulumi_proto::resource_id::ResourceId;
use std::sync::Arc;

use engine::RegistrationResult;
use engine::events::Outcome;
use state::Snapshot;

use crate::deploy;
use crate::fake_cloud::{CallFailure, FakeCloud, REFRESH_BEFORE_UPDATE, map};
use crate::program::{component, get, provider, resource};
use crate::run::entry;

#[tokio::test]
async fn destroy_deletes_dependents_first_and_empties_the_state() {
    let (cloud, state) = deploy(&[
        provider("p"),
        component("g"),
        resource("a").provider("p").parent("g"),
        resource("b").input_from("v", "a"),
        resource("c").depends_on("g"),
    ])
    .await;
    let ended = cloud.destroy(&state).run().await.expect(Outcome::Succeeded);
    assert_eq!(
        ended.changes().last().unwrap(),
        "delete a-1",
        "a dependency on a component is a dependency on its children"
    );
    assert_eq!(ended.state.resources.len(), 0);
}

#[tokio::test]
async fn skipped_registration_is_not_deleted() {
    let (cloud, state) = deploy(&[resource("a"), resource("b").depends_on("a"), resource("gone")]).await;
    cloud.fail("update a-1", CallFailure::Error);
    let program = [resource("a").input("v", "2"), resource("b").depends_on("a")];
    let ended = cloud.up(&state, &program).continue_on_error().run().await.expect(Outcome::Failed);
    assert_eq!(ended.result("b"), RegistrationResult::Skipped);
    assert_eq!(ended.changes(), ["update a-1", "delete gone-1"]);
}

#[tokio::test]
async fn recorded_dependency_of_failed_resource_is_not_deleted() {
    let (cloud, state) = deploy(&[resource("net"), resource("a").input_from("v", "net"), resource("other")]).await;
    cloud.fail("update a-1", CallFailure::Error);
    let ended =
        cloud.up(&state, &[resource("a").input("v", "free")]).continue_on_error().run().await.expect(Outcome::Failed);
    assert_eq!(ended.changes(), ["update a-1", "delete other-1"]);
    assert_eq!(ended.entries(), ["net-1", "a-1"]);
}

#[tokio::test]
async fn failed_delete_keeps_only_its_dependencies() {
    let (cloud, state) = deploy(&[resource("a"), resource("b").depends_on("a"), resource("c")]).await;
    cloud.fail("delete b-1", CallFailure::Error);
    let ended = cloud.destroy(&state).continue_on_error().run().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["a-1", "b-1"]);
}

/// Shows: engine.md#deletion "a protected entry: the run reports an error"
/// Shows: engine.md#deletion "everything that such an entry depends on"
#[tokio::test]
async fn destroy_keeps_protected_resource_and_its_dependencies() {
    for continues in [false, true] {
        let (cloud, state) = deploy(&[resource("a"), resource("b").depends_on("a").protected(), resource("c")]).await;
        let run = cloud.destroy(&state);
        let run = if continues { run.continue_on_error() } else { run };
        assert_eq!(run.run().await.expect(Outcome::Failed).entries(), ["a-1", "b-1"], "continues: {continues}");
    }
}

#[tokio::test]
async fn deleted_with_needs_no_delete_after_earlier_delete_of_owner() {
    let (cloud, state) =
        deploy(&[resource("a").input("d", "1"), resource("b").depends_on("a").deleted_with("a")]).await;
    cloud.fail("create a", CallFailure::Error);
    let program = [resource("a").input("d", "2"), resource("b").depends_on("a").deleted_with("a")];
    let ended = cloud.up(&state, &program).run().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["a-1 (pending replacement)", "b-1 (pending replacement)"]);
    cloud.clear_failures();
    let ended = cloud.up(&ended.state, &[]).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0]);
}

#[tokio::test]
async fn external_resource_is_removed_without_delete() {
    let cloud = FakeCloud::default();
    cloud.add("theirs");
    let state = cloud.up(&Snapshot::default(), &[get("a", "theirs"), resource("b")]).run().await.state;
    let ended = cloud.destroy(&state).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["delete b-1"]);
}

#[tokio::test]
async fn retain_on_delete_removes_entry_without_delete() {
    let (cloud, state) = deploy(&[resource("a").edit_goal(|goal| goal.retain_on_delete = Some(true))]).await;
    let ended = cloud.up(&state, &[]).run().await.expect(Outcome::Succeeded);
    assert_eq!((ended.changes().len(), ended.entries().len()), (0, 0));
}

#[tokio::test]
async fn references_are_valid_after_delete_of_pending_delete_entry() {
    let program = |p, a| {
        [
            provider("p").input("d", p),
            resource("a").provider("p").input(REFRESH_BEFORE_UPDATE, "1").input("k", a),
            resource("b").depends_on("a"),
        ]
    };
    let (cloud, state) = deploy(&program("1", "1")).await;
    cloud.fail("delete a-1", CallFailure::Error);
    let ended = cloud.up(&state, &program("1", "2")[..2]).target("a").run().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["p", "a-2", "a-1 (delete)", "b-1"]);
    cloud.clear_failures();
    // The pending delete is deleted before its provider, and `a` is created again after the provider: in between, no
    // entry has the name `a`.
    cloud.fail("read a-2", CallFailure::Missing);
    let ended = cloud.up(&ended.state, &program("2", "2")).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["delete a-1", "create a"]);
    assert_eq!(entry(&ended.state, "b").dependencies, [entry(&ended.state, "a").urn.clone()]);
}

/// Shows: engine.md#deletion "If the registration of a resource in `server.yaml` fails, the engine deletes nothing at
///   the end of the run"
#[tokio::test]
async fn failed_program_deletes_nothing() {
    let (cloud, state) = deploy(&[resource("a"), resource("b")]).await;
    let ended = cloud.up(&state, &[resource("a")]).fail_program().run().await.expect(Outcome::Failed);
    assert_eq!(ended.changes(), [""; 0]);
}

/// Shows: engine.md#registration "A preview takes the same path without effects. Create and Update are called with
///   `preview: true`, Delete is not called, and nothing is recorded."
#[tokio::test]
async fn previews_make_no_changes() {
    let (cloud, state) = deploy(&[
        provider("p").input("d", "1"),
        resource("a").input("d", "1"),
        resource("b").input_from("k", "a"),
        resource("c").provider("p"),
        resource("e"),
    ])
    .await;
    let program = [
        provider("p").input("d", "2"),
        resource("a").input("d", "2"),
        resource("b").input_from("k", "a"),
        resource("c").provider("p"),
    ];
    let ended = cloud.up(&state, &program).preview().run().await.expect(Outcome::Succeeded);
    assert!(ended.steps.contains(&"delete e".to_owned()));
    cloud.destroy(&state).preview().run().await.expect(Outcome::Succeeded);
    cloud.refresh(&state).preview().run().await.expect(Outcome::Succeeded);
}

#[tokio::test]
async fn outputs_of_skipped_component_are_ignored() {
    let (cloud, state) = deploy(&[resource("a")]).await;
    cloud.fail("update a-1", CallFailure::Error);
    let program =
        [resource("a").input("v", "2"), component("g").depends_on("a").outputs(map(&[("o", "1")])), resource("b")];
    let ended = cloud.up(&state, &program).continue_on_error().run().await.expect(Outcome::Failed);
    assert_eq!(ended.result("g"), RegistrationResult::Skipped);
    assert_eq!(ended.entries(), ["b-1", "a-1"]);
}

#[tokio::test]
async fn outputs_of_new_component_out_of_scope_are_ignored() {
    let (cloud, state) = deploy(&[resource("a")]).await;
    let program = [resource("a").input("v", "2"), component("g").outputs(map(&[("o", "1")]))];
    let ended = cloud.up(&state, &program).target("a").run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["update a-1"]);
}

#[tokio::test]
async fn renamed_resource_out_of_scope_keeps_its_old_urn() {
    let (cloud, state) = deploy(&[resource("a"), component("g"), resource("b")]).await;
    let program = [
        resource("a2").alias("a"),
        component("g2").alias("g"),
        resource("b").input("v", "2").depends_on("a2"),
        resource("c").parent("g2"),
    ];
    let ended = cloud.up(&state, &program).target("b").target("c").run().await.expect(Outcome::Succeeded);
    assert_eq!(entry(&ended.state, "b").dependencies[0].name(), "a");
    assert_eq!(entry(&ended.state, "c").parent.as_ref().unwrap().name(), "g");
}

#[tokio::test]
async fn dependency_of_skipped_resource_keeps_replaced_provider() {
    let program =
        |k: &str| [provider("p").input("k", k), resource("a").provider("p"), resource("b").input_from("v", "a")];
    let (cloud, state) = deploy(&program("1")).await;
    cloud.fail("create c", CallFailure::Error);
    let after = [provider("p").input("k", "2"), resource("c"), resource("b").input_from("v", "c")];
    let ended = cloud.up(&state, &after).continue_on_error().run().await.expect(Outcome::Failed);
    assert_eq!(ended.changes(), ["create c"]);
}

#[tokio::test]
async fn entries_needed_by_excluded_resource_stay_with_replaced_provider() {
    let before = [provider("p").input("k", "1"), resource("c").provider("p"), resource("d").input_from("v", "c")];
    let (cloud, state) = deploy(&before).await;
    let after = [provider("p").input("k", "2")];
    let ended = cloud.up(&state, &after).exclude("d").run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0], "d is kept with its dependency c");
}

#[tokio::test]
async fn dependency_in_replacement_chain_is_recorded_before_its_dependents() {
    let (cloud, state) = deploy(&[
        provider("p").input("d", "1"),
        resource("a").provider("p"),
        resource("b").input_from("v", "a"),
        resource("d").provider("p"),
        component("e").depends_on("b"),
    ])
    .await;
    let after = [provider("p").input("d", "0"), resource("a"), resource("c").input_from("v", "a"), component("e")];
    // `e` depends on `b`, which depends on `a`, which waits for its provider.
    let ended = cloud.up(&state, &after).target("c").run().await.expect(Outcome::Succeeded);
    assert!(ended.entries().contains(&"c-1".to_owned()));
}

#[tokio::test]
async fn pending_delete_entry_takes_urn_of_its_replacement() {
    let (cloud, state) = deploy(&[resource("e").input("k", "1")]).await;
    let after = [resource("g").input("k", "2").alias("e")];
    cloud.fail("delete e-1", CallFailure::Error);
    let ended = cloud.up(&state, &after).run().await.expect(Outcome::Failed);
    let names: Vec<_> =
        ended.state.resources.iter().filter(|state| state.delete).map(|state| state.urn.name()).collect();
    assert_eq!((ended.entries(), names), (vec!["g-1".to_owned(), "e-1 (delete)".to_owned()], vec!["g"]));
    // The old name is available to another resource.
    let ended = cloud.clear_failures().up(&ended.state, &[resource("g").input("k", "2"), resource("e")]).run().await;
    assert_eq!(ended.expect(Outcome::Succeeded).entries(), ["g-1", "e-2"]);
}

#[tokio::test]
async fn target_depending_on_untargeted_new_resource_is_not_imported_or_read() {
    let (cloud, state) = deploy(&[resource("c")]).await;
    cloud.add("there");
    let imported = resource("b").depends_on("a").edit_goal(|goal| goal.import_id = ResourceId::new("there"));
    for dependent in [imported, get("b", "there").depends_on("a")] {
        let ended = cloud.up(&state, &[resource("a"), dependent]).target("b").run().await.expect(Outcome::Failed);
        assert_eq!((ended.entries(), ended.call_count("read there")), (vec!["c-1".to_owned()], 0));
        assert!(ended.errors[0].contains("b depends on a, which is not among the targets"), "{:?}", ended.errors);
    }
}

#[tokio::test]
async fn target_depending_on_its_recorded_dependent_is_rejected() {
    let (cloud, state) = deploy(&[resource("a"), resource("b").depends_on("a")]).await;
    let ended = cloud
        .up(&state, &[resource("b"), resource("a").depends_on("b")])
        .target("a")
        .run()
        .await
        .expect(Outcome::Failed);
    assert_eq!(ended.errors, ["a: a depends on b, which is out of scope and still depends on a"]);
}

#[tokio::test]
async fn pending_delete_entry_keeps_reference_to_replaced_provider() {
    let before = [provider("p").input("k", "1"), resource("b").input("k", "1").provider("p")];
    let (cloud, state) = deploy(&before).await;
    cloud.fail("delete b-1", CallFailure::Error);
    let after = [provider("q").input("k", "2").alias("p"), resource("b").input("k", "2").provider("q")];
    let ended = cloud.up(&state, &after).run().await.expect(Outcome::Failed);
    let old = ended.state.resources.iter().find(|state| state.id_text() == "b-1").unwrap();
    assert_eq!(old.provider.as_ref().unwrap().urn.name(), "p");
    let ended = cloud.clear_failures().up(&ended.state, &after).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.entries(), ["q", "b-2"]);
}

#[tokio::test]
async fn entry_out_of_scope_follows_rename_of_its_parent() {
    let c = resource("c").of_type("Other").parent("a");
    let (cloud, state) = deploy(&[resource("a").of_type("Other"), c, resource("e").parent("c")]).await;
    let [a, c, e] = ["a", "c", "e"].map(|name| entry(&state, name).urn.clone());
    // `c` is no longer registered: it is the parent of a resource out of scope.
    let program = [resource("a").alias_urn(a), resource("e").alias_urn(e).depends_on("a")];
    let ended = cloud.up(&state, &program).exclude("e").run().await.expect(Outcome::Succeeded);
    assert_eq!(
        (ended.changes(), ended.entries()),
        (vec![], vec!["a-1".to_owned(), "c-1".to_owned(), "e-1".to_owned()])
    );
    assert_ne!(entry(&ended.state, "c").urn, c);
}

#[tokio::test]
async fn excluded_child_of_renamed_parent_is_not_deleted() {
    let (cloud, state) = deploy(&[resource("a").of_type("Other"), resource("c").parent("a")]).await;
    let program = [resource("a").alias_urn(entry(&state, "a").urn.clone())];
    let ended = cloud.up(&state, &program).exclude("c").run().await.expect(Outcome::Succeeded);
    assert_eq!((ended.call_count("delete c-1"), ended.entries()), (0, vec!["a-1".to_owned(), "c-1".to_owned()]));
}

#[tokio::test]
async fn registered_urn_takes_precedence_over_inherited_alias() {
    for parent_first in [true, false] {
        let before = [resource("a").of_type("Other"), resource("o").parent("a")];
        let (cloud, state) = deploy(&before).await;
        // The old `o` is a child of an `Other`; the new one is a child of a `Thing`, which `a` now is, too.
        let a = resource("a").alias_urn(entry(&state, "a").urn.clone());
        let (a, s) = if parent_first { (a, resource("s").depends_on("a")) } else { (a.depends_on("o"), resource("s")) };
        let program = [s, resource("o").parent("s"), a];
        let ended = cloud.up(&state, &program).run().await.expect(Outcome::Succeeded);
        assert_eq!(ended.changes(), ["create s", "create o", "delete o-1"], "parent first: {parent_first}");
        assert_eq!(entry(&ended.state, "o").parent.as_ref(), Some(&entry(&ended.state, "s").urn));
    }
}

#[tokio::test]
async fn reference_follows_entry_out_of_scope_renamed_with_its_parent() {
    let before = [component("c"), resource("d").parent("c"), resource("e").input_from("v", "d")];
    let (cloud, state) = deploy(&before).await;
    let [c, d] = ["c", "d"].map(|name| entry(&state, name).urn.clone());
    // The program registers `d` before its former parent gets another URN.
    let held = cloud.hold("check e");
    let program = [
        resource("d").alias_urn(d),
        component("c").of_type("Other").alias_urn(c).depends_on("late"),
        resource("late"),
        resource("e").input_from("v", "d").input("w", "1"),
    ];
    let ended = cloud.up(&state, &program).exclude("d").run_held_at(held).await;
    let ended = ended.expect(Outcome::Succeeded);
    assert_eq!(entry(&ended.state, "e").dependencies, [entry(&ended.state, "d").urn.clone()]);
    assert_ne!(entry(&ended.state, "e").dependencies, entry(&state, "e").dependencies);
}

#[tokio::test]
async fn reference_follows_registered_child_renamed_with_its_parent() {
    let before =
        [component("a"), resource("b").parent("a"), resource("c").parent("b"), resource("d").input_from("v", "c")];
    let (cloud, state) = deploy(&before).await;
    let [a, b, c] = ["a", "b", "c"].map(|name| entry(&state, name).urn.clone());
    // The program registers `c` before its parent, which is out of scope, gets another URN with its own parent.
    let held = cloud.hold("create late");
    let program = [
        resource("b").alias_urn(b),
        resource("c").parent("b").alias_urn(c).input("v", "1"),
        resource("late"),
        component("a").of_type("Other").alias_urn(a).depends_on("late"),
        resource("d").input_from("v", "c").depends_on("a"),
    ];
    let ended = cloud.up(&state, &program).exclude("b").run_held_at(held).await;
    let ended = ended.expect(Outcome::Succeeded);
    assert!(entry(&ended.state, "d").dependencies.contains(&entry(&ended.state, "c").urn));
    assert_ne!(entry(&ended.state, "c").urn, entry(&state, "c").urn);
}

#[tokio::test]
async fn renamed_pending_delete_entry_leaves_no_dangling_references() {
    let (cloud, state) = deploy(&[resource("a").input("k", "1"), resource("b").depends_on("a")]).await;
    cloud.fail("create c", CallFailure::Error);
    let program =
        [resource("a").input("k", "2"), resource("c").depends_on("a"), resource("b").depends_on("a").depends_on("c")];
    let state = cloud.up(&state, &program).run().await.expect(Outcome::Failed).state;
    cloud.vanish("a-2");
    // The missing resource is created again under another name; the run ends before its dependents.
    let program = [
        resource("a2").alias("a").input("k", "2"),
        resource("c").depends_on("a2"),
        resource("b").depends_on("a2").depends_on("c"),
    ];
    let ended = cloud.up(&state, &program).refresh_first().run_program().run().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["a2-1", "a-1 (delete)", "b-1"]);
    assert_eq!(entry(&ended.state, "b").dependencies, []);
    cloud.clear_failures();
    let ended = cloud.up(&ended.state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["create c", "delete a-1"]);
}

#[tokio::test]
async fn pending_replacement_keeps_its_dependency_until_created() {
    let (cloud, state) =
        deploy(&[resource("b"), resource("c").input("d", "1").depends_on("b"), resource("f").input_from("v", "c")])
            .await;
    cloud.fail("create c", CallFailure::Error);
    let program = [resource("c").input("d", "2"), resource("f")];
    let ended = cloud.up(&state, &program).exclude("f").continue_on_error().run().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["b-1", "c-1 (pending replacement)", "f-1"]);
    cloud.clear_failures();
    let ended = cloud.up(&ended.state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!((ended.changes().len(), ended.entries().len()), (3, 2));
    assert_eq!(ended.changes()[2], "delete b-1");
}

/// Pulumi removes the entry as well, without a check of the resource.
#[tokio::test]
async fn deleted_with_kept_owner_is_removed_with_warning() {
    let deleted_with_a = || resource("b").deleted_with("a");
    let warnings = ["b: it was to be deleted with a, which stays, and is not recorded any more"];
    let programs = [
        vec![resource("a").protected(), deleted_with_a()],
        vec![resource("a"), resource("needs").depends_on("a").protected(), deleted_with_a()],
    ];
    for program in programs {
        let (cloud, state) = deploy(&program).await;
        let preview = cloud.destroy(&state).preview().run().await.expect(Outcome::Failed);
        assert_eq!(
            preview.warnings,
            ["b: it would be deleted with a, which stays, and would not be recorded any more"]
        );
        let ended = cloud.destroy(&state).run().await.expect(Outcome::Failed);
        assert_eq!((ended.changes(), ended.warnings), (Vec::new(), warnings.map(str::to_owned).to_vec()));
    }
    let (cloud, state) = deploy(&[resource("a"), deleted_with_a()]).await;
    cloud.fail("delete a-1", CallFailure::Error);
    let ended = cloud.destroy(&state).run().await.expect(Outcome::Failed);
    assert_eq!((ended.entries(), ended.warnings), (vec!["a-1".to_owned()], warnings.map(str::to_owned).to_vec()));
}

#[tokio::test]
async fn deleted_with_replaced_owner_emits_no_warning() {
    let program = |k: &str| [resource("a").input("k", k), resource("b").deleted_with("a")];
    let (cloud, state) = deploy(&program("1")).await;
    let ended = cloud.up(&state, &program("2")).run().await.expect(Outcome::Succeeded);
    assert_eq!((ended.entries(), &ended.warnings[..]), (vec!["a-2".to_owned(), "b-2".to_owned()], &[][..]));
    // A resource that leaves the program, with `deletedWith` on a replaced one, is not reported as forgotten either.
    let ended = cloud.up(&ended.state, &program("3")[..1]).run().await.expect(Outcome::Succeeded);
    assert_eq!((ended.entries(), ended.warnings), (vec!["a-3".to_owned()], Vec::new()));
}

#[tokio::test]
async fn target_does_not_delete_untargeted_pending_delete_entry() {
    let program = |k: &str, a: &str| [resource("a"), resource("b").input("k", k).depends_on(a), resource("c")];
    let (cloud, state) = deploy(&program("1", "a")).await;
    cloud.fail("delete b-1", CallFailure::Error);
    let ended = cloud.up(&state, &program("2", "c")).run().await.expect(Outcome::Failed);
    assert!(ended.entries().contains(&"b-1 (delete)".to_owned()), "{:?}", ended.entries());
    cloud.clear_failures();
    let ended = cloud.destroy(&ended.state).target("a").run().await.expect(Outcome::Failed);
    assert_eq!(ended.changes(), [""; 0]);
    assert_eq!(ended.errors, ["b: b would have to be deleted with a target that it depends on"]);
}

#[tokio::test]
async fn unmatched_exclude_fails_destroy_with_program() {
    let program = [resource("a"), resource("b")];
    let (cloud, state) = deploy(&program).await;
    let ended = cloud.destroy_with(&state, &program).exclude("bb").run().await.expect(Outcome::Failed);
    assert_eq!(ended.changes(), [""; 0]);
}

#[tokio::test]
async fn entry_with_delete_hooks_is_not_deleted() {
    let (cloud, mut state) = deploy(&[resource("a"), resource("b").depends_on("a")]).await;
    let entry = state.resources.iter_mut().find(|state| state.urn.name() == "a").unwrap();
    let hooks = [("BeforeDelete".to_owned(), vec!["backup".to_owned()])];
    Arc::make_mut(entry).resource_hooks = hooks.into();
    for run in [cloud.destroy(&state), cloud.destroy(&state).preview()] {
        let ended = run.run().await.expect(Outcome::Failed);
        assert_eq!(ended.changes(), [""; 0]);
        assert_eq!(ended.errors, ["a: it has delete hooks, which only its program can run"]);
    }
    for replaced in ["k", "d"] {
        let program = [resource("a").input(replaced, "1"), resource("b").depends_on("a")];
        let ended = cloud.up(&state, &program).run().await.expect(Outcome::Failed);
        assert_eq!(ended.changes(), [""; 0], "{replaced}");
    }
    let ended = cloud.up(&state, &[]).continue_on_error().run().await.expect(Outcome::Failed);
    assert_eq!((ended.changes(), ended.entries()), (vec!["delete b-1".to_owned()], vec!["a-1".to_owned()]));
    assert!(ended.hints[0].starts_with("delete it with `pulumi`"), "{:?}", ended.hints);
    let ended = cloud.up(&ended.state, &[resource("a")]).run().await.expect(Outcome::Succeeded);
    cloud.destroy(&ended.state).run().await.expect(Outcome::Succeeded);
}

#[tokio::test]
async fn delete_hooks_of_pending_replacement_are_ignored() {
    let program = |d: &str| [resource("a").input("d", d)];
    let (cloud, state) = deploy(&program("1")).await;
    cloud.fail("create a", CallFailure::Error);
    let mut ended = cloud.up(&state, &program("2")).run().await.expect(Outcome::Failed);
    let pending = ended.state.resources.iter_mut().find(|state| state.urn.name() == "a").unwrap();
    assert!(pending.pending_replacement);
    Arc::make_mut(pending).resource_hooks = [("AfterDelete".to_owned(), vec!["notify".to_owned()])].into();
    let state = ended.state;
    cloud.clear_failures();
    cloud.destroy(&state).preview().run().await.expect(Outcome::Succeeded);
    let ended = cloud.up(&state, &program("2")).run().await.expect(Outcome::Succeeded);
    assert_eq!((ended.changes(), ended.entries()), (vec!["create a".to_owned()], vec!["a-2".to_owned()]));
}

#[tokio::test]
async fn replacement_with_undeletable_dependent_deletes_nothing() {
    let program = |d: &str| {
        [
            resource("a").input("d", d),
            resource("b").depends_on("a").replace_with("a"),
            resource("c").input_from("k", "a"),
        ]
    };
    for name in ["a", "b"] {
        let (cloud, mut state) = deploy(&program("1")).await;
        let entry = state.resources.iter_mut().find(|state| state.urn.name() == name).unwrap();
        Arc::make_mut(entry).provider = None;
        let ended = cloud.up(&state, &program("2")).run().await.expect(Outcome::Failed);
        let subject = if name == "a" { "it" } else { name };
        let error = format!("a: {subject} is recorded without a provider, so it cannot be deleted");
        assert_eq!((ended.changes(), ended.errors), (Vec::new(), vec![error]));
    }
}

#[tokio::test]
async fn dependent_replacement_with_delete_hooks_deletes_nothing() {
    let program = |d: &str| [resource("a").input("d", d), resource("b").input_from("k", "a")];
    let (cloud, mut state) = deploy(&program("1")).await;
    let entry = state.resources.iter_mut().find(|state| state.urn.name() == "b").unwrap();
    Arc::make_mut(entry).resource_hooks = [("AfterDelete".to_owned(), vec!["notify".to_owned()])].into();
    let ended = cloud.up(&state, &program("2")).run().await.expect(Outcome::Failed);
    assert_eq!((ended.changes(), ended.entries()), (Vec::new(), vec!["a-1".to_owned(), "b-1".to_owned()]));
    assert_eq!(ended.errors, ["a: b has delete hooks, which only its program can run"]);
}

#[tokio::test]
async fn entry_without_provider_is_not_removed() {
    let (cloud, mut state) = deploy(&[resource("a"), resource("b")]).await;
    let entry = state.resources.iter_mut().find(|state| state.urn.name() == "a").unwrap();
    Arc::make_mut(entry).provider = None;
    let ended = cloud.destroy(&state).continue_on_error().run().await.expect(Outcome::Failed);
    assert_eq!(ended.errors, ["a: it is recorded without a provider, so it cannot be deleted"]);
    assert_eq!(ended.hints, ["delete it by other means, and remove it from the state with `sc state rm a`"]);
    assert_eq!(ended.entries(), ["a-1"]);
}
