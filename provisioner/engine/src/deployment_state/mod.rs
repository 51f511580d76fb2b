//! Deployment state: the entries that were loaded, and everything that a run has decided and recorded since.
//!
//! Input: a loaded snapshot, then every decision and every record of the run. Output: inputs of decisions, the
//! effects of steps, and in the end the new snapshot. [`SharedState`] is the only place that locks it. Excluded: I/O,
//! async work, calls of providers.

mod announced;
mod deletion_claims;
mod dependents;
mod effects;
mod entry_deletions;
mod former_dependents;
mod readings;
mod renames;
mod repairs;
mod resource_record;
mod resource_status;
mod sent_deletes;
mod shared;
mod shared_resources;
#[cfg(test)]
mod tests;
mod transitions;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use pulumi_proto::property::PropertyMap;
use pulumi_proto::urn::{ProviderReference, Urn};
use state::{EntryId, Ledger, ResourceState, Snapshot};

use crate::decisions::deletions::order_pending_deletes_first;
use crate::decisions::scope::UrnPattern;
use crate::events::{Deletions, SourceRef, StepOp, is_managed};
use crate::missing::ProviderReadings;
use state::Entry;

pub(crate) use dependents::{EntriesByUrn, by_urn};
pub(crate) use entry_deletions::{Deleted, DeletionReport, DeletionWait, EntryStays, deletion_channel};
pub(crate) use former_dependents::{FormerDependent, FormerDependentKind};
pub(crate) use renames::rename_view;
pub(crate) use repairs::EmptyKeys;
pub(crate) use resource_record::{Incomplete, Inheritance, PlannedDependentReplacement};
pub(crate) use shared::SharedState;

use entry_deletions::EntryDeletions;
use resource_record::{Announced, ResourceRecord};
use sent_deletes::SentDeletes;

/// State of a deployment: the loaded entries, and everything that the run has decided and recorded since.
#[derive(Debug)]
pub(crate) struct DeploymentState {
    ledger: Ledger,
    /// All entries as they were loaded (and refreshed), in their order.
    loaded: Vec<Entry>,
    /// Live entry of each loaded URN. Views are left out: no program registers them.
    loaded_live: HashMap<Urn, EntryId>,
    /// Loaded provider resources, by the references to them.
    loaded_providers: HashMap<ProviderReference, Arc<ResourceState>>,
    /// URNs of loaded entries that a refresh of this run has removed.
    removed_by_refresh: Vec<Urn>,
    /// Record of each URN that the run has touched.
    resources: HashMap<Urn, ResourceRecord>,
    /// True if any resource is incomplete.
    any_incomplete: bool,
    /// Recorded URNs, each with the URN of the registration that has taken it over. Resources that stay under their
    /// recorded URN have none.
    new_urns: HashMap<Urn, Urn>,
    /// URNs of registrations, each with the recorded URN that the registration has taken over.
    recorded_urns: HashMap<Urn, Urn>,
    /// Recorded URNs under which resources stay, each with the URN of the registration.
    kept_urns: HashMap<Urn, Urn>,
    /// Deletions that precede a replacement: planned, running or done.
    entry_deletions: EntryDeletions,
    /// Deletes that the run has sent.
    sent_deletes: SentDeletes,
    /// Entries that the run has confirmed as they were recorded, without their goal.
    kept_as_recorded: HashSet<EntryId>,
    /// Entries whose recorded `deletedWith` the program has changed or removed.
    released_deleted_with: HashSet<EntryId>,
    /// URNs that targets or excludes name, and their dependents if the options include these.
    scope_marks: HashSet<Urn>,
    /// Resources that the program will register, once it has announced them.
    announced: Option<Announced>,
    /// Resources that imports of this run have reserved.
    imports: Vec<ResourceState>,
    /// Number of successful steps of each kind.
    counts: BTreeMap<StepOp, usize>,
    /// Number of deleted resources.
    deletions: Deletions,
    /// Entries whose resources the run has decided to delete, if their number has a limit.
    claimed_deletions: HashSet<EntryId>,
    /// URNs of deleted resources: the recorded ones, and those under which the program has registered the resources.
    deleted_urns: BTreeSet<Urn>,
    /// URNs of created resources with pending creates of earlier runs.
    may_exist: BTreeSet<Urn>,
    /// Recorded URNs of deleted resources that count as replaced.
    deleted_and_replaced: HashSet<Urn>,
    /// Results of reading recorded resources, by the URN of their provider.
    readings: BTreeMap<Urn, ProviderReadings>,
    is_refresh_refused: bool,
    /// Outputs of the root stack, held back until the end.
    stack_outputs: Option<(Urn, PropertyMap)>,
}

impl DeploymentState {
    /// Creates the state of a run that starts from a snapshot.
    pub(crate) fn new(snapshot: Snapshot) -> Self {
        let mut state = Self {
            ledger: Ledger::new(snapshot),
            loaded: Vec::new(),
            loaded_live: HashMap::new(),
            loaded_providers: HashMap::new(),
            removed_by_refresh: Vec::new(),
            resources: HashMap::new(),
            any_incomplete: false,
            new_urns: HashMap::new(),
            recorded_urns: HashMap::new(),
            kept_urns: HashMap::new(),
            entry_deletions: EntryDeletions::default(),
            sent_deletes: SentDeletes::default(),
            kept_as_recorded: HashSet::new(),
            released_deleted_with: HashSet::new(),
            scope_marks: HashSet::new(),
            announced: None,
            imports: Vec::new(),
            counts: BTreeMap::new(),
            deletions: Deletions::default(),
            claimed_deletions: HashSet::new(),
            deleted_urns: BTreeSet::new(),
            may_exist: BTreeSet::new(),
            deleted_and_replaced: HashSet::new(),
            readings: BTreeMap::new(),
            is_refresh_refused: false,
            stack_outputs: None,
        };
        state.reload();
        state
    }

    /// Replaces the loaded entries by the current list: at the start of the run, and after a refresh.
    pub(crate) fn reload(&mut self) {
        let before = std::mem::take(&mut self.loaded);
        self.loaded = self.ledger.entries().map(|(id, state)| (id, Arc::clone(state))).collect();
        if before.len() > self.loaded.len() {
            let remaining: HashSet<EntryId> = self.loaded.iter().map(|(id, _)| *id).collect();
            let removed = before.into_iter().filter(|(id, _)| !remaining.contains(id));
            self.removed_by_refresh.extend(removed.map(|(_, state)| state.urn.clone()));
        }
        let live = self.loaded.iter().filter(|(_, state)| !state.delete && state.view_of.is_none());
        self.loaded_live = live.map(|(id, state)| (state.urn.clone(), *id)).collect();
        self.loaded_providers = self
            .loaded
            .iter()
            .filter_map(|(_, state)| Some((state.as_provider_reference()?, Arc::clone(state))))
            .collect();
    }

    /// Reloads like [`DeploymentState::reload`], and moves pending deletes before their dependents.
    pub(crate) fn reload_pending_deletes_first(&mut self) {
        self.reload();
        self.loaded = order_pending_deletes_first(&self.loaded, |entry| self.ledger.is_confirmed(entry));
    }

    /// Returns the ledger, which holds the current list of entries.
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Returns the ledger, to apply a record or to number a new entry.
    pub(crate) fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    /// Returns all entries as they were loaded (and refreshed), in their order.
    pub(crate) fn loaded_entries(&self) -> &[Entry] {
        &self.loaded
    }

    /// Returns a provider resource as it was loaded, under its recorded URN or the one that this run has given it.
    pub(crate) fn loaded_provider(&self, reference: &ProviderReference) -> Option<&Arc<ResourceState>> {
        let renamed = || {
            let urn = self.recorded_urn(&reference.urn)?.clone();
            self.loaded_providers.get(&ProviderReference { urn, id: reference.id.clone() })
        };
        self.loaded_providers.get(reference).or_else(renamed)
    }

    /// Returns whether a URN had a live entry when the state was loaded.
    pub(crate) fn was_live(&self, urn: &Urn) -> bool {
        self.loaded_live.contains_key(urn)
    }

    /// Returns the live entry that was loaded for a URN, as it is now; `None` if this run has removed it.
    pub(crate) fn old(&self, urn: &Urn) -> Option<Entry> {
        let id = *self.loaded_live.get(urn)?;
        Some((id, Arc::clone(self.ledger.get(id)?)))
    }

    /// Returns the live entry that was loaded for a URN, as it is now, or as it was if this run has removed it.
    pub(crate) fn old_or_removed(&self, urn: &Urn) -> Option<Entry> {
        let id = *self.loaded_live.get(urn)?;
        let state = self.ledger.get(id).or_else(|| self.ledger.base_entry(id))?;
        Some((id, Arc::clone(state)))
    }

    /// Returns the live entry that was loaded for a URN, or that this run has renamed to the URN together with its
    /// parent.
    pub(crate) fn live(&self, urn: &Urn) -> Option<Entry> {
        let renamed = || self.ledger.entries_of(urn).find(|(_, state)| !state.delete);
        self.old(urn).or_else(|| renamed().map(|(id, state)| (id, Arc::clone(state))))
    }

    /// Returns an entry as it was at the start of the run, with the URNs by which the entries referred to each other
    /// then.
    pub(crate) fn as_in_base(&self, entry: &Entry) -> Entry {
        (entry.0, Arc::clone(self.ledger.base_entry(entry.0).unwrap_or(&entry.1)))
    }

    /// Returns whether a pattern matches a URN that was loaded, or registered in this run.
    pub(crate) fn has_match(&self, pattern: &UrnPattern) -> bool {
        self.known_urns().any(|urn| pattern.matches(urn))
    }

    /// Returns the URNs that were loaded, or registered in this run.
    pub(crate) fn known_urns(&self) -> impl Iterator<Item = &Urn> {
        let loaded = self.loaded.iter().map(|(_, state)| &state.urn);
        let registered = self.resources.iter().filter(|(_, record)| record.inheritance.is_some()).map(|(urn, _)| urn);
        loaded.chain(&self.removed_by_refresh).chain(registered)
    }

    /// Counts a step that succeeded, unless the step is a part of another one that is counted
    /// (docs/spec/engine-semantics.md#9.3).
    pub(crate) fn count(&mut self, op: StepOp) {
        if op.is_counted() {
            *self.counts.entry(op).or_default() += 1;
        }
    }

    /// Counts the resource of an entry as deleted, unless it stays. `before_replace` is true if the deletion precedes the
    /// replacement. Older copies of a replaced resource, pending deletes of earlier runs, do not count as replaced.
    pub(crate) fn count_deletion(&mut self, entry: &ResourceState, before_replace: bool) {
        if !Self::is_counted_deletion(entry) {
            return;
        }
        let urns = [entry.urn.clone(), self.new_urn(&entry.urn).clone()];
        self.deleted_urns.extend(urns);
        let is_replaced = before_replace || self.is_marked_for_replacement(self.new_urn(&entry.urn));
        if is_replaced && self.deleted_and_replaced.insert(entry.urn.clone()) {
            self.deletions.replaced += 1;
        } else {
            self.deletions.removed += 1;
        }
    }

    /// Returns whether the deletion of an entry deletes a resource.
    fn is_counted_deletion(entry: &ResourceState) -> bool {
        is_managed(entry) && !entry.retain_on_delete
    }

    /// Returns the number of deleted resources.
    pub(crate) fn deletions(&self) -> Deletions {
        self.deletions
    }

    /// Takes the URNs of the deleted resources.
    pub(crate) fn take_deleted_urns(&mut self) -> BTreeSet<Urn> {
        std::mem::take(&mut self.deleted_urns)
    }

    /// Returns whether an earlier run may have created the resource of a URN: its Create has begun, and no id is known. Remembers
    /// the URN if so.
    pub(crate) fn may_exist(&mut self, urn: &Urn) -> bool {
        let mut pending = self.ledger.base().pending_operations.iter();
        let may_exist = pending.any(|operation| operation.is_create_without_id() && operation.resource.urn == *urn);
        if may_exist {
            self.may_exist.insert(urn.clone());
        }
        may_exist
    }

    /// Takes the URNs of the creations for which [`DeploymentState::may_exist`] was true.
    pub(crate) fn take_creations_that_may_exist(&mut self) -> BTreeSet<Urn> {
        std::mem::take(&mut self.may_exist)
    }

    /// Takes the counts of the steps that succeeded.
    pub(crate) fn take_counts(&mut self) -> BTreeMap<StepOp, usize> {
        std::mem::take(&mut self.counts)
    }

    /// Holds the outputs of the root stack back until the end of the run.
    pub(crate) fn hold_stack_outputs(&mut self, root: Urn, outputs: PropertyMap) {
        self.stack_outputs = Some((root, outputs));
    }

    /// Takes the outputs of the root stack that were held back.
    pub(crate) fn take_stack_outputs(&mut self) -> Option<(Urn, PropertyMap)> {
        self.stack_outputs.take()
    }

    /// Returns the URNs that targets or excludes name, to extend them or to look them up.
    pub(crate) fn scope_marks(&mut self) -> &mut HashSet<Urn> {
        &mut self.scope_marks
    }

    /// Stores the secrets that the program gives to a component, which its plugin may register as plain values.
    pub(crate) fn set_constructed_secrets(&mut self, urn: &Urn, secrets: PropertyMap) {
        self.record_mut(urn).constructed_secrets = secrets;
    }

    /// Returns the secrets that the program gives to a component that its plugin registers.
    pub(crate) fn constructed_secrets(&self, urn: &Urn) -> Option<&PropertyMap> {
        let secrets = self.resources.get(urn).map(|record| &record.constructed_secrets);
        secrets.filter(|secrets| !secrets.is_empty())
    }

    /// Stores where the program wrote a component that its plugin constructs, or the component that a resource is in.
    pub(crate) fn set_source(&mut self, urn: &Urn, source: SourceRef) {
        self.record_mut(urn).source = Some(source);
    }

    /// Returns where the program wrote the component that registers a resource: the resource itself, or its parent.
    pub(crate) fn source_of_component(&self, urn: &Urn, parent: Option<&Urn>) -> Option<SourceRef> {
        let source = |urn: &Urn| self.resources.get(urn).and_then(|record| record.source);
        source(urn).or_else(|| source(parent?))
    }
}
