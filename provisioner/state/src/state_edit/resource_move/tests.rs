//! Moves of entries between two snapshots.

use pulumi_proto::property::PropertyValue;
use pulumi_proto::resource_id::ResourceId;

use super::*;
use crate::integrity;
use crate::snapshot::{OperationKind, PendingOperation};

fn urn(name: &str) -> Urn {
    let type_token = match name {
        "reef-s" => ROOT_STACK_TYPE,
        "p" | "q" => "pulumi:providers:t",
        _ => "t:m:T",
    };
    match name.split_once('/') {
        Some((parent, _)) => Urn::new("s", "reef", Some(&urn(parent)), "t:m:T", name),
        None => Urn::new("s", "reef", None, type_token, name),
    }
}

/// Returns an entry with the provider, which is none for the root, providers and components.
fn entry(name: &str, provider: &str, change: impl FnOnce(&mut ResourceState)) -> Arc<ResourceState> {
    let is_component = name == "reef-s" || name.starts_with("component");
    let mut state = ResourceState::new(urn(name), !is_component);
    state.id = ResourceId::new("1").filter(|_| !is_component);
    state.parent = (name != "reef-s").then(|| urn(name.split_once('/').map_or("reef-s", |(parent, _)| parent)));
    state.provider = (!provider.is_empty()).then(|| ProviderReference::new(urn(provider), "1"));
    change(&mut state);
    Arc::new(state)
}

/// Returns a stack with two resources of provider p, of which the second one depends on the first one, a component with a child of
/// provider q, and a resource of q that depends on the child.
fn source() -> Snapshot {
    let resources = vec![
        entry("reef-s", "", |_| {}),
        entry("p", "", |_| {}),
        entry("q", "", |_| {}),
        entry("a", "p", |_| {}),
        entry("b", "p", |state| {
            state.dependencies = vec![urn("a")];
            state.property_dependencies = [("v".to_owned(), vec![urn("a")])].into();
        }),
        entry("component", "", |_| {}),
        entry("component/c", "q", |_| {}),
        entry("d", "q", |state| state.deleted_with = Some(urn("component/c"))),
    ];
    Snapshot { resources, ..Snapshot::default() }
}

fn west() -> StackReference {
    StackReference::new("coast", "west").unwrap()
}

fn moved(source: &mut Snapshot, target: &mut Snapshot, names: &[&str]) -> Result<ResourceMove, MoveError> {
    let selected: Vec<Urn> = names.iter().map(|name| urn(name)).collect();
    move_resources(source, target, &west(), &selected)
}

fn names(snapshot: &Snapshot) -> Vec<&str> {
    snapshot.resources.iter().map(|state| state.urn.name()).collect()
}

fn is_valid(snapshot: &Snapshot) {
    integrity::verify(snapshot).unwrap();
}

/// Shows: state.md#moves-of-resources "Children and views move with their component or resource."
/// Shows: state.md#moves-of-resources "The provider resource moves with the last resource that uses it, and is copied otherwise"
/// Shows: state.md#moves-of-resources "What stays and depends on a moved resource is shown, and loses the dependency; its inputs keep their values."
#[test]
fn resources_move_with_children_and_providers_and_dependents_lose_the_dependency() {
    let table: [[&[&str]; 4]; 4] = [
        [&["b"], &["reef-s", "p", "q", "a", "component", "component/c", "d"], &["coast-west", "p", "b"], &[]],
        [&["a", "b"], &["reef-s", "q", "component", "component/c", "d"], &["coast-west", "p", "a", "b"], &[]],
        [
            &["a"],
            &["reef-s", "p", "q", "b", "component", "component/c", "d"],
            &["coast-west", "p", "a"],
            &["b dependency a"],
        ],
        [
            &["component"],
            &["reef-s", "p", "q", "a", "b", "d"],
            &["coast-west", "q", "component", "component/c"],
            &["d deletedWith component/c"],
        ],
    ];
    for [selected, expected_source, expected_target, expected_pruned] in table {
        let (mut source, mut target) = (source(), Snapshot::default());
        // The first move needs `a`, which stays.
        if selected == ["b"] {
            Arc::make_mut(&mut source.resources[4]).retain_dependencies(|relation, _| relation == Relation::Parent);
        }
        let found = moved(&mut source, &mut target, selected).unwrap();
        is_valid(&source);
        is_valid(&target);
        assert_eq!((names(&source), names(&target)), (expected_source.to_vec(), expected_target.to_vec()));
        let pruned =
            found.pruned.iter().map(|(urn, relation, other)| format!("{} {relation} {}", urn.name(), other.name()));
        assert_eq!(pruned.collect::<Vec<_>>(), expected_pruned, "{selected:?}");
        let treatment = if selected == ["a", "b"] { ProviderMove::Moved } else { ProviderMove::Copied };
        assert_eq!(found.providers.iter().map(|(_, found)| *found).collect::<Vec<_>>(), [treatment], "{selected:?}");
        assert!(found.created_root.is_some());
    }
}

/// Shows: state.md#moves-of-resources "URNs get the stack and the project of the other stack"
#[test]
fn urns_and_references_are_those_of_the_target() {
    let (mut source, mut target) = (source(), Snapshot::default());
    let reference = pulumi_proto::property::ResourceReference { urn: urn("a"), id: None, package_version: None };
    Arc::make_mut(&mut source.resources[4]).inputs =
        Arc::new([("v".into(), PropertyValue::secret(PropertyValue::Resource(reference)))].into_iter().collect());
    moved(&mut source, &mut target, &["a", "b"]).unwrap();
    let b = &target.resources[3];
    assert_eq!(b.urn.as_str(), "urn:pulumi:west::coast::t:m:T::b");
    assert!(b.references().all(|(_, urn)| (urn.stack(), urn.project()) == ("west", "coast")), "{b:?}");
    assert_eq!(b.parent.as_ref().map(Urn::as_str), Some("urn:pulumi:west::coast::pulumi:pulumi:Stack::coast-west"));
    assert!(
        format!("{:?}", b.inputs.values().map(PropertyValue::without_wrappers).collect::<Vec<_>>())
            .contains("west::coast")
    );
}

/// Shows: state.md#moves-of-resources "an equal provider of the other stack is used"
#[test]
fn equal_provider_of_the_target_is_used_and_another_one_is_refused() {
    let provider = |value: &str| {
        let mut state = ResourceState::new(urn("p").in_stack("west", "coast"), true);
        state.id = ResourceId::new("7");
        state.inputs = Arc::new([("v".into(), PropertyValue::String(value.to_owned()))].into_iter().collect());
        Arc::new(state)
    };
    for (value, is_equal) in [("same", true), ("other", false)] {
        let mut source = source();
        Arc::make_mut(&mut source.resources[1]).inputs = provider("same").inputs.clone();
        let mut target = Snapshot { resources: vec![provider(value)], ..Snapshot::default() };
        let before = (source.clone(), target.clone());
        let found = moved(&mut source, &mut target, &["a"]);
        if is_equal {
            assert_eq!(found.unwrap().providers, []);
            let reference = target.resources[2].provider.as_ref().map(ToString::to_string);
            assert_eq!(reference.as_deref(), Some("urn:pulumi:west::coast::pulumi:providers:t::p::7"));
            is_valid(&target);
        } else {
            assert_eq!(found, Err(MoveError::OtherProvider(urn("p"))));
            assert_eq!((source, target), before);
        }
    }
}

#[test]
fn move_that_would_break_a_state_is_refused_and_changes_nothing() {
    let pending = |kind, name: &str| PendingOperation { resource: entry(name, "p", |_| {}), kind };
    let taken = entry("a", "", |state| state.urn = urn("a").in_stack("west", "coast"));
    type Change = fn(&mut Snapshot);
    let unchanged: Change = |_| {};
    let table: [(&[&str], Change, &str); 8] = [
        (&["reef-s"], unchanged, "reef-s is the root of the stack, which cannot move"),
        (&["p"], unchanged, "p is a provider resource, which moves with the resources that use it"),
        (&["b"], unchanged, "what moves refers to resources that stay:\n  b has the dependency a"),
        (&["d"], unchanged, "what moves refers to resources that stay:\n  d has the deletedWith component/c"),
        (
            &["component/c"],
            unchanged,
            "what moves refers to resources that stay:\n  component/c has the parent component",
        ),
        (
            &["a"],
            |source| Arc::make_mut(&mut source.resources[3]).delete = true,
            "these resources have pending operations, deletes or replacements: a",
        ),
        (
            &["d", "component"],
            |source| Arc::make_mut(&mut source.resources[2]).parent = Some(urn("a")),
            "what moves refers to resources that stay:\n  q has the parent a",
        ),
        (
            &["a"],
            |source| {
                Arc::make_mut(&mut source.resources[4]).provider = None;
                Arc::make_mut(&mut source.resources[1]).parent = Some(urn("component"));
            },
            "what moves refers to resources that stay:\n  p has the parent component",
        ),
    ];
    for (selected, change, expected) in table {
        let (mut source, mut target) = (source(), Snapshot::default());
        change(&mut source);
        let before = source.clone();
        let error = moved(&mut source, &mut target, selected).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert_eq!((source, target), (before, Snapshot::default()), "{expected}");
    }
    let mut with_pending = source();
    with_pending.pending_operations = vec![pending(OperationKind::Updating, "a")];
    let error = moved(&mut with_pending, &mut Snapshot::default(), &["a"]).unwrap_err();
    assert_eq!(error, MoveError::Pending(vec![urn("a")]));
    let mut target = Snapshot { resources: vec![taken], ..Snapshot::default() };
    assert_eq!(moved(&mut source(), &mut target, &["a"]), Err(MoveError::Taken(vec![urn("a")])));
    // A provider that is the child of a moved component, and that others use.
    let mut of_component = source();
    Arc::make_mut(&mut of_component.resources[1]).parent = Some(urn("component"));
    let (root, rest) = (of_component.resources[0].clone(), of_component.resources.split_off(5));
    let mut ordered = vec![root, rest[0].clone()];
    ordered.extend(of_component.resources[1..].iter().cloned().chain(rest[1..].iter().cloned()));
    of_component.resources = ordered;
    let error = moved(&mut of_component, &mut Snapshot::default(), &["component"]).unwrap_err();
    assert_eq!(error, MoveError::ProviderOfOthers { provider: urn("p"), user: urn("a") });
}
