//! Deletes that the run has sent. One that was sent while a Create took the same resource over has deleted what the Create returned.

use std::sync::Arc;

use hashbrown::HashMap;
use pulumi_proto::resource_id::ResourceId;
use state::ResourceState;
use tokio::sync::watch;

use super::DeploymentState;
use crate::decisions::identity::ids;

/// Deletes by the id of their resource, in the order in which they were sent.
#[derive(Debug, Default)]
pub(super) struct SentDeletes {
    by_id: HashMap<ResourceId, Vec<SentDelete>>,
    /// Number of Deletes that have ended.
    ended: u64,
}

#[derive(Debug)]
struct SentDelete {
    entry: Arc<ResourceState>,
    /// Number of Deletes that had ended when this one did; 0 while it runs.
    ended: watch::Receiver<u64>,
}

/// Delete that runs. Its end is noted when this is passed to [`DeploymentState::end_delete`].
pub(crate) struct RunningDelete(watch::Sender<u64>);

/// Delete of a resource that a Create has returned.
pub(crate) struct OverlappingDelete {
    /// Entry whose resource was deleted.
    pub(crate) entry: Arc<ResourceState>,
    ended: watch::Receiver<u64>,
}

impl OverlappingDelete {
    /// Waits until the Delete has ended.
    pub(crate) async fn wait(&mut self) {
        // The sender is dropped with a run that is aborted.
        drop(self.ended.wait_for(|ended| *ended > 0).await);
    }
}

impl DeploymentState {
    /// Stores that a Delete is about to be sent for an entry.
    pub(crate) fn begin_delete(&mut self, entry: &Arc<ResourceState>) -> RunningDelete {
        let (sender, ended) = watch::channel(0);
        for id in ids(entry) {
            let sent = SentDelete { entry: Arc::clone(entry), ended: ended.clone() };
            self.sent_deletes.by_id.entry(id.clone()).or_default().push(sent);
        }
        RunningDelete(sender)
    }

    /// Stores that a Delete has ended, successful or not.
    pub(crate) fn end_delete(&mut self, delete: &RunningDelete) {
        self.sent_deletes.ended += 1;
        delete.0.send_replace(self.sent_deletes.ended);
    }

    /// Returns the number of Deletes that have ended so far.
    pub(crate) fn ended_deletes(&self) -> u64 {
        self.sent_deletes.ended
    }

    /// Returns a Delete of the resource that a Create has returned, if it was not over when the Create began, with this number of
    /// ended Deletes.
    pub(crate) fn overlapping_delete(&self, created: &ResourceState, ended_before: u64) -> Option<OverlappingDelete> {
        let overlaps = |sent: &&SentDelete| {
            let ended = *sent.ended.borrow();
            (ended == 0 || ended > ended_before) && self.is_same_resource(created, &sent.entry)
        };
        let sent = ids(created).filter_map(|id| self.sent_deletes.by_id.get(id)).flatten().find(overlaps)?;
        Some(OverlappingDelete { entry: Arc::clone(&sent.entry), ended: sent.ended.clone() })
    }
}
