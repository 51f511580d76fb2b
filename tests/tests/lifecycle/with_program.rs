//! Tests of refresh and destroy with the program (docs/spec/engine-semantics.md#5.2 and #5.5): providers and components
//! are updated, resources are read and deleted, but not created or changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::RegistrationResult;
use engine::events::{Outcome, StepOp};
use pulumi_proto::property::PropertyValue;
use pulumi_proto::resource_id::ResourceId;

use crate::deploy;
use crate::fake_cloud::{CallFailure, map};
use crate::program::{component, get, provider, resource};
use crate::run::entry;

#[tokio::test]
async fn refresh_reads_with_current_provider_configuration() {
    let program = |v: &str| [provider("p").input("v", v), resource("a").provider("p"), resource("b").provider("p")];
    let (cloud, state) = deploy(&program("old")).await;
    let ended = cloud.refresh_with(&state, &program("new")).run().await.expect(Outcome::Succeeded);
    assert_eq!(
        (ended.call_count("configure p"), ended.call_count("read a-1"), ended.call_count("read b-1")),
        (1, 1, 1)
    );
    assert_eq!(*entry(&ended.state, "p").inputs, map(&[("v", "new")]));
    assert_eq!(entry(&ended.state, "p").id, entry(&state, "p").id);
}

#[tokio::test]
async fn refresh_with_program_changes_no_resource() {
    let (cloud, state) = deploy(&[resource("a").input("v", "1"), resource("gone"), component("g")]).await;
    let program = [
        resource("a").input("k", "2"),
        resource("new").input_from("v", "a"),
        resource("newer").input_from("v", "new"),
        component("h"),
    ];
    let ended = cloud.refresh_with(&state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0]);
    // A resource missing in the program is read with its recorded provider; a component of the program is recorded.
    assert_eq!(
        ended.entries().into_iter().collect::<BTreeSet<_>>(),
        ["a-1", "h", "gone-1", "g"].map(String::from).into()
    );
    assert_eq!(ended.call_count("read gone-1"), 1);
    assert_eq!([ended.result("new"), ended.result("newer")], [RegistrationResult::Skipped; 2]);
}

#[tokio::test]
async fn program_of_refresh_receives_read_outputs() {
    let (cloud, state) = deploy(&[resource("a").input("v", "1"), resource("b").input_from("v", "a")]).await;
    cloud.drift("a-1", map(&[("v", "9")]));
    let program = [resource("a").input("v", "1"), resource("b").input_from("v", "a")];
    let ended = cloud.refresh_with(&state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(*entry(&ended.state, "a").inputs, map(&[("v", "9")]));
    // The inputs of `b` are recorded unchanged, as a refresh changes no resource.
    assert_eq!(entry(&ended.state, "b").inputs, entry(&state, "b").inputs);
    assert_eq!((ended.counts.get(&StepOp::Update), ended.counts.get(&StepOp::Same)), (Some(&1), Some(&2)));
}

#[tokio::test]
async fn resource_deleted_outside_is_removed_with_references_to_it() {
    let program = [resource("a"), resource("b").input_from("v", "a"), resource("c").depends_on("b")];
    let (cloud, state) = deploy(&program).await;
    cloud.fail("read b-1", CallFailure::Missing);
    let ended = cloud.refresh_with(&state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.entries(), ["a-1", "c-1"]);
    assert_eq!(entry(&ended.state, "c").dependencies, []);
    assert_eq!(ended.result("b"), RegistrationResult::Skipped);
}

#[tokio::test]
async fn refresh_ignores_delete_before_replace_of_provider() {
    let program = |d: &str| [provider("p").input("d", d), resource("a").provider("p")];
    let (cloud, state) = deploy(&program("1")).await;
    let ended = cloud.refresh_with(&state, &program("2")).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0]);
    let ended = cloud.up(&ended.state, &program("2")).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.entries().len(), 2);
}

#[tokio::test]
async fn failed_read_ends_refresh_and_keeps_entry() {
    let program = [resource("a"), resource("b").depends_on("a"), resource("c")];
    let (cloud, state) = deploy(&program).await;
    cloud.fail("read a-1", CallFailure::Error);
    let ended = cloud.refresh_with(&state, &program).parallel(1).run().await.expect(Outcome::Failed);
    assert_eq!(ended.call_count("read b-1"), 0);
    assert_eq!(ended.entries().len(), 3);
    let ended = cloud.refresh_with(&state, &program).continue_on_error().run().await.expect(Outcome::Failed);
    assert_eq!((ended.call_count("read b-1"), ended.call_count("read c-1")), (0, 1));
    assert_eq!(ended.entries().len(), 3);
}

#[tokio::test]
async fn targeted_refresh_reads_only_targets() {
    let program = [resource("a"), resource("b"), resource("c").input_from("v", "b")];
    let (cloud, state) = deploy(&program).await;
    let ended = cloud.refresh_with(&state, &program).target("b").run().await.expect(Outcome::Succeeded);
    let reads = ["read a-1", "read b-1", "read c-1"].map(|read| ended.call_count(read));
    assert_eq!(reads, [0, 1, 0]);
    assert_eq!(ended.entries().len(), 3);
}

#[tokio::test]
async fn preview_of_refresh_reads_and_changes_nothing() {
    let (cloud, state) = deploy(&[resource("a").input("v", "1")]).await;
    cloud.drift("a-1", map(&[("v", "9")]));
    let ended =
        cloud.refresh_with(&state, &[resource("a"), resource("b")]).preview().run().await.expect(Outcome::Succeeded);
    assert_eq!((ended.call_count("read a-1"), ended.state), (1, state));
}

#[tokio::test]
async fn update_with_refresh_uses_read_state() {
    let program = [resource("a").input("v", "1"), resource("b").input_from("v", "a"), resource("c")];
    let (cloud, state) = deploy(&program).await;
    cloud.drift("a-1", map(&[("v", "9")]));
    cloud.fail("read c-1", CallFailure::Missing);
    let ended = cloud.up(&state, &program).refresh_first().run_program().parallel(1).run().await;
    let ended = ended.expect(Outcome::Succeeded);
    let of_a = ended.calls.iter().filter(|call| call.name == "a").map(|call| call.verb);
    assert_eq!(of_a.collect::<Vec<_>>(), ["read", "diff", "check", "diff", "update"]);
    assert_eq!(*entry(&ended.state, "a").inputs, map(&[("v", "1")]));
    assert_eq!(entry(&ended.state, "c").id, ResourceId::new("c-2"));
}

#[tokio::test]
async fn unregistered_resource_is_not_refreshed_before_delete() {
    let (cloud, state) = deploy(&[resource("a"), resource("b")]).await;
    let ended = cloud.up(&state, &[resource("a")]).refresh_first().run_program().run().await.expect(Outcome::Succeeded);
    assert_eq!((ended.call_count("read b-1"), ended.call_count("delete b-1")), (0, 1));
}

/// Shows: engine.md#refresh-and-destroy-with-the-program "A new configuration of the same provider resource is used in
///   any case."
#[tokio::test]
async fn destroy_deletes_with_current_provider_configuration() {
    let program = |v: &str| {
        [provider("p").input("v", v), resource("a").provider("p"), resource("b").provider("p").input_from("v", "a")]
    };
    let (cloud, state) = deploy(&program("old")).await;
    let ended = cloud.destroy_with(&state, &program("new")).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["delete b-1", "delete a-1"]);
    assert_eq!((ended.call_count("configure p"), ended.call_count("check a"), ended.call_count("diff a")), (1, 0, 0));
    assert_eq!(ended.entries(), [""; 0]);
}

#[tokio::test]
async fn destroy_creates_nothing_and_removes_registered_providers_and_components() {
    let (cloud, state) = deploy(&[resource("a"), resource("x")]).await;
    cloud.add("there");
    let program = [
        provider("q"),
        component("g"),
        resource("a").parent("g").alias_spec("a", "Thing", None),
        resource("n").provider("q"),
        get("seen", "there"),
    ];
    let ended = cloud.destroy_with(&state, &program).run().await.expect(Outcome::Succeeded);
    let mut changes = ended.changes();
    changes.sort();
    assert_eq!(changes, ["delete a-1", "delete x-1"]);
    assert_eq!(ended.result("n"), RegistrationResult::Skipped);
    assert_eq!((ended.entries(), cloud.existing().contains("there")), (vec![], true));
}

#[tokio::test]
async fn failed_program_prevents_deletes_of_destroy() {
    let (cloud, state) = deploy(&[resource("a")]).await;
    let ended = cloud.destroy_with(&state, &[resource("a")]).fail_program().run().await.expect(Outcome::Failed);
    assert_eq!((ended.changes().len(), ended.entries()), (0, vec!["a-1".to_owned()]));
}

#[tokio::test]
async fn destroy_with_program_keeps_protected_resource() {
    let program = [resource("a").protected(), resource("b")];
    let (cloud, state) = deploy(&program).await;
    let ended = cloud.destroy_with(&state, &program).run().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["a-1"]);
}

#[tokio::test]
async fn destroy_uses_recorded_dependencies() {
    let before = [resource("a"), component("g"), resource("b").input_from("v", "a").parent("g")];
    let (cloud, state) = deploy(&before).await;
    let after = [
        resource("b").alias_spec("b", "Thing", Some(entry(&state, "g").urn.clone())),
        resource("a").input_from("v", "b"),
    ];
    let ended = cloud.destroy_with(&state, &after).run().await.expect(Outcome::Succeeded);
    assert_eq!((ended.changes(), ended.entries()), (vec!["delete b-1".to_owned(), "delete a-1".to_owned()], vec![]));
}

#[tokio::test]
async fn destroy_completes_after_provider_rename() {
    let (cloud, state) = deploy(&[provider("p"), resource("a").provider("p")]).await;
    let after = [provider("q").alias("p"), resource("a").provider("q")];
    let ended = cloud.destroy_with(&state, &after).run().await.expect(Outcome::Succeeded);
    assert_eq!((ended.changes(), ended.entries()), (vec!["delete a-1".to_owned()], vec![]));
}

#[tokio::test]
async fn update_does_not_refresh_resources_of_replaced_provider() {
    let program = |d: &str| [provider("p").input("d", d), resource("a").provider("p")];
    let (cloud, state) = deploy(&program("1")).await;
    let ended = cloud.up(&state, &program("2")).refresh_first().run_program().run().await.expect(Outcome::Succeeded);
    assert_eq!(
        (ended.call_count("read a-1"), ended.changes()),
        (0, vec!["delete a-1".to_owned(), "create a".to_owned()])
    );
}

#[tokio::test]
async fn destroy_deletes_with_the_configuration_of_the_program() {
    for key in ["v", "k"] {
        let program = |value: &str| [provider("p").input(key, value), resource("a").provider("p")];
        let (cloud, state) = deploy(&program("1")).await;
        let ended = cloud.destroy_with(&state, &program("2")).run().await.expect(Outcome::Succeeded);
        assert_eq!(ended.changes(), ["delete a-1"]);
        let delete = ended.calls.iter().find(|call| call.verb == "delete").unwrap();
        assert_eq!(cloud.configuration_of(delete).get(key), Some(&"2".into()));
    }
}

#[tokio::test]
async fn destroy_orders_dependency_after_its_new_provider() {
    let before = [provider("p"), provider("q"), resource("a").provider("p"), resource("b").depends_on("a")];
    let (cloud, state) = deploy(&before).await;
    // `b` is registered while CheckConfig of the provider that has to delete `a` is still running.
    let held = cloud.hold("checkconfig q");
    let after = [provider("p"), provider("q"), resource("a").provider("q"), resource("b")];
    let ended = cloud.destroy_with(&state, &after).run_held_at(held).await;
    assert_eq!(ended.expect(Outcome::Succeeded).changes(), ["delete b-1", "delete a-1"]);
}

#[tokio::test]
async fn refresh_does_not_set_a_dependent_as_parent() {
    let (cloud, state) = deploy(&[resource("a"), resource("c").input_from("v", "a")]).await;
    let was = entry(&state, "a").urn.clone();
    let program = [resource("c").input("v", "1"), resource("a").parent("c").alias_urn(was.clone())];
    let ended = cloud.refresh_with(&state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(entry(&ended.state, "a").urn, was);
    let ended = cloud.up(&ended.state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(entry(&ended.state, "a").parent.as_ref(), Some(&entry(&ended.state, "c").urn));
}

#[tokio::test]
async fn refresh_records_resource_options_of_program() {
    let before = [resource("b"), resource("a").input_from("v", "b"), resource("e"), provider("p")];
    let (cloud, state) = deploy(&before).await;
    // `e`, the `deletedWith` of `a` in the program, follows `a` in the recorded state.
    let now = resource("a").input_from("v", "e").input("w", "1").provider("p").deleted_with("e").protected().edit_goal(
        |goal| {
            goal.retain_on_delete = Some(true);
            goal.ignore_changes = vec!["w".to_owned()];
        },
    );
    let program = [resource("e"), provider("p"), now, resource("b").input_from("v", "a")];
    let ended = cloud.refresh_with(&state, &program).run().await.expect(Outcome::Succeeded);
    let (was, a) = (entry(&state, "a"), entry(&ended.state, "a"));
    assert_eq!(a.deleted_with.as_ref(), Some(&entry(&ended.state, "e").urn));
    assert_eq!((a.protect, a.retain_on_delete, &a.ignore_changes), (true, true, &vec!["w".to_owned()]));
    assert_eq!(a.provider, entry(&ended.state, "p").as_provider_reference());
    assert_eq!(
        (&a.inputs, &a.dependencies),
        (&was.inputs, &was.dependencies),
        "inputs and dependencies of the resource are unchanged"
    );
    assert_eq!(entry(&ended.state, "b").dependencies, []);
}

#[tokio::test]
async fn refresh_ignores_options_that_reference_missing_resource() {
    // A refresh does not create `n`.
    let (cloud, state) = deploy(&[resource("b"), resource("a").input_from("v", "b")]).await;
    let program = [resource("b"), resource("n"), resource("a").deleted_with("n").protected()];
    let ended = cloud.refresh_with(&state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.state, state);
}

#[tokio::test]
async fn refreshed_entry_is_ordered_after_unrefreshed_reference() {
    let before = [
        resource("t"),
        resource("b").input_from("v", "t"),
        resource("c").input_from("v", "b"),
        resource("d").input_from("v", "t"),
    ];
    let (cloud, state) = deploy(&before).await;
    let [t, b, c, d] = before;
    // `c` does not depend on the target itself, so it is not read.
    let program = [t, b, c, d.deleted_with("c")];
    let ended = cloud.refresh_with(&state, &program).target("t").with_dependents().run().await;
    let ended = ended.expect(Outcome::Succeeded);
    assert_eq!((ended.call_count("read c-1"), ended.call_count("read d-1")), (0, 1));
    assert_eq!(entry(&ended.state, "d").deleted_with.as_ref(), Some(&entry(&ended.state, "c").urn));
}

#[tokio::test]
async fn refreshed_entry_does_not_reference_pending_delete_entry() {
    let b = |k: &str| resource("b").input("k", k);
    let (cloud, state) = deploy(&[b("1"), resource("a")]).await;
    cloud.fail("delete b-1", CallFailure::Error);
    let ended = cloud.up(&state, &[b("2"), resource("a")]).run().await.expect(Outcome::Failed);
    assert!(ended.entries().contains(&"b-1 (delete)".to_owned()), "{:?}", ended.entries());
    cloud.clear_failures();
    cloud.vanish("b-2");
    let program = [b("2"), resource("a").deleted_with("b")];
    let ended = cloud.refresh_with(&ended.state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(entry(&ended.state, "a").deleted_with, None);
}

#[tokio::test]
async fn entry_that_keeps_its_old_urn_in_refresh_keeps_children() {
    let (cloud, state) = deploy(&[resource("a"), resource("c").parent("a")]).await;
    // `n` is not created, so it cannot be the `deletedWith` of `b`.
    let program = [resource("n"), resource("b").alias("a").deleted_with("n"), resource("c").parent("b")];
    let ended = cloud.refresh_with(&state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!((ended.call_count("read a-1"), ended.call_count("read c-1")), (1, 1));
    assert_eq!(ended.state, state);
}

#[tokio::test]
async fn refresh_does_not_create_resource_in_place_of_component() {
    let (cloud, state) = deploy(&[component("g")]).await;
    let urn = entry(&state, "g").urn.clone();
    let ended = cloud.refresh_with(&state, &[resource("g").alias_urn(urn)]).run().await.expect(Outcome::Succeeded);
    assert_eq!(entry(&ended.state, "g"), entry(&state, "g"));
}

#[tokio::test]
async fn additional_secret_outputs_apply_to_read_outputs() {
    let (cloud, state) = deploy(&[resource("a").input("v", "1")]).await;
    cloud.drift("a-1", map(&[("v", "9")]));
    let program =
        [resource("a").input("v", "1").edit_goal(|goal| goal.additional_secret_outputs = vec!["v".to_owned()])];
    let ended = cloud.refresh_with(&state, &program).run().await.expect(Outcome::Succeeded);
    assert!(matches!(entry(&ended.state, "a").outputs["v"], PropertyValue::Secret(_)));
}

#[tokio::test]
async fn destroy_after_refresh_uses_recorded_dependencies() {
    let (cloud, state) = deploy(&[resource("b"), resource("a").input_from("v", "b")]).await;
    let ended = cloud.refresh_with(&state, &[resource("a"), resource("b")]).run().await.expect(Outcome::Succeeded);
    let ended = cloud.destroy(&ended.state).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["delete a-1", "delete b-1"]);
}

#[tokio::test]
async fn refresh_does_not_record_trigger_or_import_id() {
    let program = |trigger: &str, import: &str| {
        let (trigger, import) = (trigger.to_owned(), import.to_owned());
        resource("a").edit_goal(move |goal| {
            goal.replacement_trigger = Some(trigger.as_str().into());
            goal.import_id = ResourceId::new(import.as_str());
        })
    };
    let (cloud, state) = deploy(&[program("1", "")]).await;
    cloud.add("there");
    let ended = cloud.refresh_with(&state, &[program("2", "there")]).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.state, state);
}

#[tokio::test]
async fn external_resource_becoming_secret_is_not_an_update() {
    let (cloud, state) = deploy(&[]).await;
    cloud.add("there");
    cloud.drift("there", map(&[("w", "1")]));
    let mut state = cloud.up(&state, &[get("a", "there")]).run().await.expect(Outcome::Succeeded).state;
    let seen = state.resources.iter_mut().find(|seen| seen.external).unwrap();
    Arc::make_mut(seen).additional_secret_outputs = vec!["w".to_owned()];
    let read = cloud.refresh(&state).run().await.expect(Outcome::Succeeded);
    assert!(matches!(entry(&read.state, "a").outputs["w"], PropertyValue::Secret(_)));
    let again = cloud.refresh(&read.state).run().await.expect(Outcome::Succeeded);
    assert_eq!(again.counts.get(&StepOp::Update), None);
}

#[tokio::test]
async fn destroy_uses_protect_of_program() {
    let (cloud, state) = deploy(&[resource("a"), resource("b").protected()]).await;
    let program = [resource("a").protected(), resource("b")];
    let ended = cloud.destroy_with(&state, &program).continue_on_error().run().await.expect(Outcome::Failed);
    assert_eq!((ended.changes(), ended.entries()), (vec!["delete b-1".to_owned()], vec!["a-1".to_owned()]));
    assert!(entry(&ended.state, "a").protect);
}

#[tokio::test]
async fn destroy_uses_retain_on_delete_and_deleted_with_of_program() {
    let kept = |name| resource(name).edit_goal(|goal| goal.retain_on_delete = Some(true));
    let (cloud, state) =
        deploy(&[resource("t"), kept("a"), resource("b"), resource("c").deleted_with("t"), resource("d")]).await;
    let program = [resource("t"), resource("a"), kept("b"), resource("c"), resource("d").deleted_with("t")];
    let ended = cloud.destroy_with(&state, &program).parallel(1).run().await.expect(Outcome::Succeeded);
    let mut changes = ended.changes();
    changes.sort();
    assert_eq!(changes, ["delete a-1", "delete c-1", "delete t-1"]);
    assert_eq!(ended.entries(), [""; 0]);
}

#[tokio::test]
async fn destroy_deletes_dependents_before_pending_delete_entry() {
    // The pending delete may itself refer to a resource that the program has dropped.
    for old in [resource("a").input("k", "1"), resource("a").input("k", "1").parent("g")] {
        let before = [provider("p"), component("g"), old.provider("p"), resource("b").input_from("v", "a")];
        let (cloud, state) = deploy(&before).await;
        cloud.fail("delete a-1", CallFailure::Error);
        cloud.fail("update b", CallFailure::Error);
        let new = resource("a").input("k", "2").alias_urn(entry(&state, "a").urn.clone());
        let after = [provider("p"), new, resource("b").input_from("v", "a")];
        let ended = cloud.up(&state, &after).continue_on_error().run().await.expect(Outcome::Failed);
        assert!(ended.entries().contains(&"a-1 (delete)".to_owned()), "{:?}", ended.entries());
        cloud.clear_failures();
        let ended = cloud.destroy_with(&ended.state, &after).run().await.expect(Outcome::Succeeded);
        assert_eq!(ended.changes()[0], "delete b-1");
    }
}

#[tokio::test]
async fn destroy_keeps_pending_delete_entry_with_remaining_dependent() {
    let (cloud, state) = deploy(&[resource("a"), resource("b").input_from("v", "a"), resource("c")]).await;
    cloud.add("there");
    cloud.fail("delete b", CallFailure::Error);
    // A resource that the program now only reads is no longer managed: its entry is deleted, but after its dependents.
    let program = [get("a", "there"), resource("c")];
    let ended = cloud.destroy_with(&state, &program).continue_on_error().run().await.expect(Outcome::Failed);
    assert_eq!(ended.entries(), ["there", "a-1 (delete)", "b-1"]);
    cloud.clear_failures();
    let ended = cloud.destroy_with(&ended.state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["delete b-1", "delete a-1"]);
}

#[tokio::test]
async fn refresh_orders_new_component_after_unchanged_dependency() {
    let (cloud, state) = deploy(&[component("b")]).await;
    // A refresh does not create `a`, so `b`, which now depends on it, stays as it is recorded.
    let program = [resource("a"), component("b").depends_on("a"), component("c").depends_on("b")];
    let ended = cloud.refresh_with(&state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.state.resources.last().unwrap().urn.name(), "c");
}

#[tokio::test]
async fn destroy_keeps_entry_out_of_scope_with_unchanged_dependency() {
    let (cloud, state) = deploy(&[resource("e"), resource("f").depends_on("e")]).await;
    // A destroy does not create `d`, so `e`, which now refers to it under a new name, stays as it is recorded.
    let program = [resource("d"), resource("e2").alias("e").replace_with("d"), resource("f").depends_on("e2")];
    let ended = cloud.destroy_with(&state, &program).exclude("f").run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0]);
    assert_eq!(ended.entries(), ["e-1", "f-1"]);
}

#[tokio::test]
async fn destroy_completes_with_child_renamed_with_its_parent() {
    let (cloud, state) = deploy(&[component("p"), resource("c").parent("p"), resource("f").depends_on("c")]).await;
    let parent = component("p").of_type("OtherThing").alias_spec("p", "Thing", None);
    let child = resource("c2").alias_urn(entry(&state, "c").urn.clone()).parent("p").replace_with("d");
    let program = [parent, resource("d"), child, resource("f").depends_on("c2")];
    let ended = cloud.destroy_with(&state, &program).exclude("f").run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0]);
}

#[tokio::test]
async fn destroy_keeps_external_dependency_of_protected_resource() {
    let protected = resource("b").input_from("v", "a").edit_goal_as("protected", |goal| goal.protect = Some(true));
    let (cloud, state) = deploy(&[resource("a"), protected]).await;
    cloud.add("there-a");
    let run = cloud.destroy_with(&state, &[get("a", "there-a")]).exclude_protected();
    let ended = run.run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0]);
    assert!(ended.entries().contains(&"a-1 (delete)".to_owned()), "{:?}", ended.entries());
}

#[tokio::test]
async fn destroy_keeps_what_the_program_protects_or_retains_after_skipped_dependency() {
    let (cloud, state) = deploy(&[resource("a"), resource("b").input_from("v", "a"), resource("c")]).await;
    // `new` is not recorded, so the destroy skips it, and with it all that depends on it.
    let program = [
        resource("new"),
        resource("a").depends_on("new"),
        resource("b").input_from("v", "a").protected(),
        resource("c").depends_on("new").retained(),
    ];
    let ended = cloud.destroy_with(&state, &program).run().await.expect(Outcome::Failed);
    assert_eq!(ended.changes(), [""; 0]);
    assert_eq!(ended.entries(), ["a-1", "b-1"]);
    assert_eq!(ended.errors, ["b: b is protected and cannot be deleted"]);
}

#[tokio::test]
async fn destroy_keeps_what_the_program_protects_or_retains_after_a_failed_dependency() {
    let (cloud, state) = deploy(&[resource("a"), resource("b"), resource("c")]).await;
    let fork = cloud.fork(&cloud.state());
    cloud.fail("read a-1", CallFailure::Error);
    let program = [resource("a"), resource("b").depends_on("a").protected(), resource("c").depends_on("a").retained()];
    let run = cloud.destroy_with(&state, &program).refresh_first().continue_on_error();
    let ended = run.run().await.expect(Outcome::Failed);
    assert_eq!(ended.changes(), ["delete a-1"]);
    assert_eq!(cloud.existing(), ["b-1", "c-1"].map(str::to_owned).into());
    let excluded = fork.destroy_with(&state, &program).exclude("b").run().await;
    assert!(!entry(&excluded.state, "b").protect, "an entry out of scope stays as it is recorded");
}

/// Shows: engine.md#differences-from-pulumi "The child of a parent that stays under its recorded URN, in a destroy or
///   out of scope, is also looked up below the parent's URN in the program."
#[tokio::test]
async fn child_is_found_below_a_parent_that_stays_under_its_recorded_urn() {
    let within_a = Some(resource("a").urn_within(None));
    let (cloud, state) = deploy(&[resource("a"), resource("b").parent("a"), resource("c").parent("a")]).await;
    // `c` leaves `a`, so `b` has its recorded URN below `c`.
    let c = || resource("c").alias_spec("c", "Thing", within_a.clone());
    let program = [resource("a"), c(), resource("b").parent("c").protected()];
    let ended = cloud.fork(&cloud.state()).destroy_with(&state, &program).run().await.expect(Outcome::Failed);
    assert!(!ended.changes().contains(&"delete b-1".to_owned()), "{:?}", ended.changes());
    let program = [resource("a"), c(), resource("b").parent("c").input("v", "2")];
    let ended = cloud.up(&state, &program).target("b").run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), ["update b-1"]);
    let ended = cloud.up(&ended.state, &program).run().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0]);
}

#[tokio::test]
async fn program_of_destroy_protects_a_recorded_dependent_of_a_target() {
    let program = [resource("a").input("v", "1"), resource("b").input_from("v", "a")];
    let (cloud, state) = deploy(&program).await;
    let protecting = [resource("a").input("v", "1"), resource("b").input("v", "none").protected()];
    let run = cloud.destroy_with(&state, &protecting).target("a").with_dependents();
    let ended = run.run().await.expect(Outcome::Failed);
    assert!(!ended.changes().contains(&"delete b-1".to_owned()), "{:?}", ended.changes());
}
