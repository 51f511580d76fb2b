//! Interface of a store for what it has of a stack, as a migration moves it.

use async_trait::async_trait;
use jiff::Timestamp;

use super::copy::CopyKind;
use super::error::StoreError;
use super::history_entry::HistoryEntry;
use super::migration_mark::MigrationMark;
use super::reference::StackReference;
use super::revision::StoredCheckpoint;

/// Contents of a stack in a store, also of a stack with a mark. Callers of the methods that write must hold the lock.
#[async_trait]
pub trait StackContents: Send + Sync {
    /// Returns the checkpoint of a stack, whatever its mark says; `None` if there is none.
    async fn read_checkpoint(&self, stack: &StackReference) -> Result<Option<StoredCheckpoint>, StoreError>;

    /// Returns the entries of the history, oldest first.
    async fn history_entries(&self, stack: &StackReference) -> Result<Vec<HistoryEntry>, StoreError>;

    /// Returns the texts of the history entries, oldest first.
    async fn history(&self, stack: &StackReference) -> Result<Vec<String>, StoreError> {
        Ok(self.history_entries(stack).await?.into_iter().map(|entry| entry.update).collect())
    }

    /// Adds an entry to the history without a copy of the checkpoint. An entry of the same time is replaced.
    async fn add_history_entry(&self, stack: &StackReference, entry: &HistoryEntry) -> Result<(), StoreError>;

    /// Adds a copy of a checkpoint. A copy of the same kind and time is replaced; there is one previous checkpoint.
    async fn add_copy(
        &self,
        stack: &StackReference,
        kind: CopyKind,
        time: Timestamp,
        checkpoint: &str,
    ) -> Result<(), StoreError>;

    /// Returns the location of the mark of a stack, for messages.
    fn mark_location(&self, stack: &StackReference) -> String;

    /// Returns the mark of a stack.
    async fn mark(&self, stack: &StackReference) -> Result<Option<MigrationMark>, StoreError>;

    /// Replaces or removes the mark of a stack.
    async fn set_mark(&self, stack: &StackReference, mark: Option<&MigrationMark>) -> Result<(), StoreError>;
}
