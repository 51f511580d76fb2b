use std::sync::Arc;

use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::{ProviderReference, Urn};

use super::*;
use crate::integrity;
use crate::resource::ResourceState;
use crate::snapshot::{OperationKind, PendingOperation, Snapshot};

fn urn(name: &str) -> Urn {
    let type_token = if name == "p" { "pulumi:providers:t" } else { "t:m:T" };
    Urn::new("s", "r", None, type_token, name)
}

/// An entry `name#id`, which needs these; `p` is the provider of all others.
fn entry(name: &str, needs: &[&str]) -> ResourceState {
    let (name, id) = name.split_once('#').unwrap_or((name, "1"));
    let provider = (name != "p").then(|| ProviderReference::new(urn("p"), "1"));
    let dependencies: Vec<Urn> = needs.iter().map(|name| urn(name)).collect();
    ResourceState { id: ResourceId::new(id), provider, dependencies, ..ResourceState::new(urn(name), true) }
}

fn snapshot(entries: impl IntoIterator<Item = ResourceState>) -> Snapshot {
    Snapshot { resources: entries.into_iter().map(Arc::new).collect(), ..Snapshot::default() }
}

fn told(snapshot: &Snapshot) -> Vec<String> {
    snapshot.resources.iter().map(|state| format!("{}#{}", state.urn.name(), state.id_text())).collect()
}

/// p, a, b (of a), c (of b), d.
fn five() -> Snapshot {
    snapshot([entry("p", &[]), entry("a", &[]), entry("b", &["a"]), entry("c", &["b"]), entry("d", &[])])
}

fn named<'n>(names: &'n [&'n str]) -> impl Fn(&Urn) -> bool + 'n {
    |urn| names.contains(&urn.name())
}

#[test]
fn what_nothing_needs_is_removed_and_what_something_needs_is_not() {
    let all = Removal { dependents: Blocked::Removed, ..Removal::default() };
    let table = [
        (&["d"][..], Removal::default(), Ok(&["d"][..])),
        (&["c", "b"], Removal::default(), Ok(&["b", "c"])),
        (&["b"], Removal::default(), Err("needed by c")),
        (&["a"], Removal::default(), Err("needed by b")),
        (&["a"], all, Ok(&["a", "b", "c"])),
        (&["p"], Removal::default(), Err("needed by a, b, c, d")),
        (&["p"], all, Ok(&["p", "a", "b", "c", "d"])),
    ];
    for (names, how, expected) in table {
        let mut snapshot = five();
        let removed = remove(&mut snapshot, &named(names), how);
        let removed = removed.map(|states| states.iter().map(|state| state.urn.name().to_owned()).collect::<Vec<_>>());
        match expected {
            Ok(expected) => {
                assert_eq!(removed.unwrap(), expected, "{names:?}");
                assert_eq!(snapshot.resources.len(), 5 - expected.len());
                integrity::verify(&snapshot).unwrap();
            }
            Err(text) => {
                assert_eq!(removed.unwrap_err().to_string(), text, "{names:?}");
                assert_eq!(snapshot, five());
            }
        }
    }
}

#[test]
fn what_is_protected_is_removed_by_force_only() {
    let mut snapshot = five();
    Arc::make_mut(&mut snapshot.resources[3]).protect = true;
    let all = Removal { dependents: Blocked::Removed, ..Removal::default() };
    let refusal = remove(&mut snapshot, &named(&["a"]), all).unwrap_err();
    assert_eq!(refusal.to_string(), "protected: c");
    let removed = remove(&mut snapshot, &named(&["a"]), Removal { protected: Blocked::Removed, ..all }).unwrap();
    assert_eq!(removed.len(), 3);
}

#[test]
fn of_several_copies_one_is_meant() {
    let old = ResourceState { delete: true, ..entry("a#0", &[]) };
    let mut snapshot = snapshot([entry("p", &[]), entry("a", &[]), entry("b", &["a"]), old]);
    let refusal = remove(&mut snapshot, &named(&["a"]), Removal::default()).unwrap_err();
    assert_eq!(refusal.to_string(), "a is recorded several times, with the ids 1, 0");
    let live = Removal { id: Some("1"), ..Removal::default() };
    assert_eq!(remove(&mut snapshot, &named(&["a"]), live).unwrap_err().to_string(), "needed by b");
    let nobody = Removal { id: Some("2"), ..Removal::default() };
    assert_eq!(remove(&mut snapshot, &named(&["a"]), nobody).unwrap_err(), SurgeryError::NoSuchId("2".into()));
    remove(&mut snapshot, &named(&["a"]), Removal { id: Some("0"), ..Removal::default() }).unwrap();
    assert_eq!(told(&snapshot), ["p#1", "a#1", "b#1"]);
}

#[test]
fn marks_are_set_where_they_are_not() {
    let mut snapshot = five();
    Arc::make_mut(&mut snapshot.resources[1]).protect = true;
    let mut superseded = entry("d#0", &[]);
    superseded.delete = true;
    snapshot.resources.push(Arc::new(superseded));
    assert_eq!(mark(&mut snapshot, &named(&["a", "b"]), Mark::Protect, true), [urn("b")]);
    assert_eq!(mark(&mut snapshot, &|_| true, Mark::Protect, false), [urn("a"), urn("b")]);
    assert_eq!(mark(&mut snapshot, &named(&["d"]), Mark::Taint, true), [urn("d")]);
    assert!(snapshot.resources[4].taint && !snapshot.resources[5].taint);
}

#[test]
fn a_name_changes_wherever_it_is_named() {
    let mut child = entry("c", &["a"]);
    child.parent = Some(urn("a"));
    child.property_dependencies = [("v".to_owned(), vec![urn("a"), urn("b")])].into();
    child.deleted_with = Some(urn("a"));
    child.replace_with = vec![urn("a")];
    child.view_of = Some(urn("a"));
    let mut snapshot = snapshot([entry("p", &[]), entry("a", &[]), entry("b", &[]), child]);
    let pending = PendingOperation { resource: Arc::clone(&snapshot.resources[1]), kind: OperationKind::Updating };
    snapshot.pending_operations.push(pending);

    assert_eq!(rename(&mut snapshot, &urn("a"), "b").unwrap_err(), SurgeryError::Taken(urn("b")));
    for bad in ["", "urn:pulumi:s::r::t:m:T::z"] {
        assert!(matches!(rename(&mut snapshot, &urn("a"), bad), Err(SurgeryError::BadName(..))), "{bad}");
    }
    assert_eq!(rename(&mut snapshot, &urn("a"), "z").unwrap(), urn("z"));
    assert_eq!(rename(&mut snapshot, &urn("p"), "q").unwrap().name(), "q");
    let text = format!("{snapshot:?}");
    assert!(!text.contains("T::a\"") && !text.contains("::p\""), "{text}");
    assert_eq!(snapshot.pending_operations[0].resource.urn, urn("z"));
    integrity::verify(&snapshot).unwrap();
}

#[test]
fn an_order_is_found_and_what_is_not_there_is_dropped() {
    let mut lost = entry("c", &["a", "gone"]);
    lost.property_dependencies = [("v".to_owned(), vec![urn("gone")])].into();
    let orphan = Urn::new("s", "r", Some(&urn("gone")), "t:m:T", "d");
    let orphan = ResourceState { parent: Some(urn("gone")), urn: orphan, ..entry("d", &[]) };
    let child = ResourceState { dependencies: vec![orphan.urn.clone()], ..entry("e", &[]) };
    let mut broken = snapshot([lost, entry("b", &["a"]), entry("a", &[]), entry("p", &[]), orphan, child]);
    let done = repair(&mut broken).unwrap();
    integrity::verify(&broken).unwrap();
    assert_eq!(told(&broken), ["p#1", "a#1", "c#1", "b#1", "d#1", "e#1"]);
    let moved: Vec<&str> = done.moved.iter().map(Urn::name).collect();
    assert_eq!(moved, ["p", "a"]);
    let pruned: Vec<String> = done
        .pruned
        .iter()
        .map(|(urn, relation, target)| format!("{}: {relation} {}", urn.name(), target.name()))
        .collect();
    assert_eq!(pruned, ["c: dependency gone", "c: dependency (of property \"v\") gone", "d: parent gone"]);
    assert_eq!(done.renamed.iter().map(|(_, to)| to.clone()).collect::<Vec<_>>(), [urn("d")]);
    assert_eq!(broken.resources[5].dependencies, [urn("d")]);
    assert!(repair(&mut broken).unwrap().is_empty());
}

#[test]
fn a_wrong_checksum_is_repaired_by_being_written_anew() {
    let mut state = snapshot([entry("p", &[]), entry("a", &[])]);
    state.manifest.wrong_checksum = Some("0dff".to_owned());
    assert!(integrity::verify(&state).is_err());
    assert_eq!(repair(&mut state).unwrap(), Repair { checksum: Some("0dff".to_owned()), ..Repair::default() });
    integrity::verify(&state).unwrap();
}

#[test]
fn what_cannot_be_repaired_stays_as_it_is() {
    let circle = snapshot([entry("p", &[]), entry("a", &["b"]), entry("b", &["a"])]);
    let mut state = circle.clone();
    assert_eq!(repair(&mut state).unwrap_err().to_string(), "these refer to each other in a circle: a, b");
    assert_eq!(state, circle);
    let unserved = snapshot([entry("a", &["gone"])]);
    let mut state = unserved.clone();
    let refusal = repair(&mut state).unwrap_err().to_string();
    assert!(refusal.starts_with("cannot be repaired: the state is inconsistent"), "{refusal}");
    assert_eq!(state, unserved);
    let twice = snapshot([entry("p", &[]), entry("a", &[]), entry("a#2", &[])]);
    assert!(matches!(repair(&mut twice.clone()), Err(SurgeryError::Broken(_))));
}
