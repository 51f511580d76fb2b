use std::sync::Arc;

use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::{ProviderReference, Urn};

use super::*;
use crate::integrity;
use crate::journal::Creations;
use crate::references::Relation;
use crate::resource::ResourceState;
use crate::snapshot::{OperationKind, PendingOperation, Snapshot};

fn urn(name: &str) -> Urn {
    let type_token = if name == "p" { "pulumi:providers:t" } else { "t:m:T" };
    Urn::new("s", "r", None, type_token, name)
}

/// Returns an entry for `name#id` with dependencies; `p` is the provider of all others.
fn entry(name: &str, dependencies: &[&str]) -> ResourceState {
    let (name, id) = name.split_once('#').unwrap_or((name, "1"));
    let provider = (name != "p").then(|| ProviderReference::new(urn("p"), "1"));
    let dependencies: Vec<Urn> = dependencies.iter().map(|name| urn(name)).collect();
    ResourceState { id: ResourceId::new(id), provider, dependencies, ..ResourceState::new(urn(name), true) }
}

fn snapshot(entries: impl IntoIterator<Item = ResourceState>) -> Snapshot {
    Snapshot { resources: entries.into_iter().map(Arc::new).collect(), ..Snapshot::default() }
}

fn entry_names(snapshot: &Snapshot) -> Vec<String> {
    snapshot.resources.iter().map(|state| format!("{}#{}", state.urn.name(), state.id_text())).collect()
}

/// Returns a snapshot of p, a, b (depends on a), c (depends on b), d.
fn five_entries() -> Snapshot {
    snapshot([entry("p", &[]), entry("a", &[]), entry("b", &["a"]), entry("c", &["b"]), entry("d", &[])])
}

fn named<'n>(names: &'n [&'n str]) -> impl Fn(&Urn) -> bool + 'n {
    |urn| names.contains(&urn.name())
}

#[test]
fn entry_with_dependents_is_removed_only_with_them() {
    let all = RemoveOptions { dependents: BlockerPolicy::Remove, ..RemoveOptions::default() };
    let cases = [
        (&["d"][..], RemoveOptions::default(), Ok(&["d"][..])),
        (&["c", "b"], RemoveOptions::default(), Ok(&["b", "c"])),
        (&["b"], RemoveOptions::default(), Err("other resources depend on the selection: c")),
        (&["a"], RemoveOptions::default(), Err("other resources depend on the selection: b")),
        (&["a"], all, Ok(&["a", "b", "c"])),
        (&["p"], RemoveOptions::default(), Err("other resources depend on the selection: a, b, c, d")),
        (&["p"], all, Ok(&["p", "a", "b", "c", "d"])),
    ];
    for (names, options, expected) in cases {
        let mut snapshot = five_entries();
        let removed = remove_entries(&mut snapshot, &named(names), options);
        let removed = removed.map(|states| states.iter().map(|state| state.urn.name().to_owned()).collect::<Vec<_>>());
        match expected {
            Ok(expected) => {
                assert_eq!(removed.unwrap(), expected, "{names:?}");
                assert_eq!(snapshot.resources.len(), 5 - expected.len());
                integrity::verify(&snapshot).unwrap();
            }
            Err(text) => {
                assert_eq!(removed.unwrap_err().to_string(), text, "{names:?}");
                assert_eq!(snapshot, five_entries());
            }
        }
    }
}

#[test]
fn protected_entry_is_removed_only_by_force() {
    let mut snapshot = five_entries();
    Arc::make_mut(&mut snapshot.resources[3]).protect = true;
    let all = RemoveOptions { dependents: BlockerPolicy::Remove, ..RemoveOptions::default() };
    let refusal = remove_entries(&mut snapshot, &named(&["a"]), all).unwrap_err();
    assert_eq!(refusal.to_string(), "protected resources cannot be removed: c");
    let removed =
        remove_entries(&mut snapshot, &named(&["a"]), RemoveOptions { protected: BlockerPolicy::Remove, ..all })
            .unwrap();
    assert_eq!(removed.len(), 3);
}

#[test]
fn removal_of_a_urn_with_several_entries_needs_an_id() {
    let old = ResourceState { delete: true, ..entry("a#0", &[]) };
    let mut snapshot = snapshot([entry("p", &[]), entry("a", &[]), entry("b", &["a"]), old]);
    let refusal = remove_entries(&mut snapshot, &named(&["a"]), RemoveOptions::default()).unwrap_err();
    assert_eq!(refusal.to_string(), "a is recorded several times, with the ids 1, 0");
    let live = RemoveOptions { id: Some("1"), ..RemoveOptions::default() };
    assert_eq!(
        remove_entries(&mut snapshot, &named(&["a"]), live).unwrap_err().to_string(),
        "other resources depend on the selection: b"
    );
    let unknown = RemoveOptions { id: Some("2"), ..RemoveOptions::default() };
    assert_eq!(
        remove_entries(&mut snapshot, &named(&["a"]), unknown).unwrap_err(),
        StateEditError::NoSuchId("2".into())
    );
    remove_entries(&mut snapshot, &named(&["a"]), RemoveOptions { id: Some("0"), ..RemoveOptions::default() }).unwrap();
    assert_eq!(entry_names(&snapshot), ["p#1", "a#1", "b#1"]);
}

#[test]
fn flags_change_only_entries_with_another_value() {
    let mut snapshot = five_entries();
    Arc::make_mut(&mut snapshot.resources[1]).protect = true;
    let mut pending_delete = entry("d#0", &[]);
    pending_delete.delete = true;
    snapshot.resources.push(Arc::new(pending_delete));
    assert_eq!(set_flag(&mut snapshot, &named(&["a", "b"]), EntryFlag::Protect, true), [urn("b")]);
    assert_eq!(set_flag(&mut snapshot, &|_| true, EntryFlag::Protect, false), [urn("a"), urn("b")]);
    assert_eq!(set_flag(&mut snapshot, &named(&["d"]), EntryFlag::Taint, true), [urn("d")]);
    assert!(snapshot.resources[4].taint && !snapshot.resources[5].taint);
}

#[test]
fn rename_changes_all_references() {
    let mut child = entry("c", &["a"]);
    child.parent = Some(urn("a"));
    child.property_dependencies = [("v".to_owned(), vec![urn("a"), urn("b")])].into();
    child.deleted_with = Some(urn("a"));
    child.replace_with = vec![urn("a")];
    child.view_of = Some(urn("a"));
    let mut snapshot = snapshot([entry("p", &[]), entry("a", &[]), entry("b", &[]), child]);
    let pending = PendingOperation { resource: Arc::clone(&snapshot.resources[1]), kind: OperationKind::Updating };
    snapshot.pending_operations.push(pending);

    assert_eq!(rename_resource(&mut snapshot, &urn("a"), "b").unwrap_err(), StateEditError::NameTaken(urn("b")));
    for bad in ["", "urn:pulumi:s::r::t:m:T::z"] {
        assert!(
            matches!(rename_resource(&mut snapshot, &urn("a"), bad), Err(StateEditError::InvalidName(..))),
            "{bad}"
        );
    }
    assert_eq!(rename_resource(&mut snapshot, &urn("a"), "z").unwrap(), urn("z"));
    assert_eq!(rename_resource(&mut snapshot, &urn("p"), "q").unwrap().name(), "q");
    let text = format!("{snapshot:?}");
    assert!(!text.contains("T::a\"") && !text.contains("::p\""), "{text}");
    assert_eq!(snapshot.pending_operations[0].resource.urn, urn("z"));
    integrity::verify(&snapshot).unwrap();
}

#[test]
fn repair_sorts_entries_and_removes_dangling_references() {
    let mut dangling = entry("c", &["a", "gone"]);
    dangling.property_dependencies = [("v".to_owned(), vec![urn("gone")])].into();
    let orphan = Urn::new("s", "r", Some(&urn("gone")), "t:m:T", "d");
    let orphan = ResourceState { parent: Some(urn("gone")), urn: orphan, ..entry("d", &[]) };
    let child = ResourceState { dependencies: vec![orphan.urn.clone()], ..entry("e", &[]) };
    let mut invalid = snapshot([dangling, entry("b", &["a"]), entry("a", &[]), entry("p", &[]), orphan, child]);
    let report = repair_snapshot(&mut invalid).unwrap();
    integrity::verify(&invalid).unwrap();
    assert_eq!(entry_names(&invalid), ["p#1", "a#1", "c#1", "b#1", "d#1", "e#1"]);
    let moved: Vec<&str> = report.moved.iter().map(Urn::name).collect();
    assert_eq!(moved, ["p", "a"]);
    let pruned: Vec<String> = report
        .pruned
        .iter()
        .map(|(urn, relation, target)| format!("{}: {relation} {}", urn.name(), target.name()))
        .collect();
    assert_eq!(pruned, ["c: dependency gone", "c: dependency (of property \"v\") gone", "d: parent gone"]);
    assert_eq!(report.renamed.iter().map(|(_, to)| to.clone()).collect::<Vec<_>>(), [urn("d")]);
    assert_eq!(invalid.resources[5].dependencies, [urn("d")]);
    assert!(repair_snapshot(&mut invalid).unwrap().is_empty());
}

#[test]
fn repair_removes_a_wrong_checksum() {
    let mut state = snapshot([entry("p", &[]), entry("a", &[])]);
    state.manifest.wrong_checksum = Some("0dff".to_owned());
    assert!(integrity::verify(&state).is_err());
    assert_eq!(repair_snapshot(&mut state).unwrap(), Repair { checksum: Some("0dff".to_owned()), ..Repair::default() });
    integrity::verify(&state).unwrap();
}

#[test]
fn repair_removes_references_of_an_entry_to_itself() {
    let mut invalid = snapshot([entry("p", &[]), entry("a", &[]), entry("b", &["a", "b"])]);
    assert!(integrity::verify(&invalid).is_err());
    let repair = repair_snapshot(&mut invalid).unwrap();
    integrity::verify(&invalid).unwrap();
    assert_eq!(repair.pruned, [(urn("b"), Relation::Dependency, urn("b"))]);
    assert_eq!(invalid.resources[2].dependencies, [urn("a")]);
}

#[test]
fn repair_removes_references_to_later_entries_in_a_cycle() {
    let mut invalid = snapshot([entry("p", &[]), entry("a", &["c"]), entry("b", &["a"]), entry("c", &["b"])]);
    let repair = repair_snapshot(&mut invalid).unwrap();
    integrity::verify(&invalid).unwrap();
    assert_eq!(repair.pruned, [(urn("a"), Relation::Dependency, urn("c"))]);
    assert_eq!(entry_names(&invalid), ["p#1", "a#1", "b#1", "c#1"]);
}

#[test]
fn failed_repair_leaves_the_snapshot_unchanged() {
    let child = |name: &str, parent: &str| ResourceState { parent: Some(urn(parent)), ..entry(name, &[]) };
    let cycle = snapshot([entry("p", &[]), child("a", "b"), child("b", "a")]);
    let mut state = cycle.clone();
    assert_eq!(
        repair_snapshot(&mut state).unwrap_err().to_string(),
        "these resources refer to each other in a cycle: a, b"
    );
    assert_eq!(state, cycle);
    let without_provider = snapshot([entry("a", &["gone"])]);
    let mut state = without_provider.clone();
    let refusal = repair_snapshot(&mut state).unwrap_err().to_string();
    assert!(refusal.starts_with("the state cannot be repaired: the state is inconsistent"), "{refusal}");
    assert_eq!(state, without_provider);
    let duplicate = snapshot([entry("p", &[]), entry("a", &[]), entry("a#2", &[])]);
    assert!(matches!(repair_snapshot(&mut duplicate.clone()), Err(StateEditError::Unrepairable(_))));
}

/// Returns the creations of resources, of those with an unknown outcome, and the provider `p#2` of the run.
fn creations(created: &[&str], creating: &[&str]) -> Creations {
    let provider = ResourceState { parent: Some(urn("root")), ..entry("p#2", &[]) };
    let of_run = |name: &&str| {
        let provider = Some(ProviderReference::new(urn("p"), "2"));
        Arc::new(ResourceState { provider, ..entry(name, &["gone"]) })
    };
    Creations {
        created: created.iter().map(of_run).collect(),
        creating: creating.iter().map(of_run).collect(),
        context: vec![Arc::new(ResourceState { provider: None, ..entry("root#", &[]) }), Arc::new(provider)],
    }
}

/// Returns each treated creation, the entries, and the pending operations.
fn recorded(state: &mut Snapshot, creations: &Creations) -> [String; 3] {
    let treated = record_creations(state, creations);
    let treated = treated.iter().map(|(created, treatment)| {
        let treatment = match treatment {
            CreationTreatment::Entry => "entry".to_owned(),
            CreationTreatment::PendingCreate => "pending".to_owned(),
            CreationTreatment::OtherId(id) => format!("is {}", id.as_str()),
            CreationTreatment::OtherUrn(urn) => format!("of {}", urn.name()),
        };
        format!("{}#{} {treatment}", created.urn.name(), created.id_text())
    });
    let pending = state.pending_operations.iter().map(|operation| {
        assert_eq!(operation.kind, OperationKind::Creating);
        format!("{}#{}", operation.resource.urn.name(), operation.resource.id_text())
    });
    let mut entries = entry_names(state);
    for (shown, entry) in entries.iter_mut().zip(&state.resources) {
        shown.push_str(if entry.delete { "-" } else { "" });
    }
    [treated.collect::<Vec<_>>(), entries, pending.collect()].map(|lines| lines.join(", "))
}

/// Shows: state.md#state-edits "records what a journal has that cannot be merged, and removes the journal"
/// Shows: state.md#the-state-was-changed-before-the-journal-was-merged "It never records a resource as one to delete"
#[test]
fn creations_of_a_journal_are_recorded_once_and_never_beside_a_live_entry() {
    let deleted = |name| ResourceState { delete: true, ..entry(name, &[]) };
    let replaced = |name| ResourceState { pending_replacement: true, ..entry(name, &[]) };
    let imported = |name| ResourceState { import_id: ResourceId::new("x-1"), ..entry(name, &[]) };
    let cases = [
        // Entries beside the provider, created, creating; treatments, entries, pending creates.
        (vec![], &[][..], &[][..], ["", "p#1", ""]),
        (vec![], &["b#b-1"], &[], ["b#b-1 entry", "p#1, b#b-1", ""]),
        (vec![entry("b#b-1", &[])], &["b#b-1"], &[], ["", "p#1, b#b-1", ""]),
        (vec![deleted("b#b-1")], &["b#b-1"], &[], ["", "p#1, b#b-1-", ""]),
        (vec![replaced("b#b-1")], &["b#b-1"], &[], ["", "p#1, b#b-1", ""]),
        // Another run created it a second time.
        (vec![entry("b#b-2", &[])], &["b#b-1"], &[], ["b#b-1 is b-2", "p#1, b#b-2", ""]),
        (vec![deleted("b#b-2")], &["b#b-1"], &[], ["b#b-1 entry", "p#1, b#b-2-, b#b-1", ""]),
        // The successor of a deleted resource.
        (vec![replaced("b#b-2")], &["b#b-1"], &[], ["b#b-1 entry", "p#1, b#b-1", ""]),
        // The resource was renamed since, or imported under another name.
        (vec![entry("c#x-1", &[])], &["b#x-1"], &[], ["b#x-1 of c", "p#1, c#x-1", ""]),
        (vec![deleted("c#x-1")], &["b#x-1"], &[], ["b#x-1 of c", "p#1, c#x-1-", ""]),
        (vec![imported("c#c-1")], &["b#x-1"], &[], ["b#x-1 of c", "p#1, c#c-1", ""]),
        // Some types have the same id for each resource.
        (vec![entry("c#none", &[])], &["b#none"], &[], ["b#none entry", "p#1, c#none, b#none", ""]),
        (vec![], &[], &["b#"], ["b# pending", "p#1", "b#"]),
        (vec![entry("b#b-2", &[])], &[], &["b#"], ["b# pending", "p#1, b#b-2", "b#"]),
        (vec![], &[], &["b#b-1"], ["b#b-1 pending", "p#1", "b#b-1"]),
        // The next run would delete it as an old copy.
        (vec![entry("b#b-2", &[])], &[], &["b#b-1"], ["b#b-1 is b-2", "p#1, b#b-2", ""]),
        (vec![], &["b#b-1", "c#c-1"], &["d#"], ["b#b-1 entry, c#c-1 entry, d# pending", "p#1, b#b-1, c#c-1", "d#"]),
    ];
    for (entries, created, creating, expected) in cases {
        let mut state = snapshot([vec![entry("p", &[])], entries].concat());
        let journal = creations(created, creating);
        assert_eq!(recorded(&mut state, &journal), expected, "{created:?} {creating:?}");
        repair_snapshot(&mut state).unwrap();
        let before = state.clone();
        let [treated, ..] = recorded(&mut state, &journal);
        assert!(!treated.contains("entry") && !treated.contains("pending"), "{treated}");
        assert_eq!(state, before, "repeated, it changes nothing");
    }
}

#[test]
fn recorded_creation_has_the_provider_and_the_parent_that_it_needs() {
    // The state has no provider: that of the run is recorded, after its parent.
    let mut state = snapshot([]);
    assert_eq!(recorded(&mut state, &creations(&["b#b-1"], &[])), ["b#b-1 entry", "root#, p#2, b#b-1", ""]);
    // The state has another one with the same URN.
    let mut state = snapshot([entry("p", &[])]);
    recorded(&mut state, &creations(&["b#b-1"], &[]));
    assert_eq!(state.resources[1].provider, Some(ProviderReference::new(urn("p"), "1")));
    // A reference to a missing resource is removed.
    repair_snapshot(&mut state).unwrap();
    assert_eq!(state.resources[1].dependencies, []);
    // A missing provider or parent leaves a pending create, whose id is known.
    let without_context = Creations { context: Vec::new(), ..creations(&["b#b-1"], &[]) };
    let mut state = snapshot([]);
    assert_eq!(recorded(&mut state, &without_context), ["b#b-1 pending", "", "b#b-1"]);
    let mut orphan = creations(&["b#b-1"], &[]);
    Arc::make_mut(&mut orphan.created[0]).parent = Some(urn("gone"));
    let mut state = snapshot([entry("p", &[])]);
    assert_eq!(recorded(&mut state, &orphan), ["b#b-1 pending", "p#1", "b#b-1"]);
}

#[test]
fn old_copy_of_a_recorded_creation_stays_to_be_deleted() {
    let mut journal = creations(&["b#b-1", "b#b-2"], &[]);
    Arc::make_mut(&mut journal.created[0]).delete = true;
    let mut state = snapshot([entry("p", &[])]);
    assert_eq!(recorded(&mut state, &journal), ["b#b-1 entry, b#b-2 entry", "p#1, b#b-1-, b#b-2", ""]);
    // Which one is needed is not known if another run has created a third one.
    let mut state = snapshot([entry("p", &[]), entry("b#b-3", &[])]);
    assert_eq!(recorded(&mut state, &journal), ["b#b-1 is b-3, b#b-2 is b-3", "p#1, b#b-3", ""]);
}
