//! What becomes of recorded entries: what is read, taken over, condemned, deleted, and in which order.

use bridge::provider::{Alias, AliasParent, ReadReply};
use pulumi_proto::resource_id::{ReferenceId, ResourceId};

use crate::events::StepOp;
use state::EntryId;

use DeletionReason::{Replaced, Unwanted};
use Owner::{IsDeleted, Stays};
use RunMode::{Apply, Preview};

use super::*;
use crate::decisions::aliases;
use crate::decisions::change::Change;
use crate::decisions::deletions::*;
use crate::decisions::dependent_replacements::*;
use crate::decisions::imports::{NotTaken, as_found, known_id, must_import, read_op};
use crate::decisions::refresh::{as_read, is_read_first, shown_as};
use crate::decisions::scope::{Scope, UrnPattern};
use crate::run_mode::RunMode;

fn urn(name: &str) -> Urn {
    Urn::new("s", "p", None, "t:m:T", name)
}

/// A recorded resource, with what is special about it.
fn entry(name: &str, special: impl FnOnce(&mut ResourceState)) -> ResourceState {
    let mut state = ResourceState::new(urn(name), true);
    state.id = ResourceId::new(format!("{name}-1"));
    state.inputs = Arc::new(props(&[("v", 1.0)]));
    let default = Urn::new("s", "p", None, "pulumi:providers:t", "default");
    state.provider = Some(ProviderReference::new(default, "d-1"));
    special(&mut state);
    state
}

fn after(state: &mut ResourceState, name: &str) {
    state.dependencies.push(urn(name));
}

/// The input `v` came from there.
fn of(state: &mut ResourceState, name: &str) {
    after(state, name);
    state.property_dependencies.insert("v".to_owned(), vec![urn(name)]);
}

fn provider() -> ResourceState {
    let mut state = ResourceState::new(Urn::new("s", "p", None, "pulumi:providers:t", "q"), true);
    state.id = ResourceId::new("q-1");
    state
}

fn served(state: &mut ResourceState) {
    state.provider = provider().as_provider_reference();
}

fn snapshot(states: impl IntoIterator<Item = ResourceState>) -> Vec<Entry> {
    (0..).zip(states).map(|(number, state)| (EntryId(number), Arc::new(state))).collect()
}

/// Who is probed by a replacement of the first entry, and who goes with it, if everyone that is probed would be replaced
/// whose name is among `replaced`.
fn condemned(states: impl IntoIterator<Item = ResourceState>, replaced: &[&str]) -> (Vec<String>, Vec<String>) {
    let snapshot = snapshot(states);
    let mut walk = DependentWalk::new(&snapshot[0], &snapshot, |_| false);
    let mut probed = Vec::new();
    loop {
        match walk.next() {
            Probe::WouldReplace { entry, .. } => {
                let name = entry.1.urn.name();
                probed.push(name.to_owned());
                walk.answer(replaced.contains(&name));
            }
            Probe::Done(condemned) => {
                return (probed, condemned.iter().map(|condemned| condemned.entry.1.urn.name().to_owned()).collect());
            }
        }
    }
}

/// The names of what is deleted, wave by wave.
fn deleted(states: impl IntoIterator<Item = ResourceState>) -> Vec<Vec<String>> {
    let snapshot = snapshot(states);
    let doomed = snapshot.iter().map(|(id, _)| *id).collect();
    let name =
        |id: &EntryId| snapshot.iter().find(|(other, _)| other == id).map(|(_, state)| state.urn.name().to_owned());
    waves(&snapshot, &doomed).iter().map(|wave| wave.iter().filter_map(name).collect()).collect()
}

/// The names in the order in which a destroy takes them, `*` behind a copy that awaits its deletion, which nobody confirmed.
fn with_copies_first(states: impl IntoIterator<Item = ResourceState>) -> Vec<String> {
    let snapshot = snapshot(states);
    let confirmed = |entry| snapshot.iter().any(|(id, state)| *id == entry && !state.delete);
    let mark = |state: &ResourceState| if state.delete { "*" } else { "" };
    let ordered = superseded_first(&snapshot, confirmed);
    ordered.iter().map(|(_, state)| format!("{}{}", state.urn.name(), mark(state))).collect()
}

#[test]
fn a_copy_comes_before_what_hangs_on_it_unless_it_needs_that_itself() {
    let copy = |special: fn(&mut ResourceState)| entry("a", move |a| (special(a), a.delete = true).1);
    let (a, b) = (|| entry("a", |_| {}), || entry("b", |b| after(b, "a")));
    assert_eq!(with_copies_first([a(), b(), copy(|_| {})]), ["a", "a*", "b"]);
    let dropped = entry("c", |_| {});
    assert_eq!(with_copies_first([a(), b(), dropped, copy(|a| after(a, "c"))]), ["a", "c", "a*", "b"]);
    let swapped = entry("c", |c| after(c, "b"));
    assert_eq!(with_copies_first([a(), b(), swapped, copy(|a| after(a, "c"))]), ["a", "b", "c", "a*"]);
}

#[test]
fn row_07_what_has_an_input_of_the_root_is_probed_and_what_would_be_replaced_is_condemned() {
    let states =
        || [entry("a", |_| {}), entry("b", |b| of(b, "a")), entry("c", |c| of(c, "b")), entry("d", |d| after(d, "a"))];
    assert_eq!(condemned(states(), &["b", "c"]), (vec!["b".into(), "c".into()], vec!["b".into(), "c".into()]));
    assert_eq!(condemned(states(), &[]).0, ["b"], "what hangs on a survivor is not asked");
}

#[test]
fn row_07_what_an_input_that_is_ignored_came_from_is_not_asked_for() {
    let ignored = entry("b", |b| (of(b, "a"), b.inputs = Arc::default()).1);
    assert_eq!(condemned([entry("a", |_| {}), ignored], &["b"]), (vec![], vec![]));
}

#[test]
fn row_07_what_is_only_read_or_is_a_component_is_never_condemned() {
    let external = entry("b", |b| (of(b, "a"), b.external = true).1);
    let component = entry("c", |c| (of(c, "a"), c.custom = false).1);
    assert_eq!(condemned([entry("a", |_| {}), external, component], &["b", "c"]), (vec![], vec![]));
}

#[test]
fn row_09_what_is_gone_and_not_wanted_is_forgotten() {
    let gone = entry("a", |a| a.pending_replacement = true);
    assert_eq!(deletion_step(&gone, false), Some(StepOp::RemovePendingReplace));
    assert_eq!(deletion(&gone, Unwanted, Stays, Apply), Deletion::Forget);
}

#[test]
fn row_10_what_nobody_registered_is_deleted() {
    assert_eq!(deletion_step(&entry("a", |_| {}), false), Some(StepOp::Delete));
    assert_eq!(deletion_step(&entry("a", |_| {}), true), None);
    assert_eq!(deletion(&entry("a", |_| {}), Unwanted, Stays, Apply), Deletion::CallProvider);
    assert_eq!(deletion(&entry("a", |_| {}), Unwanted, Stays, Preview), Deletion::Forget, "not in a preview");
}

#[test]
fn row_11_resources_go_before_their_provider() {
    assert_eq!(deletion_step(&provider(), false), Some(StepOp::Delete));
    assert_eq!(deleted([provider(), entry("a", served)]), [["a"], ["q"]]);
}

#[test]
fn row_12_dependents_go_first_and_what_is_independent_at_once() {
    let chain = [entry("a", |_| {}), entry("b", |b| after(b, "a")), entry("c", |c| after(c, "b"))];
    assert_eq!(deleted(chain), [["c"], ["b"], ["a"]]);
    let fork = [entry("a", |_| {}), entry("b", |b| after(b, "a")), entry("c", |c| after(c, "a"))];
    assert_eq!(deleted(fork), [vec!["b", "c"], vec!["a"]]);
}

#[test]
fn row_12_a_copy_may_be_within_what_is_now_within_its_successor() {
    let component = entry("a", |a| a.custom = false);
    let inside = entry("b", |b| b.parent = Some(entry("a", |_| {}).urn));
    let copy = entry("a", |a| (a.custom, a.delete, a.parent) = (false, true, Some(entry("b", |_| {}).urn)));
    assert_eq!(deleted([component, inside, copy, entry("c", |c| after(c, "a"))]), [["c"], ["a"], ["b"], ["a"]]);
}

fn reply(id: &str, outputs: Option<PropertyMap>, inputs: Option<PropertyMap>) -> ReadReply {
    ReadReply { id: ResourceId::new(id), outputs, inputs, refresh_before_update: false }
}

#[test]
fn row_13_what_did_not_change_is_the_same() {
    let old = entry("a", |_| {});
    let read = as_read(&old, reply("a-1", Some(PropertyMap::new()), Some(props(&[("v", 1.0)]))), Vec::new());
    assert_eq!(read, Some(old));
    assert_eq!(shown_as(&Change::default()), StepOp::Same);
}

#[test]
fn row_14_what_changed_is_taken_over_whatever_diff_says() {
    let old = entry("a", |a| a.init_errors = vec!["cold".into()]);
    let read =
        as_read(&old, reply("a-2", Some(props(&[("out", 2.0)])), Some(props(&[("v", 2.0)]))), Vec::new()).unwrap();
    assert_eq!(
        (ResourceId::text(read.id.as_ref()), &*read.inputs, &*read.outputs),
        ("a-2", &props(&[("v", 2.0)]), &props(&[("out", 2.0)]))
    );
    assert_eq!(read.init_errors, [""; 0]);
    assert_eq!(shown_as(&Change::replacing(&["v".to_owned()])), StepOp::Update);
    let without_inputs = as_read(&old, reply("a-1", Some(PropertyMap::new()), None), Vec::new()).unwrap();
    assert_eq!(without_inputs.inputs, old.inputs, "without a word about the inputs the old ones stay");
}

#[test]
fn row_15_an_answer_without_id_or_outputs_means_that_it_is_gone() {
    let old = entry("a", |_| {});
    assert_eq!(as_read(&old, reply("", Some(PropertyMap::new()), None), Vec::new()), None);
    assert_eq!(as_read(&old, reply("a-1", None, None), Vec::new()), None);
}

#[test]
fn row_16_what_does_not_work_is_remembered() {
    let read = as_read(&entry("a", |_| {}), reply("a-1", Some(PropertyMap::new()), None), vec!["cold".into()]).unwrap();
    assert_eq!(read.init_errors, ["cold"]);
}

#[test]
fn row_17_everything_in_scope_is_read_where_the_user_asks_for_it() {
    assert!(is_read_first(&entry("a", |_| {}), true, true));
    assert!(is_read_first(&entry("a", |a| a.delete = true), true, true), "what awaits its deletion, too");
    assert!(!is_read_first(&entry("a", |_| {}), true, false));
}

#[test]
fn row_18_else_only_what_asked_for_it() {
    assert!(!is_read_first(&entry("a", |_| {}), false, true));
    assert!(is_read_first(&entry("a", |a| a.refresh_before_update = true), false, true));
    assert!(
        !is_read_first(&entry("a", |a| a.refresh_before_update = true), false, false),
        "out of scope not even that"
    );
    assert!(!is_read_first(&entry("a", |a| (a.refresh_before_update, a.delete) = (true, true)), false, true));
}

#[test]
fn row_20_what_is_not_recorded_is_taken_over_and_only_once() {
    assert!(must_import(Operation::Update, ResourceKind::Custom, ResourceId::new("x").as_ref(), None));
    assert!(
        !must_import(Operation::Update, ResourceKind::Custom, ResourceId::new("").as_ref(), None),
        "nobody asked for it"
    );
    assert!(
        !must_import(Operation::Refresh, ResourceKind::Custom, ResourceId::new("x").as_ref(), None),
        "only an update takes anything over"
    );
    let imported = entry("a", |a| (a.id, a.import_id) = (ResourceId::new("x-in-full"), ResourceId::new("x")));
    assert!(
        !must_import(Operation::Update, ResourceKind::Custom, ResourceId::new("x").as_ref(), Some(&imported)),
        "though the provider calls it otherwise"
    );
}

#[test]
fn row_22_only_what_is_there_and_has_inputs_is_taken_over() {
    let wanted = entry("a", |a| a.id = ResourceId::new("x"));
    let read = |id: &str, inputs, outputs| {
        let reply = ReadReply { id: ResourceId::new(id), inputs, outputs, refresh_before_update: true };
        as_found(&wanted, reply, &PropertyMap::from([("v".into(), PropertyValue::secret(1.0.into()))]), Vec::new())
    };
    let some = || Some(props(&[("v", 2.0)]));
    assert_eq!(read("x", None, None), Err(NotTaken::Missing));
    assert_eq!(read("", some(), None), Err(NotTaken::Missing));
    assert_eq!(read("x", None, some()), Err(NotTaken::WithoutInputs));
    let found = read("x-in-full", some(), some()).expect("it is there");
    assert_eq!((&found.id, &*found.outputs), (&ResourceId::new("x-in-full"), &props(&[("v", 2.0)])));
    assert_eq!(found.inputs["v"], PropertyValue::secret(2.0.into()), "the program calls it secret");
    assert!(found.refresh_before_update, "as its provider asks");
    assert_eq!(read("", some(), some()).map(|found| found.id), Ok(ResourceId::new("x")), "as it was asked for");
}

#[test]
fn row_23_another_id_is_taken_over_in_place_of_what_is_managed() {
    assert!(must_import(
        Operation::Update,
        ResourceKind::Custom,
        ResourceId::new("x").as_ref(),
        Some(&entry("a", |_| {}))
    ));
    assert!(!must_import(
        Operation::Update,
        ResourceKind::Custom,
        ResourceId::new("a-1").as_ref(),
        Some(&entry("a", |_| {}))
    ));
    assert!(
        must_import(
            Operation::Update,
            ResourceKind::Custom,
            ResourceId::new("a-1").as_ref(),
            Some(&entry("a", |a| a.external = true))
        ),
        "it was only read"
    );
    let superseded = entry("a", |a| (a.delete, a.protect) = (true, true));
    assert_eq!(deletion_step(&superseded, true), Some(StepOp::DeleteReplaced));
    assert_eq!(
        deletion(&superseded, Replaced, Stays, Apply),
        Deletion::CallProvider,
        "protection is of what has its place"
    );
}

#[test]
fn row_24_the_import_command_knows_a_resource_by_the_id_it_was_imported_under() {
    assert_eq!(known_id(&entry("a", |_| {})), ResourceId::new("a-1").as_ref());
    assert_eq!(known_id(&entry("a", |a| a.import_id = ResourceId::new("x"))), ResourceId::new("x").as_ref());
}

#[test]
fn row_31_what_a_provider_serves_goes_with_it_unasked() {
    let states = || [provider(), entry("a", served), entry("b", |b| of(b, "a"))];
    assert_eq!(condemned(states(), &["b"]), (vec!["b".into()], vec!["a".into(), "b".into()]));
    assert_eq!(condemned(states(), &[]).1, ["a"]);
}

#[test]
fn row_32_a_provider_is_another_one_unless_it_only_has_another_name() {
    let (old, new) = (provider().as_provider_reference(), provider().as_provider_reference());
    let new = new.map(|new| ProviderReference::new(urn("s"), new.id));
    let change = ProviderChange::between;
    assert_eq!(change(ResourceKind::Custom, old.as_ref(), old.as_ref(), None), ProviderChange::None);
    assert_eq!(change(ResourceKind::Custom, old.as_ref(), new.as_ref(), None), ProviderChange::Other);
    assert_eq!(change(ResourceKind::Custom, old.as_ref(), new.as_ref(), Some(&provider().urn)), ProviderChange::None);
    assert_eq!(change(ResourceKind::Custom, None, new.as_ref(), None), ProviderChange::Kind, "it was a component");
    assert_eq!(change(ResourceKind::Component, old.as_ref(), None, None), ProviderChange::Kind, "it is one now");
    assert_eq!(change(ResourceKind::Component, None, new.as_ref(), None), ProviderChange::None);
}

#[test]
fn row_35_what_is_protected_is_not_deleted() {
    let protected = entry("a", |a| a.protect = true);
    assert_eq!(deletion_step(&protected, false), Some(StepOp::Delete));
    for mode in [Apply, Preview] {
        assert_eq!(deletion(&protected, Unwanted, Stays, mode), Deletion::Refused(Undeletable::Protected));
    }
}

#[test]
fn row_10_what_nobody_can_delete_stays() {
    let hooked = |kind: &str| {
        let hooks = [(kind.to_owned(), vec!["backup".to_owned()])];
        entry("a", |a| a.resource_hooks = hooks.into())
    };
    let ancient = entry("a", |a| a.provider = None);
    let rows = [
        (hooked("BeforeDelete"), Undeletable::Hooked),
        (hooked("AfterDelete"), Undeletable::Hooked),
        (ancient, Undeletable::Unserved),
    ];
    for (entry, why) in rows {
        for mode in [Apply, Preview] {
            assert_eq!(deletion(&entry, Unwanted, Stays, mode), Deletion::Refused(why));
            assert_eq!(deletion(&entry, Replaced, Stays, mode), Deletion::Refused(why), "nor when it is replaced");
        }
        assert_eq!(deletion(&entry, Unwanted, IsDeleted, Apply), Deletion::Forget, "nobody has to");
    }
    assert_eq!(deletion(&hooked("BeforeCreate"), Unwanted, Stays, Apply), Deletion::CallProvider);
}

#[test]
fn row_40_with_a_target_goes_what_hangs_on_it_if_the_user_says_so() {
    let snapshot = snapshot([entry("c", |_| {}), entry("a", |_| {}), entry("b", |b| of(b, "a"))]);
    let scope =
        |target_dependents| Scope { targets: vec![UrnPattern::new("a")], target_dependents, ..Scope::default() };
    let names = |target_dependents| {
        let reach = scope(target_dependents).reach(&snapshot);
        let allowed = snapshot.iter().filter(|(id, _)| reach.allowed.contains(id));
        let names = |entry: &Entry| entry.1.urn.name().to_owned();
        (allowed.map(names).collect::<Vec<_>>(), reach.roots.into_iter().map(names).collect::<Vec<_>>())
    };
    for target_dependents in [false, true] {
        // What hangs on them is asked for, either way.
        assert_eq!(names(target_dependents), (vec!["a".into(), "b".into()], vec!["a".into(), "b".into()]));
    }
    assert!(scope(false).spares(&urn("b")), "which is an error: nothing goes");
    assert!(!scope(true).spares(&urn("b")));
}

#[test]
fn row_41_what_is_not_managed_is_only_read() {
    assert_eq!(read_op(None, &ReferenceId::from("x")), StepOp::Read);
    assert_eq!(
        read_op(Some(&entry("a", |a| a.external = true)), &ReferenceId::from("x")),
        StepOp::Read,
        "whatever its id was"
    );
    let dropped = entry("a", |a| a.external = true);
    assert_eq!(deletion_step(&dropped, false), Some(StepOp::Discard));
}

#[test]
fn row_42_what_was_managed_is_deleted_or_let_go() {
    assert_eq!(read_op(Some(&entry("a", |_| {})), &ReferenceId::from("x")), StepOp::ReadReplacement);
    assert_eq!(read_op(Some(&entry("a", |_| {})), &ReferenceId::Unknown), StepOp::ReadReplacement);
    assert_eq!(read_op(Some(&entry("a", |_| {})), &ReferenceId::from("a-1")), StepOp::Read);
}

#[test]
fn row_43_what_was_only_read_is_discarded_once_it_is_made() {
    let superseded = entry("a", |a| (a.external, a.delete) = (true, true));
    assert_eq!(deletion_step(&superseded, true), Some(StepOp::DiscardReplaced));
}

#[test]
fn row_44_what_is_retained_is_forgotten_without_a_call() {
    for reason in [Unwanted, Replaced] {
        assert_eq!(deletion(&entry("a", |a| a.retain_on_delete = true), reason, Stays, Apply), Deletion::Forget);
    }
}

#[test]
fn row_45_what_goes_with_another_one_needs_no_call() {
    assert_eq!(deletion(&entry("b", |_| {}), Unwanted, IsDeleted, Apply), Deletion::Forget);
    assert_eq!(deleted([entry("a", |_| {}), entry("b", |b| b.deleted_with = Some(urn("a")))]), [["b"], ["a"]]);
    let tied = entry("b", |b| b.deleted_with = Some(urn("a")));
    assert_eq!(condemned([entry("a", |_| {}), tied], &[]), (vec![], vec!["b".into()]), "and is condemned unasked");
}

#[test]
fn row_48_a_copy_that_awaits_its_deletion_goes_registered_or_not() {
    let copy = entry("a", |a| a.delete = true);
    for registered in [false, true] {
        assert_eq!(deletion_step(&copy, registered), Some(StepOp::DeleteReplaced));
    }
    assert_eq!(deletion(&copy, Replaced, Stays, Apply), Deletion::CallProvider);
}

#[test]
fn row_49_a_resource_is_looked_up_by_its_own_name_first_then_by_its_aliases() {
    let was = |name: &str| Alias::Spec {
        name: Some(name.to_owned()),
        type_token: None,
        stack: None,
        project: None,
        parent: AliasParent::Same,
    };
    let mut goal = Goal::custom(TypeToken::new("t:m:T"), "b", PropertyMap::new());
    goal.aliases = vec![was("a"), Alias::Urn(urn("z")), was("b")];
    assert_eq!(aliases::candidates(&urn("b"), &goal, |_| None), [urn("b"), urn("a"), urn("z")]);
}

#[test]
fn row_49_the_child_of_a_renamed_parent_is_looked_up_under_the_old_one() {
    let (parent, before) = (urn("new"), urn("old"));
    let child = |parent: &Urn, name: &str| Urn::new("s", "p", Some(parent), "t:m:T", name);
    let mut goal = Goal::custom(TypeToken::new("t:m:T"), "new-child", PropertyMap::new());
    goal.parent = Some(parent.clone());
    let found = aliases::candidates(&child(&parent, "new-child"), &goal, |urn| (*urn == parent).then_some(&before));
    assert_eq!(found, [child(&parent, "new-child"), child(&before, "old-child")]);
}

#[test]
fn row_54_a_partner_counts_once_it_was_replaced() {
    let mut goal = Goal::custom(TypeToken::new("t:m:T"), "b", PropertyMap::new());
    goal.replace_with = vec![urn("a")];
    goal.deleted_with = Some(urn("c"));
    let partner = |names: &[&str]| replaced_partner(&goal, |urn| names.contains(&urn.name()));
    assert_eq!(partner(&[]), None);
    assert_eq!(partner(&["a", "c"]), Some("replaceWith"));
    assert_eq!(partner(&["c"]), Some("deletedWith"));
}
