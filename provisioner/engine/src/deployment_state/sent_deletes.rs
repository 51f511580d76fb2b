//! Deletes that the run has sent. One that was sent while a Create took the same resource over has deleted what the Create returned.

use std::sync::Arc;

use hashbrown::HashMap;
use pulumi_proto::resource_id::ResourceId;
use state::ResourceState;
use tokio::sync::watch;

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

/// Delete that runs. Its end is noted when this is passed to [`SentDeletes::end`].
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

impl SentDeletes {
    /// Adds a Delete that is about to be sent for an entry.
    pub(super) fn begin(&mut self, entry: &Arc<ResourceState>) -> RunningDelete {
        let (sender, ended) = watch::channel(0);
        for id in ids(entry) {
            let sent = SentDelete { entry: Arc::clone(entry), ended: ended.clone() };
            self.by_id.entry(id.clone()).or_default().push(sent);
        }
        RunningDelete(sender)
    }

    pub(super) fn end(&mut self, delete: &RunningDelete) {
        self.ended += 1;
        delete.0.send_replace(self.ended);
    }

    /// Returns the number of Deletes that have ended so far.
    pub(super) fn ended(&self) -> u64 {
        self.ended
    }

    /// Returns a Delete with an id of an entry that was not over when this number of Deletes had ended.
    pub(super) fn overlapping(
        &self,
        created: &ResourceState,
        ended_before: u64,
        is_same: impl Fn(&ResourceState) -> bool,
    ) -> Option<OverlappingDelete> {
        let overlaps = |sent: &&SentDelete| {
            let ended = *sent.ended.borrow();
            (ended == 0 || ended > ended_before) && is_same(&sent.entry)
        };
        let sent = ids(created).filter_map(|id| self.by_id.get(id)).flatten().find(overlaps)?;
        Some(OverlappingDelete { entry: Arc::clone(&sent.entry), ended: sent.ended.clone() })
    }
}
