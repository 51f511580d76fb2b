//! References of a recorded resource to other resources.
//!
//! [`ResourceState::references`] and [`ResourceState::rewrite_references`] are the only code that lists the members with
//! references. Other code matches on the [`Relation`] if it needs a part of them, so that the compiler finds all places of
//! a new one. `aliases` are former URNs of the resource itself, and no references.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use pulumi_proto::urn::Urn;

use super::resource::ResourceState;
use super::snapshot::Snapshot;

/// Relation of a resource to one that it refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Relation<'a> {
    /// Provider of the resource. Its reference has an id beside the URN.
    Provider,
    /// Parent of the resource.
    Parent,
    /// Dependency of the resource.
    Dependency,
    /// Dependency of the named property.
    PropertyDependency(Cow<'a, str>),
    /// Target of `deletedWith`.
    DeletedWith,
    /// Element of `replaceWith`.
    ReplaceWith,
    /// Resource that the entry is a view of.
    ViewOf,
}

impl Relation<'_> {
    /// Returns the relation without borrowed parts.
    pub fn into_owned(self) -> Relation<'static> {
        match self {
            Self::Provider => Relation::Provider,
            Self::Parent => Relation::Parent,
            Self::Dependency => Relation::Dependency,
            Self::PropertyDependency(property) => Relation::PropertyDependency(Cow::Owned(property.into_owned())),
            Self::DeletedWith => Relation::DeletedWith,
            Self::ReplaceWith => Relation::ReplaceWith,
            Self::ViewOf => Relation::ViewOf,
        }
    }

    /// Returns `true` for a relation to a resource that comes earlier in a snapshot, and that the URN alone identifies.
    pub fn is_dependency(&self) -> bool {
        match self {
            Self::Parent | Self::Dependency | Self::PropertyDependency(_) | Self::DeletedWith | Self::ReplaceWith => {
                true
            }
            // A provider is identified by URN and id. A view is published by the provider of its resource, in any order.
            Self::Provider | Self::ViewOf => false,
        }
    }
}

impl fmt::Display for Relation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Provider => f.write_str("provider"),
            Self::Parent => f.write_str("parent"),
            Self::Dependency => f.write_str("dependency"),
            Self::PropertyDependency(property) => write!(f, "dependency (of property {property:?})"),
            Self::DeletedWith => f.write_str("deletedWith"),
            Self::ReplaceWith => f.write_str("replaceWith"),
            Self::ViewOf => f.write_str("viewOf"),
        }
    }
}

/// Change of one reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rewrite {
    /// Leaves the reference as it is.
    Keep,
    /// Changes the URN. The id of a provider reference stays.
    Replace(Urn),
    /// Removes the reference. The key of a property dependency stays, also without URNs.
    Remove,
}

impl Rewrite {
    /// Changes a URN. Returns `false` if the reference is to be removed.
    fn apply(self, urn: &mut Urn) -> bool {
        match self {
            Self::Keep => true,
            Self::Replace(new) => {
                *urn = new;
                true
            }
            Self::Remove => false,
        }
    }
}

impl ResourceState {
    /// Returns all references of the entry: the provider, then the others in the order of [`Relation`].
    pub fn references(&self) -> impl Iterator<Item = (Relation<'_>, &Urn)> {
        let by_property = self.property_dependencies.iter().flat_map(|(property, urns)| {
            urns.iter().map(move |urn| (Relation::PropertyDependency(Cow::Borrowed(property)), urn))
        });
        let provider = self.provider.iter().map(|provider| (Relation::Provider, &provider.urn));
        provider
            .chain(self.parent.iter().map(|urn| (Relation::Parent, urn)))
            .chain(self.dependencies.iter().map(|urn| (Relation::Dependency, urn)))
            .chain(by_property)
            .chain(self.deleted_with.iter().map(|urn| (Relation::DeletedWith, urn)))
            .chain(self.replace_with.iter().map(|urn| (Relation::ReplaceWith, urn)))
            .chain(self.view_of.iter().map(|urn| (Relation::ViewOf, urn)))
    }

    /// Changes the references of the entry, in the order of [`ResourceState::references`].
    pub fn rewrite_references(&mut self, mut rewrite: impl FnMut(Relation<'_>, &Urn) -> Rewrite) {
        let mut keep = |relation: Relation<'_>, urn: &mut Urn| rewrite(relation, urn).apply(urn);
        self.provider.take_if(|provider| !keep(Relation::Provider, &mut provider.urn));
        self.parent.take_if(|urn| !keep(Relation::Parent, urn));
        self.dependencies.retain_mut(|urn| keep(Relation::Dependency, urn));
        for (property, urns) in &mut self.property_dependencies {
            urns.retain_mut(|urn| keep(Relation::PropertyDependency(Cow::Borrowed(property)), urn));
        }
        self.deleted_with.take_if(|urn| !keep(Relation::DeletedWith, urn));
        self.replace_with.retain_mut(|urn| keep(Relation::ReplaceWith, urn));
        self.view_of.take_if(|urn| !keep(Relation::ViewOf, urn));
    }

    /// Returns the URNs of all dependencies: see [`Relation::is_dependency`].
    pub fn all_dependencies(&self) -> impl Iterator<Item = &Urn> {
        self.references().filter(|(relation, _)| relation.is_dependency()).map(|(_, urn)| urn)
    }

    /// Returns the URN of the provider, then those of all dependencies.
    pub fn provider_and_dependencies(&self) -> impl Iterator<Item = &Urn> {
        let comes_earlier = |relation: &Relation<'_>| *relation == Relation::Provider || relation.is_dependency();
        self.references().filter(move |(relation, _)| comes_earlier(relation)).map(|(_, urn)| urn)
    }

    /// Removes the dependencies that are not to be kept: see [`Relation::is_dependency`].
    pub fn retain_dependencies(&mut self, mut is_kept: impl FnMut(Relation<'_>, &Urn) -> bool) {
        self.rewrite_references(|relation, urn| match relation.is_dependency() {
            true if !is_kept(relation, urn) => Rewrite::Remove,
            true | false => Rewrite::Keep,
        });
    }
}

impl Snapshot {
    /// Changes a URN in all entries, in the resources of the pending operations, and in all references of both.
    pub fn replace_urn(&mut self, from: &Urn, to: &Urn) {
        let pending = self.pending_operations.iter_mut().map(|pending| &mut pending.resource);
        for state in self.resources.iter_mut().chain(pending) {
            if state.urn != *from && state.references().all(|(_, urn)| urn != from) {
                continue;
            }
            let state = Arc::make_mut(state);
            if state.urn == *from {
                state.urn = to.clone();
            }
            state.rewrite_references(|_, urn| if urn == from { Rewrite::Replace(to.clone()) } else { Rewrite::Keep });
        }
    }
}

#[cfg(test)]
mod tests {
    use pulumi_proto::urn::ProviderReference;

    use super::*;
    use crate::snapshot::{OperationKind, PendingOperation};

    fn urn(name: &str) -> Urn {
        Urn::new("s", "p", None, "t:m:T", name)
    }

    /// Returns an entry that has each relation to a resource of its own.
    fn entry() -> ResourceState {
        ResourceState {
            provider: Some(ProviderReference::new(urn("provider"), "1")),
            parent: Some(urn("parent")),
            dependencies: vec![urn("first"), urn("second")],
            property_dependencies: [("v".to_owned(), vec![urn("of v")]), ("w".to_owned(), Vec::new())].into(),
            deleted_with: Some(urn("deleted with")),
            replace_with: vec![urn("replaced with")],
            view_of: Some(urn("viewed")),
            aliases: vec![urn("former")],
            ..ResourceState::new(urn("entry"), true)
        }
    }

    fn shown(state: &ResourceState) -> Vec<String> {
        state.references().map(|(relation, urn)| format!("{relation} {}", urn.name())).collect()
    }

    const ALL: [&str; 8] = [
        "provider provider",
        "parent parent",
        "dependency first",
        "dependency second",
        "dependency (of property \"v\") of v",
        "deletedWith deleted with",
        "replaceWith replaced with",
        "viewOf viewed",
    ];

    #[test]
    fn all_references_are_visited_and_rewritten_in_one_order() {
        let mut state = entry();
        assert_eq!(shown(&state), ALL);
        let mut rewritten = Vec::new();
        state.rewrite_references(|relation, target| {
            rewritten.push(format!("{relation} {}", target.name()));
            Rewrite::Replace(urn(&format!("new {}", target.name())))
        });
        assert_eq!(rewritten, ALL);
        assert!(state.references().all(|(_, urn)| urn.name().starts_with("new ")), "{state:?}");
        assert_eq!((&state.urn, &state.aliases), (&urn("entry"), &vec![urn("former")]));
        assert_eq!(state.provider, Some(ProviderReference::new(urn("new provider"), "1")));
    }

    #[test]
    fn removal_of_dependencies_keeps_provider_view_and_keys_of_properties() {
        let mut state = entry();
        state.retain_dependencies(|_, target| *target == urn("second"));
        assert_eq!(shown(&state), ["provider provider", "dependency second", "viewOf viewed"]);
        assert_eq!(state.property_dependencies.keys().collect::<Vec<_>>(), ["v", "w"]);
        state.rewrite_references(|_, _| Rewrite::Remove);
        assert_eq!(shown(&state), [""; 0]);
    }

    #[test]
    fn dependencies_are_all_references_but_provider_and_view() {
        let state = entry();
        let named = |urns: Vec<&Urn>| urns.into_iter().map(|urn| urn.name().to_owned()).collect::<Vec<_>>();
        let expected = ["parent", "first", "second", "of v", "deleted with", "replaced with"];
        assert_eq!(named(state.all_dependencies().collect()), expected);
        let with_provider = named(state.provider_and_dependencies().collect());
        assert_eq!((with_provider[0].as_str(), &with_provider[1..]), ("provider", &expected.map(str::to_owned)[..]));
    }

    #[test]
    fn replaced_urn_changes_in_each_reference_of_entries_and_pending_operations() {
        for (index, (_, target)) in entry().references().enumerate() {
            let resource = Arc::new(entry());
            let pending = PendingOperation { resource: Arc::clone(&resource), kind: OperationKind::Creating };
            let untouched = Arc::new(ResourceState::new(urn("other"), true));
            let mut snapshot = Snapshot {
                resources: vec![Arc::clone(&untouched), Arc::clone(&resource)],
                pending_operations: vec![pending],
                ..Snapshot::default()
            };
            snapshot.replace_urn(target, &urn("new"));
            for changed in [&snapshot.resources[1], &snapshot.pending_operations[0].resource] {
                let names: Vec<&str> = changed.references().map(|(_, urn)| urn.name()).collect();
                let expected: Vec<&str> = resource.references().map(|(_, urn)| urn.name()).collect();
                let different = (0..names.len()).filter(|place| names[*place] != expected[*place]);
                assert_eq!((different.collect::<Vec<_>>(), names[index]), (vec![index], "new"));
            }
            assert!(Arc::ptr_eq(&snapshot.resources[0], &untouched));
        }
    }
}
