//! Entries that name one actual resource, because a provider returned the id of an existing resource.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use pulumi_proto::property::PropertyValue;
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::{ProviderReference, Urn};
use state::{Entry, EntryId, ResourceState};

use super::DeploymentState;
use super::sent_deletes::{OverlappingDelete, RunningDelete};
use crate::decisions::identity::{have_same_id, ids, is_shared_by_many, names_resource};
use crate::decisions::imports::owns_imported;
use crate::goal::{VERSION_KEY, visible};

impl DeploymentState {
    /// Returns whether two entries name one actual resource by their type, id and provider.
    pub(crate) fn is_same_resource(&self, entry: &ResourceState, other: &ResourceState) -> bool {
        names_resource(entry)
            && names_resource(other)
            && have_same_id(entry, other)
            && self.have_same_provider(entry, other)
            && !self.is_id_shared_by_many(entry)
    }

    /// Returns the recorded entries that name an actual resource by its type, id and provider.
    pub(crate) fn entries_of_resource(&self, resource: &ResourceState) -> impl Iterator<Item = Entry> {
        let entries = self.ledger.entries().filter(|(_, state)| self.is_same_resource(resource, state));
        entries.map(|(id, state)| (id, Arc::clone(state)))
    }

    /// Returns the other recorded entries that name the actual resource of an entry by their type, id and provider.
    pub(crate) fn others_of_same_resource(&self, (id, entry): &Entry) -> Vec<Entry> {
        self.entries_of_resource(entry).filter(|(other, _)| other != id).collect()
    }

    /// Returns the recorded entries with an id that another entry of the type has, too.
    pub(crate) fn entries_with_shared_id(&self) -> HashSet<EntryId> {
        let mut by_id: HashMap<(&str, &ResourceId), EntryId> = HashMap::new();
        let mut shared = HashSet::new();
        for (entry, state) in self.ledger.entries().filter(|(_, state)| names_resource(state)) {
            for id in ids(state) {
                let first = *by_id.entry((state.type_token.as_str(), id)).or_insert(entry);
                if first != entry {
                    shared.extend([first, entry]);
                }
            }
        }
        shared
    }

    /// Stores that a Delete is about to be sent for an entry.
    pub(crate) fn begin_delete(&mut self, entry: &Arc<ResourceState>) -> RunningDelete {
        self.sent_deletes.begin(entry)
    }

    /// Stores that a Delete has ended, successful or not.
    pub(crate) fn end_delete(&mut self, delete: &RunningDelete) {
        self.sent_deletes.end(delete);
    }

    /// Returns the number of Deletes that have ended so far.
    pub(crate) fn ended_deletes(&self) -> u64 {
        self.sent_deletes.ended()
    }

    /// Returns a Delete of the resource that a Create has returned, if it was not over when the Create began, with this number of
    /// ended Deletes.
    pub(crate) fn overlapping_delete(&self, created: &ResourceState, ended_before: u64) -> Option<OverlappingDelete> {
        self.sent_deletes.overlapping(created, ended_before, |entry| self.is_same_resource(created, entry))
    }

    fn is_id_shared_by_many(&self, entry: &ResourceState) -> bool {
        let is_live = |other: &ResourceState| names_resource(other) && !other.delete && !other.external;
        let has_id = |other: &ResourceState| have_same_id(entry, other) && self.have_same_provider(entry, other);
        is_shared_by_many(self.loaded.iter().filter(|(_, other)| is_live(other) && has_id(other)).count())
    }

    /// Returns whether two entries have the same provider: one provider resource, or two with equal configurations.
    fn have_same_provider(&self, entry: &ResourceState, other: &ResourceState) -> bool {
        match (&entry.provider, &other.provider) {
            (Some(provider), Some(other)) => self.is_same_provider(provider, other),
            (provider, other) => provider == other,
        }
    }

    /// Returns whether two references name one provider resource, or two with equal configurations.
    pub(super) fn is_same_provider(&self, provider: &ProviderReference, other: &ProviderReference) -> bool {
        let are_equal = || {
            let (ours, theirs) = (self.configuration(provider), self.configuration(other));
            ours.zip(theirs).is_some_and(|(ours, theirs)| ours.same_as(&theirs))
        };
        provider == other || provider.urn.type_token() == other.urn.type_token() && are_equal()
    }

    /// Returns the configuration of a provider resource, without the version of its package.
    fn configuration(&self, reference: &ProviderReference) -> Option<PropertyValue> {
        let is_named = |state: &&Arc<ResourceState>| state.as_provider_reference().as_ref() == Some(reference);
        let recorded = self.ledger.entries_of(&reference.urn).map(|(_, state)| state).find(is_named);
        let mut configuration = visible(&recorded.or_else(|| self.loaded_provider(reference))?.inputs);
        configuration.remove(VERSION_KEY);
        Some(PropertyValue::from(configuration).without_wrappers())
    }
}

impl DeploymentState {
    /// Reserves the resource that is imported as `planned`, in place of the entry `old` if there is one. Called before the
    /// resource is read, and again with the id that the provider returned, which may be another spelling.
    ///
    /// # Errors
    /// The URN that owns the resource: that of another entry, or of an import of this run that has reserved it.
    pub(crate) fn reserve_import(&mut self, planned: &ResourceState, old: Option<EntryId>) -> Result<(), Urn> {
        let others = self.ledger.entries().filter(|(id, _)| Some(*id) != old);
        let mut owners = others.map(|(_, entry)| &**entry).chain(&self.imports);
        if let Some(owner) = owners.find(|entry| owns_imported(entry, planned) && self.is_same_resource(entry, planned))
        {
            return Err(owner.urn.clone());
        }
        self.imports.push(planned.clone());
        Ok(())
    }
}
