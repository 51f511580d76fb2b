//! Recorder that writes the records of a run to its journal.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::error::StateError;
use crate::held_lease::HeldLease;
use crate::journal::{Journal, SegmentStatistics};
use crate::receipt::Receipt;
use crate::record::Record;
use crate::recorder::StateRecorder;
use crate::secrets::{SecretsError, SecretsManager};

/// Recorder that writes the records of a run to its journal.
pub struct JournalRecorder {
    pub(super) journal: Arc<Mutex<Journal>>,
    pub(super) manager: Result<Arc<dyn SecretsManager>, SecretsError>,
    pub(super) lease: Option<HeldLease>,
}

impl JournalRecorder {
    /// Starts to derive or fetch the key of the secrets in the background.
    pub fn prepare_secrets(&self) {
        if let Ok(manager) = &self.manager {
            manager.prepare();
        }
    }

    fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl StateRecorder for JournalRecorder {
    fn append(&mut self, record: &Record) -> Result<Receipt, StateError> {
        self.journal().append(record)
    }

    fn defer(&mut self, record: Record) {
        self.journal().defer(record);
    }

    fn delays_operations(&self) -> bool {
        self.journal().is_awaited_at_all()
    }

    fn segment_statistics(&self) -> Option<SegmentStatistics> {
        self.journal().segments().map(|segments| segments.statistics())
    }

    fn lease(&self) -> Option<HeldLease> {
        self.lease.clone()
    }

    async fn wait_for_secrets(&mut self) -> Result<(), StateError> {
        if !self.journal().has_crypter() {
            let crypter = self.manager.clone()?.crypter().await?;
            self.journal().set_crypter(crypter);
        }
        Ok(())
    }
}
