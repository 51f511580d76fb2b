//! The laws of a snapshot (engine semantics, section 6.2), checked when one is loaded and before one is saved.
//!
//! Pending operations are not checked: their provider may be gone.

use std::fmt;

use hashbrown::HashMap;
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::{ProviderReference, TypeToken, Urn};

use super::resource::ResourceState;
use super::snapshot::Snapshot;

/// A snapshot breaks its laws. Names every breach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntegrityError {
    /// What is wrong, in the order of the entries.
    pub breaches: Vec<Breach>,
}

impl std::error::Error for IntegrityError {}

impl fmt::Display for IntegrityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the state is inconsistent")?;
        for breach in &self.breaches {
            write!(f, "\n  {breach}")?;
        }
        Ok(())
    }
}

/// One law broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Breach {
    /// The checksum in the manifest is not that of its version.
    #[error("its manifest: has the checksum {0:?}, which is not that of its version")]
    Checksum(String),
    /// An entry has no type.
    #[error("{0}: has no type")]
    NoType(Urn),
    /// A component has an id.
    #[error("{0}: is not managed by a provider, yet has the id {1:?}")]
    ComponentWithId(Urn, ResourceId),
    /// The type says provider, the URN does not.
    #[error("{0}: is a provider, but its URN is not that of a provider")]
    NotAProviderUrn(Urn),
    /// The provider that an entry names does not come before it.
    #[error("{urn}: its provider {provider} {position}")]
    Provider {
        /// The entry.
        urn: Urn,
        /// What it names.
        provider: ProviderReference,
        /// Where that is.
        position: Misplaced,
    },
    /// A resource that an entry names does not come before it.
    #[error("{urn}: its {relation} {target} {position}")]
    Reference {
        /// The entry.
        urn: Urn,
        /// How the two are related.
        relation: Relation,
        /// What it names.
        target: Urn,
        /// Where that is.
        position: Misplaced,
    },
    /// A URN has more than one live entry.
    #[error("{0}: has {1} entries that are not marked for deletion")]
    Duplicate(Urn, usize),
    /// A snippet has no identity of its own.
    #[error("snippet {0:?}: has no uuid, or one that another snippet has too")]
    Snippet(String),
}

/// Where something is that should come earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misplaced {
    /// It comes later, or is the entry itself.
    Later,
    /// It is not there.
    Missing,
}

impl fmt::Display for Misplaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Later => "comes later in the state",
            Self::Missing => "is missing from the state",
        })
    }
}

/// How an entry refers to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Relation {
    /// Parent.
    Parent,
    /// One of the dependencies.
    Dependency,
    /// A dependency of that property.
    PropertyDependency(String),
    /// The resource it goes with.
    DeletedWith,
    /// One of the resources it is replaced with.
    ReplaceWith,
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parent => f.write_str("parent"),
            Self::Dependency => f.write_str("dependency"),
            Self::PropertyDependency(property) => write!(f, "dependency (of property {property:?})"),
            Self::DeletedWith => f.write_str("deletedWith"),
            Self::ReplaceWith => f.write_str("replaceWith"),
        }
    }
}

/// Checks a snapshot.
///
/// The type in a URN need not follow from that of the parent: Pulumi accepts such entries.
///
/// # Errors
/// [`IntegrityError`] with every violation found.
pub fn verify(snapshot: &Snapshot) -> Result<(), IntegrityError> {
    let mut check = Check { positions: Positions::of(snapshot), breaches: Vec::new() };
    check.breaches.extend(snapshot.manifest.wrong_checksum.clone().map(Breach::Checksum));
    for (index, resource) in snapshot.resources.iter().enumerate() {
        check.entry(index, resource);
    }
    check.snippets(snapshot);
    if check.breaches.is_empty() { Ok(()) } else { Err(IntegrityError { breaches: check.breaches }) }
}

/// Where each URN and each provider first occurs.
struct Positions<'a> {
    first: HashMap<&'a Urn, usize>,
    live: HashMap<&'a Urn, usize>,
    providers: HashMap<ProviderReference, usize>,
}

impl<'a> Positions<'a> {
    fn of(snapshot: &'a Snapshot) -> Self {
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

struct Check<'a> {
    positions: Positions<'a>,
    breaches: Vec<Breach>,
}

impl<'a> Check<'a> {
    fn entry(&mut self, index: usize, resource: &'a ResourceState) {
        let urn = &resource.urn;
        if resource.type_token.as_str().is_empty() {
            self.breaches.push(Breach::NoType(urn.clone()));
        }
        if let (false, Some(id)) = (resource.custom, &resource.id) {
            self.breaches.push(Breach::ComponentWithId(urn.clone(), id.clone()));
        }
        if resource.is_provider() && !TypeToken::new(urn.type_token()).is_provider() {
            self.breaches.push(Breach::NotAProviderUrn(urn.clone()));
        }
        if let Some(provider) = resource.provider.as_ref().filter(|_| !resource.pending_replacement) {
            self.provider(index, urn, provider);
        }
        self.references(index, resource);
        if self.positions.first.get(urn) == Some(&index)
            && let Some(live) = self.positions.live.get(urn).filter(|live| **live > 1)
        {
            self.breaches.push(Breach::Duplicate(urn.clone(), *live));
        }
    }

    fn provider(&mut self, index: usize, urn: &Urn, provider: &ProviderReference) {
        let found = self.positions.providers.get(provider);
        if let Some(position) = misplaced(found, index) {
            self.breaches.push(Breach::Provider { urn: urn.clone(), provider: provider.clone(), position });
        }
    }

    fn references(&mut self, index: usize, resource: &ResourceState) {
        let urn = &resource.urn;
        if let Some(parent) = &resource.parent {
            self.reference(index, urn, || Relation::Parent, parent);
        }
        for dependency in &resource.dependencies {
            self.reference(index, urn, || Relation::Dependency, dependency);
        }
        for (property, dependencies) in &resource.property_dependencies {
            for dependency in dependencies {
                self.reference(index, urn, || Relation::PropertyDependency(property.clone()), dependency);
            }
        }
        if let Some(target) = &resource.deleted_with {
            self.reference(index, urn, || Relation::DeletedWith, target);
        }
        for target in &resource.replace_with {
            self.reference(index, urn, || Relation::ReplaceWith, target);
        }
    }

    fn reference(&mut self, index: usize, urn: &Urn, relation: impl FnOnce() -> Relation, target: &Urn) {
        if let Some(position) = misplaced(self.positions.first.get(target), index) {
            let (urn, target) = (urn.clone(), target.clone());
            self.breaches.push(Breach::Reference { urn, relation: relation(), target, position });
        }
    }

    fn snippets(&mut self, snapshot: &Snapshot) {
        let mut seen = hashbrown::HashSet::new();
        for snippet in &snapshot.rest.snippets {
            let uuid = snippet.get("uuid").and_then(serde_json::Value::as_str).unwrap_or_default();
            if uuid.is_empty() || !seen.insert(uuid) {
                self.breaches.push(Breach::Snippet(uuid.to_owned()));
            }
        }
    }
}

fn misplaced(found: Option<&usize>, index: usize) -> Option<Misplaced> {
    match found {
        Some(position) if *position < index => None,
        Some(_) => Some(Misplaced::Later),
        None => Some(Misplaced::Missing),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn urn(type_token: &str, name: &str) -> Urn {
        Urn::new("s", "p", None, type_token, name)
    }

    fn resource(name: &str) -> ResourceState {
        ResourceState::new(urn("t:m:T", name), true)
    }

    fn provider(id: &str) -> ResourceState {
        ResourceState { id: ResourceId::new(id), ..ResourceState::new(urn("pulumi:providers:t", "default"), true) }
    }

    fn check(resources: Vec<ResourceState>) -> String {
        let snapshot = Snapshot { resources: resources.into_iter().map(Arc::new).collect(), ..Snapshot::default() };
        verify(&snapshot).map_or_else(|error| error.to_string(), |()| "sound".to_owned())
    }

    #[test]
    fn what_an_entry_refers_to_comes_before_it() {
        let child = || ResourceState { dependencies: vec![urn("t:m:T", "a")], ..resource("b") };
        assert_eq!(check(vec![resource("a"), child()]), "sound");
        let error = check(vec![child(), resource("a")]);
        assert!(error.contains("t:m:T::b: its dependency urn:pulumi:s::p::t:m:T::a comes later"), "{error}");
        let error = check(vec![child()]);
        assert!(error.contains("t:m:T::a is missing from the state"), "{error}");
    }

    #[test]
    fn a_provider_is_named_by_urn_and_id_unless_the_replacement_is_owed() {
        let served = |id: &str| ResourceState { provider: provider(id).as_provider_reference(), ..resource("a") };
        assert_eq!(check(vec![provider("1"), served("1")]), "sound");
        assert!(check(vec![provider("1"), served("2")]).contains("default::2 is missing"));
        assert!(check(vec![served("1"), provider("1")]).contains("default::1 comes later"));
        assert_eq!(check(vec![ResourceState { pending_replacement: true, ..served("1") }]), "sound");
    }

    #[test]
    fn only_one_entry_of_a_urn_is_alive() {
        let superseded = ResourceState { delete: true, ..resource("a") };
        assert_eq!(check(vec![resource("a"), superseded.clone(), superseded]), "sound");
        assert!(check(vec![resource("a"), resource("a")]).contains("has 2 entries"));
    }

    #[test]
    fn a_component_has_no_id() {
        let component = ResourceState { custom: false, id: ResourceId::new("x"), ..resource("a") };
        assert!(check(vec![component]).contains("yet has the id \"x\""));
    }

    #[test]
    fn a_urn_need_not_follow_from_its_parent() {
        let child = ResourceState { parent: Some(urn("t:m:T", "a")), ..resource("b") };
        assert!(!child.urn.follows_from(&urn("t:m:T", "a")));
        assert_eq!(check(vec![resource("a"), child]), "sound");
    }
}
