//! Recorder that writes the records of a run to its journal.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use crate::error::StateError;
use crate::journal::Journal;
use crate::record::Record;
use crate::recorder::StateRecorder;
use crate::secrets::{Crypter, SecretsError, SecretsManager};

/// Recorder that writes the records of a run to its journal.
pub struct JournalRecorder {
    pub(super) journal: Arc<Mutex<Journal>>,
    pub(super) manager: Result<Arc<dyn SecretsManager>, SecretsError>,
    pub(super) crypter: Option<Arc<dyn Crypter>>,
}

impl JournalRecorder {
    /// Starts to derive or fetch the key of the secrets in the background.
    pub fn prepare_secrets(&self) {
        if let Ok(manager) = &self.manager {
            manager.prepare();
        }
    }
}

#[async_trait]
impl StateRecorder for JournalRecorder {
    fn append(&mut self, record: &Record) -> Result<(), StateError> {
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        journal.append(record, self.crypter.as_deref())
    }

    fn defer(&mut self, record: Record) {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner).defer(record);
    }

    async fn wait_for_secrets(&mut self) -> Result<(), StateError> {
        if self.crypter.is_none() {
            self.crypter = Some(self.manager.clone()?.crypter().await?);
        }
        Ok(())
    }
}
