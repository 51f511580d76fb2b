//! Entries that are deleted before their replacement is created.

use std::sync::Arc;

use hashbrown::HashMap;
use state::{EntryId, ResourceState};
use tokio::sync::watch;

/// State of the deletion of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deleted {
    /// The entry has not been deleted yet.
    NotYet,
    /// The entry was deleted, by this run or by an earlier one that was interrupted.
    Done,
}

/// Sender that reports the deletion of one entry. Dropped without a report if the steps that were to delete the entry
/// end early.
#[derive(Debug)]
pub(crate) struct DeletionReport(watch::Sender<Deleted>);

/// Receiver that waits for the deletion of one entry.
#[derive(Clone, Debug)]
pub(crate) struct DeletionWait(watch::Receiver<Deleted>);

/// Error of a wait for a deletion: the steps that were to delete the entry ended early, so the entry stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryStays;

/// Returns the sender and the receiver for the deletion of an entry.
pub(crate) fn deletion_channel(deleted: Deleted) -> (DeletionReport, DeletionWait) {
    let (sender, receiver) = watch::channel(deleted);
    (DeletionReport(sender), DeletionWait(receiver))
}

impl DeletionReport {
    /// Reports that the entry is deleted.
    pub(crate) fn done(&self) {
        self.0.send_replace(Deleted::Done);
    }
}

impl DeletionWait {
    /// Returns whether the entry is deleted.
    pub(super) fn is_done(&self) -> bool {
        *self.0.borrow() == Deleted::Done
    }

    /// Waits until the entry is deleted.
    ///
    /// # Errors
    /// [`EntryStays`] if the report is dropped before.
    pub(crate) async fn wait(&self) -> Result<(), EntryStays> {
        let mut deleted = self.0.clone();
        deleted.wait_for(|deleted| *deleted == Deleted::Done).await.map(drop).map_err(|_| EntryStays)
    }
}

/// Deletions that precede a replacement: planned, running or done.
#[derive(Debug, Default)]
pub(super) struct EntryDeletions {
    planned: HashMap<EntryId, DeletionWait>,
    /// Entries whose deletion has started, as they were loaded, with the URNs by which loaded entries refer to each
    /// other. These are few at a time, while thousands of deletions may be planned.
    running: HashMap<EntryId, Arc<ResourceState>>,
}

impl EntryDeletions {
    /// Plans the deletion of an entry.
    pub(super) fn plan(&mut self, entry: EntryId, wait: DeletionWait) {
        self.planned.insert(entry, wait);
    }

    /// Starts the deletion of an entry, and returns true. Returns false if the deletion must wait for a running one:
    /// that of an entry that refers to this entry, or that of an entry that this entry refers to.
    ///
    /// The deletion of a resource does not wait for the running deletion of its provider resource, because an instance
    /// is closed only once no call uses it.
    pub(super) fn start(&mut self, entry: EntryId, loaded: Arc<ResourceState>) -> bool {
        let conflicts = |other: &Arc<ResourceState>| {
            other.provider_and_dependencies().any(|urn| *urn == loaded.urn)
                || loaded.all_dependencies().any(|urn| *urn == other.urn)
        };
        if self.running.values().any(conflicts) {
            return false;
        }
        self.running.insert(entry, loaded);
        true
    }

    /// Ends a deletion that has started, successful or not.
    pub(super) fn end(&mut self, entry: EntryId) {
        self.running.remove(&entry);
    }

    /// Returns the receiver that waits for the deletion of an entry; `None` if the entry is not deleted before its
    /// replacement.
    pub(super) fn wait(&self, entry: EntryId) -> Option<&DeletionWait> {
        self.planned.get(&entry)
    }
}

#[cfg(test)]
mod tests {
    use pulumi_proto::urn::Urn;

    use super::*;

    #[tokio::test]
    async fn reported_deletion_ends_the_wait() {
        let (report, wait) = deletion_channel(Deleted::NotYet);
        assert!(!wait.is_done());
        report.done();
        assert!(wait.is_done());
        assert_eq!(wait.wait().await, Ok(()));
    }

    #[tokio::test]
    async fn dropped_report_keeps_the_entry() {
        let (report, wait) = deletion_channel(Deleted::NotYet);
        drop(report);
        assert_eq!(wait.wait().await, Err(EntryStays));
    }

    #[tokio::test]
    async fn deletion_by_an_earlier_run_needs_no_report() {
        let (report, wait) = deletion_channel(Deleted::Done);
        drop(report);
        assert!(wait.is_done());
        assert_eq!(wait.wait().await, Ok(()));
    }

    fn state(name: &str, dependency: Option<&str>) -> Arc<ResourceState> {
        let urn = |name: &str| Urn::new("s", "p", None, "t:m:T", name);
        let mut state = ResourceState::new(urn(name), true);
        state.dependencies = dependency.map(urn).into_iter().collect();
        Arc::new(state)
    }

    #[test]
    fn entries_that_refer_to_each_other_are_deleted_one_after_the_other() {
        let (base, dependent, other) = (EntryId(0), EntryId(1), EntryId(2));
        let mut deletions = EntryDeletions::default();
        for entry in [base, dependent, other] {
            deletions.plan(entry, deletion_channel(Deleted::NotYet).1);
        }
        assert!(deletions.start(dependent, state("dependent", Some("base"))));
        assert!(!deletions.start(base, state("base", None)), "its dependent is being deleted");
        assert!(deletions.start(other, state("other", None)), "it does not depend on them");
        deletions.end(dependent);
        assert!(deletions.start(base, state("base", None)));
        assert!(!deletions.start(dependent, state("dependent", Some("base"))), "its dependency is being deleted");
    }
}
