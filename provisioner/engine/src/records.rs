//! Records of a run: begins and effects of operations, written before they are applied to the deployment state.

use std::fmt;
use std::sync::Arc;

use state::secrets::SecretsError;
use state::{
    Effect, HeldLease, OperationId, OperationKind, Receipt, Record, ResourceState, SegmentStatistics, StateError,
    StateRecorder, Subject,
};
use tokio::sync::{Mutex, OnceCell};
use tracing::{Instrument as _, debug_span};

use crate::deployment_state::{DeploymentState, SharedState};
use crate::events::RunMode;

/// Writes records, one at a time, and applies them to the deployment state.
pub(crate) struct Records {
    state: Arc<SharedState>,
    mode: RunMode,
    recorder: Mutex<Option<Box<dyn StateRecorder>>>,
    /// Lease of the lock of the stack.
    lease: Option<HeldLease>,
    secrets_ready: OnceCell<()>,
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records").field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl Records {
    /// Creates the writer of a deployment. Without a recorder, records are only applied to the deployment state.
    pub(crate) fn new(state: Arc<SharedState>, mode: RunMode, recorder: Option<Box<dyn StateRecorder>>) -> Self {
        let lease = recorder.as_ref().and_then(|recorder| recorder.lease());
        Self { state, mode, recorder: Mutex::new(recorder), lease, secrets_ready: OnceCell::new() }
    }

    /// Returns the statistics about what was written to the store so far.
    pub(crate) async fn segment_statistics(&self) -> Option<SegmentStatistics> {
        self.recorder.lock().await.as_ref().and_then(|recorder| recorder.segment_statistics())
    }

    /// Waits until the lock of the stack is held for certain, before a call that may change something and that no record
    /// precedes. Does nothing in a preview.
    ///
    /// # Errors
    /// [`StateError`] if the lock is lost, or cannot be renewed.
    pub(crate) async fn confirm_lock(&self) -> Result<(), StateError> {
        match (self.mode, &self.lease) {
            (RunMode::Apply, Some(lease)) => lease.confirm().await,
            (RunMode::Apply, None) | (RunMode::Preview, _) => Ok(()),
        }
    }

    /// Records that an operation is about to begin, and returns it with the receipt of the record. The operation must not begin
    /// if the record cannot be written, or if the lock of the stack is lost, nor before [`Records::confirm_begin`] has returned.
    ///
    /// # Errors
    /// [`StateError`] if the record cannot be written, or the lock is lost.
    pub(crate) async fn begin(
        &self,
        kind: OperationKind,
        resource: &Arc<ResourceState>,
    ) -> Result<(OperationId, Receipt), StateError> {
        let operation = self.state.lock().ledger_mut().new_operation();
        match self.mode {
            RunMode::Preview => Ok((operation, Receipt::complete())),
            RunMode::Apply => {
                self.confirm_lock().await?;
                let subject = |state: &DeploymentState| state.ledger().subject(resource);
                let written = self.write(|state| Record::Begin { operation, kind, subject: subject(state) }).await?;
                Ok((operation, written))
            }
        }
    }

    /// Waits until the record of an operation that is about to begin is as durable as the run demands, and the lock is held for
    /// certain. If that fails, the operation has not begun and ends without an effect.
    ///
    /// # Errors
    /// [`StateError`] if the store cannot be reached, or the lock is lost.
    pub(crate) async fn confirm_begin(&self, operation: OperationId, receipt: Receipt) -> Result<(), StateError> {
        if receipt.is_complete() {
            return Ok(());
        }
        let durable = match receipt.wait().instrument(debug_span!("wait", subject = "journal in the store")).await {
            Ok(()) => self.confirm_lock().await,
            Err(error) => Err(error),
        };
        if durable.is_err() {
            // The first error is the reason; without this record the operation is a pending one.
            self.end_without_effect(Some(operation)).await.ok();
        }
        durable
    }

    /// Records the id of a resource whose Create stays pending. Does nothing in a preview.
    ///
    /// # Errors
    /// Same as [`Records::end`].
    pub(crate) async fn record_pending_id(
        &self,
        operation: OperationId,
        kind: OperationKind,
        resource: Arc<ResourceState>,
    ) -> Result<(), StateError> {
        match self.mode {
            RunMode::Preview => Ok(()),
            RunMode::Apply => {
                let subject = Subject::Resource(resource);
                self.write(|_| Record::Begin { operation, kind, subject }).await?.wait().await
            }
        }
    }

    /// Records the effects of a step. `operation` is `None` if the step began no operation.
    ///
    /// # Errors
    /// [`StateError`] if the record cannot be written. The effects are applied to the deployment state nevertheless.
    pub(crate) async fn end(
        &self,
        operation: Option<OperationId>,
        effects: impl FnOnce(&DeploymentState) -> Vec<Effect>,
    ) -> Result<(), StateError> {
        match operation {
            Some(operation) => {
                let written = self.write(|state| Record::End { operation, effects: effects(state) }).await?;
                written.wait().await
            }
            None => self.change(effects).await,
        }
    }

    /// Records a change that belongs to no operation.
    ///
    /// # Errors
    /// Same as [`Records::end`].
    pub(crate) async fn change(&self, effects: impl FnOnce(&DeploymentState) -> Vec<Effect>) -> Result<(), StateError> {
        self.write(|state| Record::Change(effects(state))).await?.wait().await
    }

    /// Records that an operation had no effect.
    ///
    /// # Errors
    /// Same as [`Records::end`].
    pub(crate) async fn end_without_effect(&self, operation: Option<OperationId>) -> Result<(), StateError> {
        self.end(operation, |_| Vec::new()).await
    }

    /// Records a change that may be lost in a crash without harm. Either all effects of the change are lost, or none.
    pub(crate) async fn defer(&self, effects: impl FnOnce(&DeploymentState) -> Vec<Effect>) {
        let mut recorder = self.recorder.lock().await;
        let effects = effects(&self.state.lock());
        if effects.is_empty() {
            return;
        }
        let record = Record::Change(effects);
        self.state.lock().ledger_mut().apply(&record);
        if let Some(recorder) = &mut *recorder {
            recorder.defer(record);
        }
    }

    /// Writes a record and applies it. A record that could not be written is applied nevertheless, so that the state at
    /// the end includes it; the first begin of an operation is the exception, because the operation does not begin.
    ///
    /// The record is created under the lock of the recorder, from the current list of entries.
    async fn write(&self, record: impl FnOnce(&DeploymentState) -> Record) -> Result<Receipt, StateError> {
        let mut recorder = self.recorder.lock().await;
        let record = record(&self.state.lock());
        if matches!(&record, Record::Change(effects) if effects.is_empty()) {
            return Ok(Receipt::complete());
        }
        let written = match &mut *recorder {
            Some(recorder) => self.append(recorder.as_mut(), &record).await,
            None => Ok(Receipt::complete()),
        };
        let mut state = self.state.lock();
        let begins = matches!(record, Record::Begin { operation, .. } if !state.ledger().is_pending(operation));
        if written.is_ok() || !begins {
            state.ledger_mut().apply(&record);
        }
        written
    }

    /// Appends a record. An operation begins only if its outcome can be written, which may need the key of the secrets
    /// manager. Other records need no key unless they contain secrets.
    async fn append(&self, recorder: &mut dyn StateRecorder, record: &Record) -> Result<Receipt, StateError> {
        if self.secrets_ready.get().is_none() {
            if !matches!(record, Record::Begin { .. }) {
                match recorder.append(record) {
                    Err(StateError::Secrets(SecretsError::KeyNeeded)) => {}
                    written => return written,
                }
            }
            recorder.wait_for_secrets().await?;
            self.secrets_ready.set(()).ok();
        }
        recorder.append(record)
    }
}
