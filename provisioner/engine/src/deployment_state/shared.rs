//! Lock of the deployment state, and the waits for changes of the state.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pulumi_proto::urn::Urn;
use state::{Entry, Snapshot};
use tokio::sync::Notify;

use super::DeploymentState;

/// Deployment state behind its lock, which is held briefly and never across an await.
#[derive(Debug)]
pub(crate) struct SharedState {
    state: Mutex<DeploymentState>,
    changed: Notify,
}

impl SharedState {
    /// Creates the state of a run that starts from a snapshot.
    pub(crate) fn new(snapshot: Snapshot) -> Self {
        Self { state: Mutex::new(DeploymentState::new(snapshot)), changed: Notify::new() }
    }

    /// Locks the state.
    pub(crate) fn lock(&self) -> MutexGuard<'_, DeploymentState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes every wait check its condition again.
    pub(crate) fn wake(&self) {
        self.changed.notify_waiters();
    }

    /// Finishes a URN (see [`DeploymentState::finish`]), and wakes all waits.
    pub(crate) fn finish(&self, urn: &Urn) {
        self.lock().finish(urn);
        self.wake();
    }

    /// Waits until a condition holds. The condition is checked again at each [`SharedState::wake`].
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

    /// Waits until no entry is being deleted that refers to this one, or that this one refers to, and starts its
    /// deletion.
    ///
    /// Two replacements may have planned to delete entries that depend on each other: these are deleted one after the
    /// other. A deletion that has started waits for no other, so this wait ends.
    pub(crate) async fn start_entry_deletion(&self, entry: &Entry) {
        self.wait_until(|state| state.start_entry_deletion(entry)).await;
    }

    /// Ends the deletion of an entry before its replacement, successful or not, and wakes all waits.
    pub(crate) fn end_entry_deletion(&self, entry: &Entry) {
        self.lock().end_entry_deletion(entry.0);
        self.wake();
    }
}
