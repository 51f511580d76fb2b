//! Access to the state of one stack.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::lock_settings::LockSettings;
use crate::error::StateError;
use crate::format::{ConfigValue, FormatError};
use crate::journal::{self, JournalFolders, JournalMode, ListedJournals, StoredJournal};
use crate::secrets::Keyring;
use crate::snapshot::SecretsDescription;
use crate::store::{StackReference, StateStore, StoredJournals};
use crate::unrecorded::Unrecorded;

/// Store, keys and settings for the access to the state of a stack.
#[derive(Clone)]
pub struct StackAccess {
    /// Store of the states.
    pub store: StateStore,
    /// Name of the stack.
    pub stack: StackReference,
    /// Keys that the user provided.
    pub keyring: Arc<Keyring>,
    /// Secrets manager of the stack file. If absent, that of the state is used, or a new one.
    pub configured_secrets: Option<SecretsDescription>,
    /// Configuration of the stack file by key (`namespace:name`), for the history.
    pub config: BTreeMap<String, ConfigValue>,
    /// Folders of the journals.
    pub journals: JournalFolders,
    /// Guarantee that a run waits for. In a store that is not on this machine, a run with another one than
    /// [`JournalMode::Local`] writes its journal there, too.
    pub journal_mode: JournalMode,
    /// Receives what a run could not record. Empty again once the run has saved its state.
    pub unrecorded: Unrecorded,
    /// Treatment of the locks of other runs, and of the loss of the own one.
    pub locks: LockSettings,
    /// `true` if a run may begin a new stack under the old name of one that was renamed.
    pub begins_anew: bool,
    /// Version to write into manifests, with a leading `v`.
    pub engine_version: String,
}

impl StackAccess {
    /// Returns `true` if a run has left a journal, or is writing one: on this machine, or in the store.
    ///
    /// # Errors
    /// [`StateError`] if the folder of the journals or the store cannot be read.
    pub async fn has_journal(&self) -> Result<bool, StateError> {
        self.has_lines(journal::list(&self.journals, &self.store, &self.stack).await?).await
    }

    /// Returns the same, with the objects of a listing of the store.
    ///
    /// # Errors
    /// The errors of [`StackAccess::has_journal`].
    pub(super) async fn has_journal_in(&self, journals: &StoredJournals) -> Result<bool, StateError> {
        let objects = self.store.journal_objects_in(journals, &self.stack);
        self.has_lines(journal::list_with(&self.journals, &self.stack, objects)?).await
    }

    async fn has_lines(&self, listed: ListedJournals) -> Result<bool, StateError> {
        let journals = listed.read(&self.store, &self.stack).await?;
        Ok(journals.is_none_or(|journals| journals.iter().any(StoredJournal::has_lines)))
    }

    /// Returns `true` if a run writes its journal to the store, too.
    pub(super) fn has_stored_journal(&self) -> bool {
        self.journals.is_remote() && self.journal_mode != JournalMode::Local
    }

    /// Returns the error of a checkpoint of the stack that cannot be read.
    pub(super) fn checkpoint_error(&self, source: FormatError) -> StateError {
        let file = self.store.checkpoint_location(&self.stack);
        StateError::Checkpoint { stack: self.stack.clone(), file, source: Box::new(source) }
    }
}
