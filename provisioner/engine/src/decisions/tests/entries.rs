//! Decisions about recorded entries: refreshes, imports, dependent replacements, deletions and their order.

use bridge::provider::{Alias, AliasParent, ReadReply};
use pulumi_proto::resource_id::{ReferenceId, ResourceId};

use crate::events::{RunMode, StepOp};
use state::EntryId;

use DeletedWithTarget::{IsDeleted, Stays};
use DeletionReason::{Removed, Replaced};
use RunMode::{Apply, Preview};

use super::*;
use crate::decisions::aliases;
use crate::decisions::change::Change;
use crate::decisions::deletions::*;
use crate::decisions::dependent_replacements::*;
use crate::decisions::identity::*;
use crate::decisions::imports::{ImportFailure, id_for_import, imported_state, owns_imported, read_op, should_import};
use crate::decisions::refresh::{refresh_result, refreshed_state, should_refresh_first};
use crate::decisions::scope::{Scope, UrnPattern};

fn urn(name: &str) -> Urn {
    Urn::new("s", "p", None, "t:m:T", name)
}

/// Returns a recorded resource, after `change`.
fn entry(name: &str, change: impl FnOnce(&mut ResourceState)) -> ResourceState {
    let mut state = ResourceState::new(urn(name), true);
    state.id = ResourceId::new(format!("{name}-1"));
    state.inputs = Arc::new(props(&[("v", 1.0)]));
    let default = Urn::new("s", "p", None, "pulumi:providers:t", "default");
    state.provider = Some(ProviderReference::new(default, "d-1"));
    change(&mut state);
    state
}

fn depends_on(state: &mut ResourceState, name: &str) {
    state.dependencies.push(urn(name));
}

/// Makes the input `v` depend on another resource.
fn input_from(state: &mut ResourceState, name: &str) {
    depends_on(state, name);
    state.property_dependencies.insert("v".to_owned(), vec![urn(name)]);
}

fn provider() -> ResourceState {
    let mut state = ResourceState::new(Urn::new("s", "p", None, "pulumi:providers:t", "q"), true);
    state.id = ResourceId::new("q-1");
    state
}

fn served_by_provider(state: &mut ResourceState) {
    state.provider = provider().as_provider_reference();
}

fn snapshot(states: impl IntoIterator<Item = ResourceState>) -> Vec<Entry> {
    (0..).zip(states).map(|(number, state)| (EntryId(number), Arc::new(state))).collect()
}

/// Returns the names of the entries for which a replacement of the first entry calls Diff, and the names of the
/// dependent replacements. Diff replaces the entries in `replaced`.
fn find_dependent_replacements(
    states: impl IntoIterator<Item = ResourceState>,
    replaced: &[&str],
) -> (Vec<String>, Vec<String>) {
    let snapshot = snapshot(states);
    let mut walk = DependentWalk::new(&snapshot[0], &snapshot, |_| false);
    let mut queried = Vec::new();
    loop {
        match walk.next() {
            WalkResult::CallDiff { entry, .. } => {
                let name = entry.1.urn.name();
                queried.push(name.to_owned());
                walk.record_reply(replaced.contains(&name));
            }
            WalkResult::Done(dependents) => {
                return (queried, dependents.iter().map(|dependent| dependent.entry.1.urn.name().to_owned()).collect());
            }
        }
    }
}

/// Returns the names of the deleted entries, batch by batch.
fn deleted(states: impl IntoIterator<Item = ResourceState>) -> Vec<Vec<String>> {
    let snapshot = snapshot(states);
    let to_delete = snapshot.iter().map(|(id, _)| *id).collect();
    let name =
        |id: &EntryId| snapshot.iter().find(|(other, _)| other == id).map(|(_, state)| state.urn.name().to_owned());
    deletion_batches(&snapshot, &to_delete).iter().map(|batch| batch.iter().filter_map(name).collect()).collect()
}

/// Returns the names in the order of a destroy, with `*` after each pending delete.
fn pending_deletes_first(states: impl IntoIterator<Item = ResourceState>) -> Vec<String> {
    let snapshot = snapshot(states);
    let confirmed = |entry| snapshot.iter().any(|(id, state)| *id == entry && !state.delete);
    let mark = |state: &ResourceState| if state.delete { "*" } else { "" };
    let ordered = order_pending_deletes_first(&snapshot, confirmed);
    ordered.iter().map(|(_, state)| format!("{}{}", state.urn.name(), mark(state))).collect()
}

#[test]
fn pending_delete_moves_before_dependents_but_not_before_its_dependencies() {
    let pending_delete = |change: fn(&mut ResourceState)| entry("a", move |a| (change(a), a.delete = true).1);
    let (a, b) = (|| entry("a", |_| {}), || entry("b", |b| depends_on(b, "a")));
    assert_eq!(pending_deletes_first([a(), b(), pending_delete(|_| {})]), ["a", "a*", "b"]);
    let unregistered = entry("c", |_| {});
    assert_eq!(
        pending_deletes_first([a(), b(), unregistered, pending_delete(|a| depends_on(a, "c"))]),
        ["a", "c", "a*", "b"]
    );
    let dependent = entry("c", |c| depends_on(c, "b"));
    assert_eq!(
        pending_deletes_first([a(), b(), dependent, pending_delete(|a| depends_on(a, "c"))]),
        ["a", "b", "c", "a*"]
    );
}

#[test]
fn row_07_diff_decides_whether_dependents_with_input_from_root_are_replaced() {
    let states = || {
        [
            entry("a", |_| {}),
            entry("b", |b| input_from(b, "a")),
            entry("c", |c| input_from(c, "b")),
            entry("d", |d| depends_on(d, "a")),
        ]
    };
    assert_eq!(
        find_dependent_replacements(states(), &["b", "c"]),
        (vec!["b".into(), "c".into()], vec!["b".into(), "c".into()])
    );
    assert_eq!(
        find_dependent_replacements(states(), &[]).0,
        ["b"],
        "no Diff for dependents of a resource that is not replaced"
    );
}

#[test]
fn row_07_no_diff_for_dependent_whose_input_is_not_recorded() {
    let without_input = entry("b", |b| (input_from(b, "a"), b.inputs = Arc::default()).1);
    assert_eq!(find_dependent_replacements([entry("a", |_| {}), without_input], &["b"]), (vec![], vec![]));
}

#[test]
fn row_07_external_resources_and_components_are_never_dependent_replacements() {
    let external = entry("b", |b| (input_from(b, "a"), b.external = true).1);
    let component = entry("c", |c| (input_from(c, "a"), c.custom = false).1);
    assert_eq!(find_dependent_replacements([entry("a", |_| {}), external, component], &["b", "c"]), (vec![], vec![]));
}

#[test]
fn row_09_unregistered_pending_replacement_is_removed_without_call() {
    let pending = entry("a", |a| a.pending_replacement = true);
    assert_eq!(deletion_step(&pending, false), Some(StepOp::RemovePendingReplace));
    assert_eq!(deletion_kind(&pending, Removed, Stays, Apply), DeletionKind::RemoveFromState);
}

#[test]
fn row_10_unregistered_entry_is_deleted() {
    assert_eq!(deletion_step(&entry("a", |_| {}), false), Some(StepOp::Delete));
    assert_eq!(deletion_step(&entry("a", |_| {}), true), None);
    assert_eq!(deletion_kind(&entry("a", |_| {}), Removed, Stays, Apply), DeletionKind::CallProvider);
    assert_eq!(
        deletion_kind(&entry("a", |_| {}), Removed, Stays, Preview),
        DeletionKind::RemoveFromState,
        "a preview calls no provider"
    );
}

#[test]
fn row_11_resources_are_deleted_before_their_provider() {
    assert_eq!(deletion_step(&provider(), false), Some(StepOp::Delete));
    assert_eq!(deleted([provider(), entry("a", served_by_provider)]), [["a"], ["q"]]);
}

#[test]
fn row_12_dependents_are_deleted_first_and_independent_entries_at_once() {
    let chain = [entry("a", |_| {}), entry("b", |b| depends_on(b, "a")), entry("c", |c| depends_on(c, "b"))];
    assert_eq!(deleted(chain), [["c"], ["b"], ["a"]]);
    let fork = [entry("a", |_| {}), entry("b", |b| depends_on(b, "a")), entry("c", |c| depends_on(c, "a"))];
    assert_eq!(deleted(fork), [vec!["b", "c"], vec!["a"]]);
}

#[test]
fn row_12_pending_delete_may_be_child_of_a_child_of_its_replacement() {
    let component = entry("a", |a| a.custom = false);
    let child = entry("b", |b| b.parent = Some(entry("a", |_| {}).urn));
    let pending_delete = entry("a", |a| (a.custom, a.delete, a.parent) = (false, true, Some(entry("b", |_| {}).urn)));
    assert_eq!(
        deleted([component, child, pending_delete, entry("c", |c| depends_on(c, "a"))]),
        [["c"], ["a"], ["b"], ["a"]]
    );
}

fn reply(id: &str, outputs: Option<PropertyMap>, inputs: Option<PropertyMap>) -> ReadReply {
    ReadReply { id: ResourceId::new(id), outputs, inputs, refresh_before_update: false }
}

#[test]
fn row_13_unchanged_resource_is_same() {
    let old = entry("a", |_| {});
    let read = refreshed_state(&old, reply("a-1", Some(PropertyMap::new()), Some(props(&[("v", 1.0)]))), Vec::new());
    assert_eq!(read, Some(old));
    assert_eq!(refresh_result(&Change::default()), StepOp::Same);
}

#[test]
fn row_14_read_state_is_recorded_regardless_of_diff() {
    let old = entry("a", |a| a.init_errors = vec!["cold".into()]);
    let read =
        refreshed_state(&old, reply("a-2", Some(props(&[("out", 2.0)])), Some(props(&[("v", 2.0)]))), Vec::new())
            .unwrap();
    assert_eq!(
        (ResourceId::text(read.id.as_ref()), &*read.inputs, &*read.outputs),
        ("a-2", &props(&[("v", 2.0)]), &props(&[("out", 2.0)]))
    );
    assert_eq!(read.init_errors, ["cold"]);
    assert_eq!(refresh_result(&Change::replacement(&["v".to_owned()])), StepOp::Update);
    let without_inputs = refreshed_state(&old, reply("a-1", Some(PropertyMap::new()), None), Vec::new()).unwrap();
    assert_eq!(without_inputs.inputs, old.inputs, "without inputs in the reply, the old ones stay");
}

#[test]
fn row_15_reply_without_id_or_outputs_means_deleted() {
    let old = entry("a", |_| {});
    assert_eq!(refreshed_state(&old, reply("", Some(PropertyMap::new()), None), Vec::new()), None);
    assert_eq!(refreshed_state(&old, reply("a-1", None, None), Vec::new()), None);
}

#[test]
fn row_16_init_errors_of_read_are_recorded() {
    let read = refreshed_state(&entry("a", |_| {}), reply("a-1", Some(PropertyMap::new()), None), vec!["cold".into()])
        .unwrap();
    assert_eq!(read.init_errors, ["cold"]);
}

#[test]
fn recorded_init_errors_stay_after_those_of_a_read() {
    let after = |recorded: Vec<String>, read: &[&str]| {
        let old = entry("a", |a| a.init_errors.clone_from(&recorded));
        let read = read.iter().map(|error| (*error).to_owned()).collect();
        refreshed_state(&old, reply("a-1", Some(PropertyMap::new()), None), read).unwrap().init_errors
    };
    let cold = || vec!["cold".to_owned()];
    assert_eq!(after(cold(), &[]), ["cold"]);
    assert_eq!(after(cold(), &["cold"]), ["cold"]);
    assert_eq!(after(cold(), &["1 of 2 ready"]), ["1 of 2 ready", "cold"]);
    let many: Vec<String> = (0..16).map(|number| number.to_string()).collect();
    let errors = after(many, &["new"]);
    assert_eq!((errors.len(), &*errors[0]), (16, "new"), "repeated reads do not add up");
}

#[test]
fn row_17_refresh_reads_all_entries_in_scope() {
    assert!(should_refresh_first(&entry("a", |_| {}), true, true));
    assert!(should_refresh_first(&entry("a", |a| a.delete = true), true, true), "pending deletes, too");
    assert!(!should_refresh_first(&entry("a", |_| {}), true, false));
}

#[test]
fn row_18_without_refresh_only_refresh_before_update_is_read() {
    assert!(!should_refresh_first(&entry("a", |_| {}), false, true));
    assert!(should_refresh_first(&entry("a", |a| a.refresh_before_update = true), false, true));
    assert!(
        !should_refresh_first(&entry("a", |a| a.refresh_before_update = true), false, false),
        "not if it is out of scope"
    );
    assert!(!should_refresh_first(&entry("a", |a| (a.refresh_before_update, a.delete) = (true, true)), false, true));
}

#[test]
fn row_20_resource_is_imported_once() {
    assert!(should_import(Operation::Update, ResourceKind::Custom, ResourceId::new("x").as_ref(), None));
    assert!(
        !should_import(Operation::Update, ResourceKind::Custom, ResourceId::new("").as_ref(), None),
        "no import id"
    );
    assert!(
        !should_import(Operation::Refresh, ResourceKind::Custom, ResourceId::new("x").as_ref(), None),
        "only an update imports"
    );
    let imported = entry("a", |a| (a.id, a.import_id) = (ResourceId::new("x-in-full"), ResourceId::new("x")));
    assert!(
        !should_import(Operation::Update, ResourceKind::Custom, ResourceId::new("x").as_ref(), Some(&imported)),
        "although the provider returned another id"
    );
}

#[test]
fn row_22_missing_resource_or_missing_inputs_are_not_imported() {
    let wanted = entry("a", |a| a.id = ResourceId::new("x"));
    let read = |id: &str, inputs, outputs| {
        let reply = ReadReply { id: ResourceId::new(id), inputs, outputs, refresh_before_update: true };
        imported_state(&wanted, reply, Vec::new())
    };
    let some = || Some(props(&[("v", 2.0)]));
    assert_eq!(read("x", None, None), Err(ImportFailure::Missing));
    assert_eq!(read("", some(), None), Err(ImportFailure::Missing));
    assert_eq!(read("x", None, some()), Err(ImportFailure::WithoutInputs));
    let none = || Some(PropertyMap::new());
    assert_eq!(read("", none(), none()), Err(ImportFailure::Missing), "as Pulumi's SDK for Python says it");
    assert!(read("x", none(), none()).is_ok(), "a resource without properties");
    let found = read("x-in-full", some(), some()).expect("the resource exists");
    assert_eq!((&found.id, &*found.outputs), (&ResourceId::new("x-in-full"), &props(&[("v", 2.0)])));
    assert!(found.refresh_before_update, "as in the reply of the provider");
    assert_eq!(read("", some(), some()).map(|found| found.id), Ok(ResourceId::new("x")), "the id of the import");
}

#[test]
fn row_23_import_with_other_id_replaces_managed_entry() {
    assert!(should_import(
        Operation::Update,
        ResourceKind::Custom,
        ResourceId::new("x").as_ref(),
        Some(&entry("a", |_| {}))
    ));
    assert!(!should_import(
        Operation::Update,
        ResourceKind::Custom,
        ResourceId::new("a-1").as_ref(),
        Some(&entry("a", |_| {}))
    ));
    assert!(
        should_import(
            Operation::Update,
            ResourceKind::Custom,
            ResourceId::new("a-1").as_ref(),
            Some(&entry("a", |a| a.external = true))
        ),
        "it was external"
    );
    let pending_delete = entry("a", |a| (a.delete, a.protect) = (true, true));
    assert_eq!(deletion_step(&pending_delete, true), Some(StepOp::DeleteReplaced));
    assert_eq!(
        deletion_kind(&pending_delete, Replaced, Stays, Apply),
        DeletionKind::CallProvider,
        "only live entries are protected"
    );
}

#[test]
fn row_24_import_id_takes_precedence_over_id() {
    assert_eq!(id_for_import(&entry("a", |_| {})), ResourceId::new("a-1").as_ref());
    assert_eq!(id_for_import(&entry("a", |a| a.import_id = ResourceId::new("x"))), ResourceId::new("x").as_ref());
}

#[test]
fn row_31_resources_of_replaced_provider_are_replaced_without_diff() {
    let states = || [provider(), entry("a", served_by_provider), entry("b", |b| input_from(b, "a"))];
    assert_eq!(find_dependent_replacements(states(), &["b"]), (vec!["b".into()], vec!["a".into(), "b".into()]));
    assert_eq!(find_dependent_replacements(states(), &[]).1, ["a"]);
}

#[test]
fn row_32_renamed_provider_is_no_provider_change() {
    let (old, new) = (provider().as_provider_reference(), provider().as_provider_reference());
    let new = new.map(|new| ProviderReference::new(urn("s"), new.id));
    let change = ProviderChange::between;
    assert_eq!(change(ResourceKind::Custom, old.as_ref(), old.as_ref(), None), ProviderChange::None);
    assert_eq!(change(ResourceKind::Custom, old.as_ref(), new.as_ref(), None), ProviderChange::Other);
    assert_eq!(change(ResourceKind::Custom, old.as_ref(), new.as_ref(), Some(&provider().urn)), ProviderChange::None);
    assert_eq!(
        change(ResourceKind::Custom, None, new.as_ref(), None),
        ProviderChange::Kind,
        "from component to custom"
    );
    assert_eq!(
        change(ResourceKind::Component, old.as_ref(), None, None),
        ProviderChange::Kind,
        "from custom to component"
    );
    assert_eq!(change(ResourceKind::Component, None, new.as_ref(), None), ProviderChange::None);
}

#[test]
fn row_35_protected_entry_is_not_deleted() {
    let protected = entry("a", |a| a.protect = true);
    assert_eq!(deletion_step(&protected, false), Some(StepOp::Delete));
    for mode in [Apply, Preview] {
        assert_eq!(deletion_kind(&protected, Removed, Stays, mode), DeletionKind::Refused(Undeletable::Protected));
    }
}

#[test]
fn row_10_undeletable_entry_is_kept() {
    let with_hook = |kind: &str| {
        let hooks = [(kind.to_owned(), vec!["backup".to_owned()])];
        entry("a", |a| a.resource_hooks = hooks.into())
    };
    let without_provider = entry("a", |a| a.provider = None);
    let rows = [
        (with_hook("BeforeDelete"), Undeletable::HasDeleteHooks),
        (with_hook("AfterDelete"), Undeletable::HasDeleteHooks),
        (without_provider, Undeletable::WithoutProvider),
    ];
    for (entry, reason) in rows {
        for mode in [Apply, Preview] {
            assert_eq!(deletion_kind(&entry, Removed, Stays, mode), DeletionKind::Refused(reason));
            assert_eq!(
                deletion_kind(&entry, Replaced, Stays, mode),
                DeletionKind::Refused(reason),
                "not if it is replaced, either"
            );
        }
        assert_eq!(
            deletion_kind(&entry, Removed, IsDeleted, Apply),
            DeletionKind::RemoveFromState,
            "the resource of `deletedWith` is deleted"
        );
    }
    assert_eq!(deletion_kind(&with_hook("BeforeCreate"), Removed, Stays, Apply), DeletionKind::CallProvider);
}

#[test]
fn row_40_dependents_of_target_are_deleted_only_with_target_dependents() {
    let snapshot = snapshot([entry("c", |_| {}), entry("a", |_| {}), entry("b", |b| input_from(b, "a"))]);
    let scope =
        |target_dependents| Scope { targets: vec![UrnPattern::new("a")], target_dependents, ..Scope::default() };
    let names = |target_dependents| {
        let targeted = scope(target_dependents).targeted_entries(&snapshot);
        let allowed = snapshot.iter().filter(|(id, _)| targeted.allowed.contains(id));
        let names = |entry: &Entry| entry.1.urn.name().to_owned();
        (allowed.map(names).collect::<Vec<_>>(), targeted.roots.into_iter().map(names).collect::<Vec<_>>())
    };
    for target_dependents in [false, true] {
        // Dependents are included in both cases.
        assert_eq!(names(target_dependents), (vec!["a".into(), "b".into()], vec!["a".into(), "b".into()]));
    }
    assert!(scope(false).is_deletion_refused(&urn("b")), "the run refuses it and deletes nothing");
    assert!(!scope(true).is_deletion_refused(&urn("b")));
}

#[test]
fn row_41_external_resource_is_read() {
    assert_eq!(read_op(None, &ReferenceId::from("x")), StepOp::Read);
    assert_eq!(
        read_op(Some(&entry("a", |a| a.external = true)), &ReferenceId::from("x")),
        StepOp::Read,
        "even with another id"
    );
    let unregistered = entry("a", |a| a.external = true);
    assert_eq!(deletion_step(&unregistered, false), Some(StepOp::Discard));
}

#[test]
fn row_42_managed_entry_is_deleted_only_if_read_has_other_id() {
    assert_eq!(read_op(Some(&entry("a", |_| {})), &ReferenceId::from("x")), StepOp::ReadReplacement);
    assert_eq!(read_op(Some(&entry("a", |_| {})), &ReferenceId::Unknown), StepOp::ReadReplacement);
    assert_eq!(read_op(Some(&entry("a", |_| {})), &ReferenceId::from("a-1")), StepOp::Read);
}

#[test]
fn row_43_external_entry_is_discarded_after_create() {
    let pending_delete = entry("a", |a| (a.external, a.delete) = (true, true));
    assert_eq!(deletion_step(&pending_delete, true), Some(StepOp::DiscardReplaced));
}

#[test]
fn row_44_retained_entry_is_removed_without_call() {
    for reason in [Removed, Replaced] {
        assert_eq!(
            deletion_kind(&entry("a", |a| a.retain_on_delete = true), reason, Stays, Apply),
            DeletionKind::RemoveFromState
        );
    }
}

#[test]
fn row_45_deleted_with_deleted_resource_needs_no_call() {
    assert_eq!(deletion_kind(&entry("b", |_| {}), Removed, IsDeleted, Apply), DeletionKind::RemoveFromState);
    assert_eq!(deleted([entry("a", |_| {}), entry("b", |b| b.deleted_with = Some(urn("a")))]), [["b"], ["a"]]);
    let dependent = entry("b", |b| b.deleted_with = Some(urn("a")));
    assert_eq!(
        find_dependent_replacements([entry("a", |_| {}), dependent], &[]),
        (vec![], vec!["b".into()]),
        "and is replaced without a Diff"
    );
}

#[test]
fn row_48_pending_delete_is_deleted_even_if_registered() {
    let pending_delete = entry("a", |a| a.delete = true);
    for registered in [false, true] {
        assert_eq!(deletion_step(&pending_delete, registered), Some(StepOp::DeleteReplaced));
    }
    assert_eq!(deletion_kind(&pending_delete, Replaced, Stays, Apply), DeletionKind::CallProvider);
}

#[test]
fn row_49_candidate_urns_are_own_urn_then_aliases() {
    let alias = |name: &str| Alias::Spec {
        name: Some(name.to_owned()),
        type_token: None,
        stack: None,
        project: None,
        parent: AliasParent::Same,
    };
    let mut goal = Goal::custom(TypeToken::new("t:m:T"), "b", PropertyMap::new());
    goal.aliases = vec![alias("a"), Alias::Urn(urn("z")), alias("b")];
    assert_eq!(aliases::candidate_urns(&urn("b"), &goal, |_| None), [urn("b"), urn("a"), urn("z")]);
}

#[test]
fn row_49_candidate_urns_of_child_include_old_parent() {
    let (parent, before) = (urn("new"), urn("old"));
    let child = |parent: &Urn, name: &str| Urn::new("s", "p", Some(parent), "t:m:T", name);
    let mut goal = Goal::custom(TypeToken::new("t:m:T"), "new-child", PropertyMap::new());
    goal.parent = Some(parent.clone());
    let found = aliases::candidate_urns(&child(&parent, "new-child"), &goal, |urn| (*urn == parent).then_some(&before));
    assert_eq!(found, [child(&parent, "new-child"), child(&before, "old-child")]);
}

#[test]
fn row_54_replace_with_key_requires_replaced_resource() {
    let mut goal = Goal::custom(TypeToken::new("t:m:T"), "b", PropertyMap::new());
    goal.replace_with = vec![urn("a")];
    goal.deleted_with = Some(urn("c"));
    let key = |names: &[&str]| replace_with_key(&goal, |urn| names.contains(&urn.name()));
    assert_eq!(key(&[]), None);
    assert_eq!(key(&["a", "c"]), Some("replaceWith"));
    assert_eq!(key(&["c"]), Some("deletedWith"));
}

#[test]
fn resource_of_another_entry_is_owned_by_it() {
    let planned = entry("b", |b| b.id = ResourceId::new("a-1"));
    type Change = fn(&mut ResourceState);
    let table: [(&str, bool, Change); 5] = [
        ("live entry", true, |_| {}),
        ("pending delete: its deletion would delete the imported resource", true, |a| a.delete = true),
        ("read resource", false, |a| a.external = true),
        ("its deletion leaves the resource alone", false, |a| a.retain_on_delete = true),
        ("entry of the same URN", false, |a| a.urn = entry("b", |_| {}).urn),
    ];
    for (name, expected, change) in table {
        assert_eq!(owns_imported(&entry("a", change), &planned), expected, "{name}");
    }
}

#[test]
fn entries_have_the_same_id_under_the_id_of_an_import_too() {
    let other = entry("b", |b| b.id = ResourceId::new("a-1"));
    type Change = fn(&mut ResourceState);
    let table: [(&str, bool, Change); 5] = [
        ("same id", true, |_| {}),
        ("imported with this id", true, |a| (a.id, a.import_id) = (ResourceId::new("other"), ResourceId::new("a-1"))),
        ("other id", false, |a| a.id = ResourceId::new("a-2")),
        ("no id", false, |a| a.id = None),
        ("other type", false, |a| a.type_token = TypeToken::new("t:m:Other")),
    ];
    for (name, expected, change) in table {
        assert_eq!(have_same_id(&entry("a", change), &other), expected, "{name}");
    }
}

#[test]
fn only_an_existing_resource_of_a_plugin_is_named() {
    type Change = fn(&mut ResourceState);
    let table: [(&str, bool, Change); 6] = [
        ("live entry", true, |_| {}),
        ("pending delete", true, |a| a.delete = true),
        ("read resource", true, |a| a.external = true),
        ("deleted already", false, |a| a.pending_replacement = true),
        ("component", false, |a| a.custom = false),
        ("view", false, |a| a.view_of = Some(urn("b"))),
    ];
    for (name, expected, change) in table {
        assert_eq!(names_resource(&entry("a", change)), expected, "{name}");
    }
}

#[test]
fn id_of_three_live_entries_identifies_nothing() {
    assert_eq!([1, 2, 3, 4].map(is_shared_by_many), [false, false, true, true]);
}

#[test]
fn outputs_differ_in_public_values_only() {
    let secret = |value: f64| [("result".to_owned(), PropertyValue::secret(value.into()))].into();
    let table: [(&str, &[&str], PropertyMap, PropertyMap); 5] = [
        ("equal", &[], props(&[("max", 1.0)]), props(&[("max", 1.0)])),
        ("other value", &["max"], props(&[("max", 1.0), ("min", 0.0)]), props(&[("max", 2.0), ("min", 0.0)])),
        ("missing value", &["max"], props(&[("max", 1.0)]), PropertyMap::new()),
        ("null is missing", &[], [("max".to_owned(), PropertyValue::Null)].into(), PropertyMap::new()),
        ("other secret", &[], secret(1.0), secret(2.0)),
    ];
    for (name, expected, outputs, others) in table {
        assert_eq!(differing_outputs(&outputs, &others).into_iter().collect::<Vec<_>>(), expected, "{name}");
        assert_eq!(differing_outputs(&others, &outputs).into_iter().collect::<Vec<_>>(), expected, "{name}");
    }
}

#[test]
fn reading_with_a_value_of_the_other_entry_shows_that_resource() {
    let with = |max: f64, etag: f64| entry("a", |a| a.outputs = Arc::new(props(&[("max", max), ("etag", etag)])));
    let (old, new) = (with(1.0, 1.0), with(2.0, 2.0));
    let table = [
        ("as sent", false, props(&[("max", 1.0), ("etag", 1.0)])),
        ("changed otherwise", false, props(&[("max", 3.0), ("etag", 1.0)])),
        ("taken over, with an echo", true, props(&[("max", 2.0), ("etag", 1.0)])),
        ("taken over", true, props(&[("max", 2.0), ("etag", 3.0)])),
    ];
    for (name, expected, read) in table {
        assert_eq!(shows_other(&read, &old, &new), expected, "{name}");
    }
}
