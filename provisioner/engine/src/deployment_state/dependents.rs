//! Dependencies between entries.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use pulumi_proto::urn::{ProviderReference, Urn};
use state::{Entry, EntryId, ResourceState};

use super::DeploymentState;
use super::entry_deletions::DeletionWait;

/// Loaded entries by URN.
pub(crate) type EntriesByUrn<'a> = HashMap<&'a Urn, Vec<&'a Entry>>;

/// Groups entries by URN.
pub(crate) fn by_urn(entries: &[Entry]) -> EntriesByUrn<'_> {
    let mut by_urn: EntriesByUrn<'_> = HashMap::new();
    for entry in entries {
        by_urn.entry(&entry.1.urn).or_default().push(entry);
    }
    by_urn
}

impl DeploymentState {
    /// Returns the direct and indirect dependents of an entry that this run has confirmed already, in the order of the
    /// list; none if the entry itself is not confirmed.
    pub(crate) fn confirmed_dependents(&self, entry: EntryId) -> Vec<EntryId> {
        if !self.ledger.is_confirmed(entry) {
            return Vec::new();
        }
        let mut urns: HashSet<&Urn> = HashSet::new();
        let mut found = Vec::new();
        for (id, state) in self.ledger.entries().filter(|(id, _)| self.ledger.is_confirmed(*id)) {
            if id == entry {
                urns.insert(&state.urn);
            } else if state.provider_and_dependencies().any(|urn| urns.contains(urn)) {
                urns.insert(&state.urn);
                found.push(id);
            }
        }
        found
    }

    /// Returns whether this run has confirmed the provider of a goal and every reference of the goal, and no reference
    /// is the entry of the goal or depends on it.
    pub(crate) fn can_apply_goal(&self, entry: EntryId, goal: &ResourceState) -> bool {
        let serves = |provider: &ProviderReference| {
            let mut named = self.ledger.entries_of(&provider.urn).filter(|(id, _)| self.ledger.is_confirmed(*id));
            named.any(|(_, state)| state.as_provider_reference().as_ref() == Some(provider))
        };
        let dependents = self.confirmed_dependents(entry);
        goal.provider.as_ref().is_none_or(serves)
            && goal.all_dependencies().all(|urn| self.is_confirmed_before(urn, entry, &dependents))
    }

    /// Returns whether an entry can be made to refer to a URN.
    pub(super) fn can_refer_to(&self, entry: EntryId, urn: &Urn) -> bool {
        self.is_confirmed_before(urn, entry, &self.confirmed_dependents(entry))
    }

    /// Returns whether this run has confirmed an entry of a URN, and no entry of the URN is `entry` or one of its
    /// `dependents`.
    fn is_confirmed_before(&self, urn: &Urn, entry: EntryId, dependents: &[EntryId]) -> bool {
        let mut confirmed = false;
        for (id, _) in self.ledger.entries_of(urn) {
            if id == entry || dependents.contains(&id) {
                return false;
            }
            confirmed |= self.ledger.is_confirmed(id);
        }
        confirmed
    }

    /// Returns the planned deletions of loaded entries that refer to one of these URNs.
    pub(crate) fn deletions_of_dependents(&self, urns: &HashSet<Urn>) -> Vec<DeletionWait> {
        let refers = |state: &ResourceState| state.provider_and_dependencies().any(|urn| urns.contains(urn));
        let dependents = self.loaded.iter().filter(|(_, state)| refers(state));
        dependents.filter_map(|(id, _)| self.entry_deletion(*id).cloned()).collect()
    }

    /// Returns the recorded components that were not constructed, and all entries within them. The program might have
    /// registered these entries. If a component was not constructed, the result also includes each component that was
    /// not registered, with all entries within it.
    pub(crate) fn within_not_constructed(&self) -> HashSet<EntryId> {
        let mut found = HashSet::new();
        if !self.has_not_constructed() {
            return found;
        }
        let mut components: HashSet<&Urn> = HashSet::new();
        for (id, state) in &self.loaded {
            let is_within = state.parent.as_ref().is_some_and(|parent| components.contains(parent));
            let is_one = || self.is_not_constructed(self.new_urn(&state.urn)) || !self.is_registered(&state.urn);
            if is_within || (!state.custom && is_one()) {
                found.insert(*id);
                components.insert(&state.urn);
            }
        }
        found
    }

    /// Returns whether this run has applied the program to an entry: it matches its goal, and uses what the goal refers to now. An
    /// entry that is carried over, failed, or is no longer registered stays as an earlier run left it.
    pub(crate) fn is_applied(&self, entry: EntryId, state: &ResourceState) -> bool {
        self.ledger.is_confirmed(entry)
            && !self.kept_as_recorded.contains(&entry)
            && !self.has_failed(self.new_urn(&state.urn))
    }

    /// Adds the direct and indirect dependencies of an entry to `staying`, the entries that are not deleted. Pending
    /// deletes of earlier runs are dependencies of a live entry only as its provider, or if this run has not applied the
    /// program to the entry: the run that replaced the dependency may have failed to update the entry.
    pub(crate) fn add_dependencies(
        &self,
        entry: (EntryId, &Arc<ResourceState>),
        by_urn: &EntriesByUrn<'_>,
        staying: &mut HashSet<EntryId>,
    ) {
        let mut open = vec![entry];
        while let Some((id, state)) = open.pop() {
            for urn in state.provider_and_dependencies() {
                for (needed, other) in by_urn.get(urn).into_iter().flatten() {
                    let serves = other.as_provider_reference().is_some_and(|name| state.provider == Some(name));
                    if (serves || self.is_used(id, state, *needed, other)) && staying.insert(*needed) {
                        open.extend(self.with_current_dependencies(*needed, other));
                    }
                }
            }
        }
    }

    /// Returns whether an entry uses this entry of a URN that it refers to, and not only another one.
    fn is_used(&self, user: EntryId, state: &ResourceState, needed: EntryId, other: &ResourceState) -> bool {
        let is_old_version = |entry: Option<&Arc<ResourceState>>| entry.is_some_and(|entry| entry.delete);
        if state.delete {
            return true;
        }
        if is_old_version(self.ledger.base_entry(needed)) {
            return !self.is_applied(user, state);
        }
        // Loaded entries that were not registered again still need an entry that this run has replaced. If they are out of
        // scope, the user has asked for the replacement without them.
        let is_carried_over = self.ledger.get(user).is_some_and(|now| self.is_carried_over(&now.urn));
        let is_loaded = !other.delete || self.ledger.base_entry(user).is_some();
        is_loaded && !(is_carried_over && is_old_version(self.ledger.get(needed)))
    }

    /// Returns the entry whose references are the current dependencies of a loaded entry. An entry that this run has
    /// confirmed and not replaced has its current references, and any other recorded entry has its loaded references. A
    /// removed entry has the references of its successor; `None` if there is none.
    fn with_current_dependencies<'t>(
        &'t self,
        loaded: EntryId,
        recorded: &'t Arc<ResourceState>,
    ) -> Option<(EntryId, &'t Arc<ResourceState>)> {
        match self.ledger.get(loaded) {
            Some(now) if self.ledger.is_confirmed(loaded) && !now.delete => Some((loaded, now)),
            Some(_) => Some((loaded, recorded)),
            None => self.ledger.entries_of(self.new_urn(&recorded.urn)).find(|(_, new)| !new.delete),
        }
    }
}
