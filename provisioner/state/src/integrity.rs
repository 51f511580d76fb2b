//! Integrity of a snapshot (docs/spec/engine-semantics.md#6.2), checked when a snapshot is loaded and before one is
//! saved.
//!
//! Pending operations are not checked: their provider may be gone.

use std::fmt;

use hashbrown::HashMap;
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::{ProviderReference, TypeToken, Urn};

use super::references::Relation;
use super::resource::ResourceState;
use super::snapshot::Snapshot;

/// Integrity error of a snapshot with all violations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntegrityError {
    /// Violations in the order of the entries.
    pub violations: Vec<Violation>,
}

impl std::error::Error for IntegrityError {}

impl fmt::Display for IntegrityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the state is inconsistent")?;
        for violation in &self.violations {
            write!(f, "\n  {violation}")?;
        }
        Ok(())
    }
}

/// Violation of one invariant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The checksum in the manifest is not the checksum of its version.
    #[error("its manifest: has the checksum {0:?}, which is not that of its version")]
    WrongChecksum(String),
    /// An entry has no type.
    #[error("{0}: has no type")]
    MissingType(Urn),
    /// A component has an id.
    #[error("{0}: is not managed by a provider, yet has the id {1:?}")]
    ComponentWithId(Urn, ResourceId),
    /// A custom resource has no id.
    #[error("{0}: is managed by a provider, yet has no id")]
    MissingId(Urn),
    /// The type is a provider type, the type in the URN is not.
    #[error("{0}: is a provider, but its URN is not that of a provider")]
    NotAProviderUrn(Urn),
    /// The provider of an entry does not come before the entry.
    #[error("{urn}: its provider {provider} {position}")]
    Provider {
        /// The entry.
        urn: Urn,
        /// The provider reference.
        provider: ProviderReference,
        /// Position of the provider.
        position: Misplacement,
    },
    /// A resource that an entry refers to does not come before the entry.
    #[error("{urn}: its {relation} {target} {position}")]
    Reference {
        /// The entry.
        urn: Urn,
        /// Relation of the entry to the target.
        relation: Relation<'static>,
        /// The referenced resource.
        target: Urn,
        /// Position of the referenced resource.
        position: Misplacement,
    },
    /// A URN has more than one live entry.
    #[error("{0}: has {1} entries that are not marked for deletion")]
    Duplicate(Urn, usize),
    /// A snippet has no UUID, or the UUID of another snippet.
    #[error("snippet {0:?}: has no uuid, or one that another snippet has too")]
    Snippet(String),
}

/// Position of an entry that has to come earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misplacement {
    /// The entry comes later, or is the referring entry itself.
    Later,
    /// The entry is missing.
    Missing,
}

impl fmt::Display for Misplacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Later => "comes later in the state",
            Self::Missing => "is missing from the state",
        })
    }
}

/// Checks the integrity of a snapshot.
///
/// The type in a URN may differ from the type that the parent implies: Pulumi accepts such entries.
///
/// # Errors
/// [`IntegrityError`] with every violation found.
pub fn verify(snapshot: &Snapshot) -> Result<(), IntegrityError> {
    let mut checker = IntegrityChecker { positions: Positions::new(snapshot), violations: Vec::new() };
    checker.violations.extend(snapshot.manifest.wrong_checksum.clone().map(Violation::WrongChecksum));
    for (index, resource) in snapshot.resources.iter().enumerate() {
        checker.check_entry(index, resource);
    }
    checker.check_snippets(snapshot);
    if checker.violations.is_empty() { Ok(()) } else { Err(IntegrityError { violations: checker.violations }) }
}

/// Index of the first occurrence of each URN and of each provider.
struct Positions<'a> {
    first: HashMap<&'a Urn, usize>,
    live: HashMap<&'a Urn, usize>,
    providers: HashMap<ProviderReference, usize>,
}

impl<'a> Positions<'a> {
    fn new(snapshot: &'a Snapshot) -> Self {
        let count = snapshot.resources.len();
        let mut positions = Self {
            first: HashMap::with_capacity(count),
            live: HashMap::with_capacity(count),
            providers: HashMap::new(),
        };
        for (index, resource) in snapshot.resources.iter().enumerate() {
            positions.first.entry(&resource.urn).or_insert(index);
            if !resource.delete {
                *positions.live.entry(&resource.urn).or_default() += 1;
            }
            if let Some(provider) = resource.as_provider_reference() {
                positions.providers.entry(provider).or_insert(index);
            }
        }
        positions
    }
}

struct IntegrityChecker<'a> {
    positions: Positions<'a>,
    violations: Vec<Violation>,
}

impl<'a> IntegrityChecker<'a> {
    fn check_entry(&mut self, index: usize, resource: &'a ResourceState) {
        let urn = &resource.urn;
        if resource.type_token.as_str().is_empty() {
            self.violations.push(Violation::MissingType(urn.clone()));
        }
        match (resource.custom, &resource.id) {
            (false, Some(id)) => self.violations.push(Violation::ComponentWithId(urn.clone(), id.clone())),
            // A provider publishes its views without ids. A resource without an id is never an entry otherwise: until
            // its create has returned an id, it is a pending operation.
            (true, None) if resource.view_of.is_none() => self.violations.push(Violation::MissingId(urn.clone())),
            _ => {}
        }
        if resource.is_provider() && !TypeToken::new(urn.type_token()).is_provider() {
            self.violations.push(Violation::NotAProviderUrn(urn.clone()));
        }
        // The resource of a pending replacement is deleted already. Its provider may have been replaced since, because
        // no further call for the old resource needs it.
        if let Some(provider) = resource.provider.as_ref().filter(|_| !resource.pending_replacement) {
            self.check_provider(index, urn, provider);
        }
        self.check_references(index, resource);
        if self.positions.first.get(urn) == Some(&index)
            && let Some(live) = self.positions.live.get(urn).filter(|live| **live > 1)
        {
            self.violations.push(Violation::Duplicate(urn.clone(), *live));
        }
    }

    fn check_provider(&mut self, index: usize, urn: &Urn, provider: &ProviderReference) {
        let found = self.positions.providers.get(provider);
        if let Some(position) = find_misplacement(found, index) {
            self.violations.push(Violation::Provider { urn: urn.clone(), provider: provider.clone(), position });
        }
    }

    fn check_references(&mut self, index: usize, resource: &ResourceState) {
        let urn = &resource.urn;
        for (relation, target) in resource.references() {
            // The caller has checked the provider. A view may come before its resource.
            if relation.is_dependency()
                && let Some(position) = find_misplacement(self.positions.first.get(target), index)
            {
                let (urn, relation, target) = (urn.clone(), relation.into_owned(), target.clone());
                self.violations.push(Violation::Reference { urn, relation, target, position });
            }
        }
    }

    fn check_snippets(&mut self, snapshot: &Snapshot) {
        let mut seen = hashbrown::HashSet::new();
        for snippet in &snapshot.rest.snippets {
            let uuid = snippet.get("uuid").and_then(serde_json::Value::as_str).unwrap_or_default();
            if uuid.is_empty() || !seen.insert(uuid) {
                self.violations.push(Violation::Snippet(uuid.to_owned()));
            }
        }
    }
}

fn find_misplacement(found: Option<&usize>, index: usize) -> Option<Misplacement> {
    match found {
        Some(position) if *position < index => None,
        Some(_) => Some(Misplacement::Later),
        None => Some(Misplacement::Missing),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::snapshot::{OperationKind, PendingOperation};

    fn urn(type_token: &str, name: &str) -> Urn {
        Urn::new("s", "p", None, type_token, name)
    }

    fn resource(name: &str) -> ResourceState {
        ResourceState { id: ResourceId::new(name), ..ResourceState::new(urn("t:m:T", name), true) }
    }

    fn provider(id: &str) -> ResourceState {
        ResourceState { id: ResourceId::new(id), ..ResourceState::new(urn("pulumi:providers:t", "default"), true) }
    }

    fn check(resources: Vec<ResourceState>) -> String {
        let snapshot = Snapshot { resources: resources.into_iter().map(Arc::new).collect(), ..Snapshot::default() };
        verify(&snapshot).map_or_else(|error| error.to_string(), |()| "valid".to_owned())
    }

    /// Shows: state.md#invariants "The parent, dependencies, `deletedWith` and `replaceWith` of an entry are earlier
    ///   entries."
    #[test]
    fn references_must_point_to_earlier_entries() {
        let child = || ResourceState { dependencies: vec![urn("t:m:T", "a")], ..resource("b") };
        assert_eq!(check(vec![resource("a"), child()]), "valid");
        let error = check(vec![child(), resource("a")]);
        assert!(error.contains("t:m:T::b: its dependency urn:pulumi:s::p::t:m:T::a comes later"), "{error}");
        let error = check(vec![child()]);
        assert!(error.contains("t:m:T::a is missing from the state"), "{error}");
    }

    #[test]
    fn provider_reference_must_match_urn_and_id_unless_replacement_is_pending() {
        let resource_of = |id: &str| ResourceState { provider: provider(id).as_provider_reference(), ..resource("a") };
        assert_eq!(check(vec![provider("1"), resource_of("1")]), "valid");
        assert!(check(vec![provider("1"), resource_of("2")]).contains("default::2 is missing"));
        assert!(check(vec![resource_of("1"), provider("1")]).contains("default::1 comes later"));
        assert_eq!(check(vec![ResourceState { pending_replacement: true, ..resource_of("1") }]), "valid");
    }

    #[test]
    fn urn_has_at_most_one_entry_without_pending_delete() {
        let pending_delete = ResourceState { delete: true, ..resource("a") };
        assert_eq!(check(vec![resource("a"), pending_delete.clone(), pending_delete]), "valid");
        assert!(check(vec![resource("a"), resource("a")]).contains("has 2 entries"));
    }

    #[test]
    fn component_with_id_is_a_violation() {
        let component = ResourceState { custom: false, id: ResourceId::new("x"), ..resource("a") };
        assert!(check(vec![component]).contains("yet has the id \"x\""));
    }

    /// Shows: state.md#invariants "an entry of a custom resource has one, unless it is a view"
    #[test]
    fn custom_entry_without_id_is_a_violation() {
        let without_id = || ResourceState { id: None, ..resource("a") };
        assert!(check(vec![without_id()]).contains("is managed by a provider, yet has no id"));
        assert!(check(vec![ResourceState { delete: true, ..without_id() }]).contains("yet has no id"));
        assert!(check(vec![ResourceState { id: None, ..provider("1") }]).contains("yet has no id"));
        assert_eq!(check(vec![ResourceState { custom: false, ..without_id() }]), "valid");
        let view = ResourceState { view_of: Some(urn("t:m:T", "b")), ..without_id() };
        assert_eq!(check(vec![resource("b"), view]), "valid");
        let pending = PendingOperation { resource: Arc::new(without_id()), kind: OperationKind::Creating };
        assert_eq!(verify(&Snapshot { pending_operations: vec![pending], ..Snapshot::default() }), Ok(()));
    }

    #[test]
    fn urn_that_does_not_follow_from_its_parent_is_accepted() {
        let child = ResourceState { parent: Some(urn("t:m:T", "a")), ..resource("b") };
        assert!(!child.urn.is_child_of(&urn("t:m:T", "a")));
        assert_eq!(check(vec![resource("a"), child]), "valid");
    }
}
