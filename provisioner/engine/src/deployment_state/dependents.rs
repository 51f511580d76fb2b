//! Which entries depend on which others.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use pulumi_proto::urn::{ProviderReference, Urn};
use state::{EntryId, ResourceState};

use super::DeploymentState;
use super::entry_deletions::DeletionWait;
use crate::entry::Entry;

/// Entries as they were loaded, by URN.
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
    /// Returns the entries that this run has confirmed already although they depend on one that is about to change, in their
    /// order.
    pub(crate) fn confirmed_dependents(&self, entry: EntryId) -> Vec<EntryId> {
        if !self.ledger.is_finished(entry) {
            return Vec::new();
        }
        let mut urns: HashSet<&Urn> = HashSet::new();
        let mut found = Vec::new();
        for (id, state) in self.ledger.entries().filter(|(id, _)| self.ledger.is_finished(*id)) {
            if id == entry {
                urns.insert(&state.urn);
            } else if state.provider_and_references().any(|urn| urns.contains(urn)) {
                urns.insert(&state.urn);
                found.push(id);
            }
        }
        found
    }

    /// Whether everything that a goal refers to is confirmed by this run and does not depend on the entry that the goal is
    /// about.
    pub(crate) fn can_become(&self, entry: EntryId, goal: &ResourceState) -> bool {
        let serves = |provider: &ProviderReference| {
            let mut named = self.ledger.named(&provider.urn).filter(|(id, _)| self.ledger.is_finished(*id));
            named.any(|(_, state)| state.as_provider_reference().as_ref() == Some(provider))
        };
        let dependents = self.confirmed_dependents(entry);
        goal.provider.as_ref().is_none_or(serves)
            && goal.references().all(|urn| self.is_confirmed_before(urn, entry, &dependents))
    }

    /// Whether an entry can be made to refer to a URN.
    pub(super) fn can_refer_to(&self, entry: EntryId, urn: &Urn) -> bool {
        self.is_confirmed_before(urn, entry, &self.confirmed_dependents(entry))
    }

    /// Whether this run has confirmed what has a URN, and that does not depend on an entry, as `dependents` do.
    fn is_confirmed_before(&self, urn: &Urn, entry: EntryId, dependents: &[EntryId]) -> bool {
        let mut confirmed = false;
        for (id, _) in self.ledger.named(urn) {
            if id == entry || dependents.contains(&id) {
                return false;
            }
            confirmed |= self.ledger.is_finished(id);
        }
        confirmed
    }

    /// Returns the deletions, planned already, of entries that refer to one of these URNs.
    pub(crate) fn deletions_of_dependents(&self, urns: &HashSet<Urn>) -> Vec<DeletionWait> {
        let refers = |state: &ResourceState| state.provider_and_references().any(|urn| urns.contains(urn));
        let dependents = self.loaded.iter().filter(|(_, state)| refers(state));
        dependents.filter_map(|(id, _)| self.entry_deletion(*id).cloned()).collect()
    }

    /// Returns the entries within a component that was not constructed, or within a component that was not registered: what
    /// the program would have registered of them is unknown.
    pub(crate) fn within_not_constructed(&self) -> HashSet<EntryId> {
        let mut found = HashSet::new();
        if !self.has_not_constructed() {
            return found;
        }
        let mut components: HashSet<&Urn> = HashSet::new();
        for (id, state) in &self.loaded {
            let is_within = state.parent.as_ref().is_some_and(|parent| components.contains(parent));
            let is_one = || self.is_not_constructed(self.new_name(&state.urn)) || !self.is_registered(&state.urn);
            if is_within || (!state.custom && is_one()) {
                found.insert(*id);
                components.insert(&state.urn);
            }
        }
        found
    }

    /// Adds everything that an entry needs, directly or not, to the entries that stay. What was live when it was loaded needs
    /// no entries that were superseded before, except the one provider that it names.
    pub(crate) fn keep_dependencies(
        &self,
        entry: (EntryId, &Arc<ResourceState>),
        by_urn: &EntriesByUrn<'_>,
        kept: &mut HashSet<EntryId>,
    ) {
        let mut open = vec![entry];
        while let Some((id, state)) = open.pop() {
            for urn in state.provider_and_references() {
                for (needed, other) in by_urn.get(urn).into_iter().flatten() {
                    let serves = other.as_provider_reference().is_some_and(|name| state.provider == Some(name));
                    // Superseded since: what has not been registered again still needs it.
                    let was_live = || {
                        self.ledger.loaded(id).is_some() && self.ledger.loaded(*needed).is_some_and(|old| !old.delete)
                    };
                    let is_needed = state.delete || !other.delete || serves || was_live();
                    if is_needed && kept.insert(*needed) {
                        open.extend(self.with_current_dependencies(*needed, other));
                    }
                }
            }
        }
    }

    /// Returns what names the dependencies of a loaded entry: what this run has made of it, or else what was recorded.
    fn with_current_dependencies<'t>(
        &'t self,
        loaded: EntryId,
        recorded: &'t Arc<ResourceState>,
    ) -> Option<(EntryId, &'t Arc<ResourceState>)> {
        match self.ledger.get(loaded) {
            Some(now) if self.ledger.is_finished(loaded) && !now.delete => Some((loaded, now)),
            Some(_) => Some((loaded, recorded)),
            None => self.ledger.named(self.new_name(&recorded.urn)).find(|(_, new)| !new.delete),
        }
    }
}
