//! Transitions of the state of a URN or of an entry: each is a method of [`DeploymentState`].

use pulumi_proto::urn::Urn;
use state::{Entry, EntryId};

use super::DeploymentState;
use super::entry_deletions::DeletionWait;
use super::resource_record::{Incomplete, Inheritance, PlannedDependentReplacement, ResourceRecord};
use super::resource_status::ResourceStatus;

/// Error of a registration: the URN has been registered before in this run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RegisteredTwice;

impl DeploymentState {
    pub(super) fn record_mut(&mut self, urn: &Urn) -> &mut ResourceRecord {
        self.resources.entry(urn.clone()).or_default()
    }

    pub(super) fn status(&self, urn: &Urn) -> ResourceStatus {
        self.resources.get(urn).map(|record| record.status).unwrap_or_default()
    }

    /// Begins the registration of a resource, or a read.
    ///
    /// # Errors
    /// [`RegisteredTwice`] if the URN has been registered before; children inherit from the first registration then.
    pub(crate) fn register(&mut self, urn: &Urn, inheritance: Inheritance) -> Result<(), RegisteredTwice> {
        let record = self.record_mut(urn);
        if record.inheritance.is_some() {
            return Err(RegisteredTwice);
        }
        record.inheritance = Some(inheritance);
        record.status.register();
        Ok(())
    }

    /// Registers a resource also under its recorded URN, under which it stays, so that the program can name it as a
    /// parent by either URN.
    pub(crate) fn register_recorded_urn(&mut self, urn: &Urn, recorded: &Urn) {
        if urn != recorded
            && let Some(inheritance) = self.inheritance(urn).cloned()
        {
            // A former registration of the recorded URN stays.
            if self.register(recorded, inheritance).is_ok() {
                self.kept_urns.insert(recorded.clone(), urn.clone());
            }
        }
    }

    /// Returns the options that the children of a registered resource inherit.
    pub(crate) fn inheritance(&self, urn: &Urn) -> Option<&Inheritance> {
        self.resources.get(urn)?.inheritance.as_ref()
    }

    /// Returns whether the program has registered a loaded resource with `retainOnDelete`.
    pub(crate) fn is_registered_as_retained(&self, urn: &Urn) -> bool {
        self.inheritance(self.new_urn(urn)).is_some_and(|options| options.retain_on_delete)
    }

    /// Marks the steps of a resource as decided.
    pub(crate) fn decide(&mut self, urn: &Urn) {
        self.record_mut(urn).status.decide();
    }

    /// Marks the entry of a URN as carried over by the steps of another resource.
    pub(crate) fn begin_carry_over(&mut self, urn: &Urn) {
        self.record_mut(urn).status.carry_over();
    }

    /// Finishes a URN: other jobs no longer wait for it. Called after each step except a replacement and its delete;
    /// further steps of the same registration may follow. Also finishes the recorded URN of the entry that it took
    /// over, unless the steps of another resource carry that entry over.
    pub(crate) fn finish(&mut self, urn: &Urn) {
        let recorded = self.recorded_urns.get(urn).map(|recorded| self.current_urn(recorded));
        let recorded = recorded.filter(|recorded| !self.status(recorded).is_carried_over());
        for urn in recorded.iter().chain([urn]) {
            self.record_mut(urn).status.finish();
        }
    }

    /// Returns whether the work on a URN is finished: other jobs no longer wait for it.
    pub(crate) fn is_finished(&self, urn: &Urn) -> bool {
        self.status(urn).is_finished()
    }

    /// Returns whether a registration of a URN has begun, or steps have been decided for it, such as those of another
    /// resource that carry its entry over.
    pub(crate) fn has_begun(&self, urn: &Urn) -> bool {
        self.resources.get(urn).is_some_and(|record| record.inheritance.is_some() || record.status.is_decided())
    }

    /// Returns whether steps have been decided for exactly this URN. New URNs are not followed.
    pub(crate) fn is_decided_by_urn(&self, urn: &Urn) -> bool {
        self.status(urn).is_decided()
    }

    /// Returns whether steps have been decided for a loaded resource, under its new URN if it has one.
    pub(crate) fn is_decided(&self, urn: &Urn) -> bool {
        self.status(self.new_urn(urn)).is_decided()
    }

    /// Returns whether the program has registered or read a loaded resource, under its loaded URN or a new one.
    pub(crate) fn is_registered(&self, urn: &Urn) -> bool {
        self.has_begun(urn) || self.is_taken_over(urn)
    }

    /// Returns whether the steps of another resource carry the entry of a URN over, or have done so.
    pub(crate) fn is_carried_over(&self, urn: &Urn) -> bool {
        self.status(urn).is_carried_over()
    }

    /// Stores the entry of a registration or a read that succeeded.
    pub(crate) fn store_registered(&mut self, urn: &Urn, entry: Entry) {
        self.record_mut(urn).entry = Some(entry);
    }

    /// Returns the entry of a registration or a read of this run that succeeded, as it was recorded then.
    pub(crate) fn registered(&self, urn: &Urn) -> Option<&Entry> {
        self.resources.get(urn)?.entry.as_ref()
    }

    /// Returns the entries of all registrations and reads that have succeeded.
    pub(crate) fn all_registered(&self) -> impl Iterator<Item = &Entry> {
        self.resources.values().filter_map(|record| record.entry.as_ref())
    }

    /// Marks a resource as incomplete. A reason never replaces a more severe one.
    pub(crate) fn mark_incomplete(&mut self, urn: &Urn, incomplete: Incomplete) {
        self.any_incomplete = true;
        let record = self.record_mut(urn);
        record.incomplete = record.incomplete.max(Some(incomplete));
    }

    fn incomplete(&self, urn: &Urn) -> Option<Incomplete> {
        // References are looked up often, and most runs have no incomplete resource.
        if self.any_incomplete { self.resources.get(urn)?.incomplete } else { None }
    }

    /// Returns whether a resource failed, depends on one that failed, or is a component that was not constructed.
    pub(crate) fn has_failed(&self, urn: &Urn) -> bool {
        self.incomplete(urn) >= Some(Incomplete::Failed)
    }

    /// Returns whether a resource was not created because of the scope, or because it needs one that was not created.
    pub(crate) fn is_skipped(&self, urn: &Urn) -> bool {
        self.incomplete(urn) == Some(Incomplete::Skipped)
    }

    pub(super) fn is_not_constructed(&self, urn: &Urn) -> bool {
        self.incomplete(urn) == Some(Incomplete::NotConstructed)
    }

    /// Returns whether any component was not constructed.
    pub(super) fn has_not_constructed(&self) -> bool {
        self.any_incomplete
            && self.resources.values().any(|record| record.incomplete == Some(Incomplete::NotConstructed))
    }

    /// Marks a resource whose replacement this run has planned or carried out.
    pub(crate) fn mark_for_replacement(&mut self, urn: &Urn) {
        self.record_mut(urn).marked_for_replacement = true;
    }

    /// Returns whether a resource is marked for replacement: its replacement is planned, running or done.
    pub(crate) fn is_marked_for_replacement(&self, urn: &Urn) -> bool {
        self.resources.get(urn).is_some_and(|record| record.marked_for_replacement)
    }

    /// Marks a URN whose deletion this run has planned.
    pub(crate) fn mark_for_deletion(&mut self, urn: &Urn) {
        self.record_mut(urn).marked_for_deletion = true;
    }

    /// Marks the loaded and the current URN of an entry whose deletion this run has planned.
    pub(crate) fn mark_entry_for_deletion(&mut self, entry: &Entry) {
        let loaded = self.as_in_base(entry).1.urn.clone();
        let now = self.ledger.get(entry.0).map(|state| state.urn.clone());
        for urn in now.iter().chain([&loaded]) {
            self.mark_for_deletion(urn);
        }
    }

    /// Returns whether a URN is marked for deletion: the deletion is planned, running or done, or has failed.
    pub(crate) fn is_marked_for_deletion(&self, urn: &Urn) -> bool {
        self.resources.get(urn).is_some_and(|record| record.marked_for_deletion)
    }

    /// Plans the deletion of an entry before its replacement is created.
    pub(crate) fn plan_entry_deletion(&mut self, entry: EntryId, wait: DeletionWait) {
        self.entry_deletions.plan(entry, wait);
    }

    /// Plans a dependent replacement: the entry is deleted before the resource that it depends on, and created again by
    /// its own registration. A pending delete is only deleted.
    pub(crate) fn plan_dependent_replacement(&mut self, entry: &Entry, planned: PlannedDependentReplacement) {
        self.plan_entry_deletion(entry.0, planned.deletion.clone());
        if !entry.1.delete {
            self.record_mut(&entry.1.urn).planned_dependent_replacement = Some(planned);
        }
        self.mark_entry_for_deletion(entry);
    }

    /// Returns the planned dependent replacement of a resource, under its current or its recorded URN.
    pub(crate) fn planned_dependent_replacement(&self, urn: &Urn) -> Option<&PlannedDependentReplacement> {
        let of = |urn: &Urn| self.resources.get(urn)?.planned_dependent_replacement.as_ref();
        of(urn).or_else(|| of(self.recorded_urns.get(urn)?))
    }

    /// Returns whether the deletion of an entry before a replacement is planned, running or done.
    pub(crate) fn is_deleted_before_replace(&self, entry: EntryId) -> bool {
        self.entry_deletions.wait(entry).is_some()
    }

    /// Returns whether the deletion of an entry before its replacement was planned, and is not done.
    pub(crate) fn is_deletion_unfinished(&self, entry: EntryId) -> bool {
        self.entry_deletions.wait(entry).is_some_and(|wait| !wait.is_done())
    }

    /// Starts the deletion of an entry before its replacement, and returns true. Returns false if the deletion must
    /// wait for a running one (see `EntryDeletions::start`).
    pub(crate) fn start_entry_deletion(&mut self, entry: &Entry) -> bool {
        let loaded = self.as_in_base(entry).1;
        self.entry_deletions.start(entry.0, loaded)
    }

    /// Ends the deletion of an entry before its replacement, successful or not.
    pub(crate) fn end_entry_deletion(&mut self, entry: EntryId) {
        self.entry_deletions.end(entry);
    }

    /// Returns the planned deletion of an entry before its replacement.
    pub(super) fn entry_deletion(&self, entry: EntryId) -> Option<&DeletionWait> {
        self.entry_deletions.wait(entry)
    }

    /// Marks an entry that is confirmed as it was recorded, without its goal.
    pub(crate) fn keep_as_recorded(&mut self, entry: EntryId) {
        self.kept_as_recorded.insert(entry);
    }

    /// Marks an entry whose recorded `deletedWith` the program has changed or removed.
    pub(crate) fn release_deleted_with(&mut self, entry: EntryId) {
        self.released_deleted_with.insert(entry);
    }

    /// Returns whether the program has changed or removed the `deletedWith` that is recorded for an entry.
    pub(crate) fn is_deleted_with_released(&self, entry: EntryId) -> bool {
        self.released_deleted_with.contains(&entry)
    }
}
