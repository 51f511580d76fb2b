//! The one place that locks a deployment's state, and the waits for changes of it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pulumi_proto::urn::Urn;
use state::Snapshot;
use tokio::sync::Notify;

use super::DeploymentState;
use crate::entry::Entry;

/// A deployment's state behind its lock, which is held for moments and never across an await.
#[derive(Debug)]
pub(crate) struct SharedState {
    state: Mutex<DeploymentState>,
    changed: Notify,
}

impl SharedState {
    /// Starts from a loaded snapshot.
    pub(crate) fn new(snapshot: Snapshot) -> Self {
        Self { state: Mutex::new(DeploymentState::new(snapshot)), changed: Notify::new() }
    }

    /// Locks the state.
    pub(crate) fn lock(&self) -> MutexGuard<'_, DeploymentState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has every wait look again.
    pub(crate) fn wake(&self) {
        self.changed.notify_waiters();
    }

    /// Notes that nothing more is done for a URN (see [`DeploymentState::settle`]).
    pub(crate) fn settle(&self, urn: &Urn) {
        self.lock().settle(urn);
        self.wake();
    }

    /// Waits until a condition holds. It is looked at again at each [`SharedState::wake`].
    pub(crate) async fn wait_until(&self, mut holds: impl FnMut(&mut DeploymentState) -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if holds(&mut self.lock()) {
                return;
            }
            changed.await;
        }
    }

    /// Waits until no entry is being deleted that refers to this one, nor one that this one refers to, and begins its
    /// deletion.
    ///
    /// Two replacements may have planned to delete entries that depend on each other: they go one after the other then. A
    /// deletion that has begun waits for no other, so this wait ends.
    pub(crate) async fn start_entry_deletion(&self, entry: &Entry) {
        self.wait_until(|state| state.start_entry_deletion(entry)).await;
    }

    /// Ends the deletion of an entry before its replacement, successful or not.
    pub(crate) fn end_entry_deletion(&self, entry: &Entry) {
        self.lock().end_entry_deletion(entry.0);
        self.wake();
    }
}
