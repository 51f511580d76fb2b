//! Contents of a stack in a store, as a migration moves them: also of a stack with a mark.

use bridge::fs::MAX_DOCUMENT_BYTES;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;

use super::catalog::{HistoryEntry, PARALLEL_REQUESTS};
use super::error::StoreError;
use super::layout::CopyKind;
use super::migration_mark::MigrationMark;
use super::move_record::{MoveRecord, MoveSide};
use super::reference::StackReference;
use super::state_store::StateStore;
use super::{layout, stored_mark};
use crate::MAX_STATE_BYTES;

impl StateStore {
    /// Returns the entries of the history, oldest first.
    pub async fn history_entries(&self, stack: &StackReference) -> Result<Vec<HistoryEntry>, StoreError> {
        let folder = self.layout.history(stack);
        let listed = self.objects.list(&folder).await?;
        let named = listed.into_iter().filter_map(|object| {
            Some((layout::time_of_history_entry(stack, &object.name)?, format!("{folder}/{}", object.name)))
        });
        let read = named.map(async |(time, key)| {
            let update = self.read_text(&key, MAX_DOCUMENT_BYTES).await?;
            Ok::<_, StoreError>(update.map(|update| HistoryEntry { time, update }))
        });
        let entries: Vec<_> = stream::iter(read).buffered(PARALLEL_REQUESTS).try_collect().await?;
        Ok(entries.into_iter().flatten().collect())
    }

    /// Returns the texts of the history entries, oldest first.
    pub async fn history(&self, stack: &StackReference) -> Result<Vec<String>, StoreError> {
        Ok(self.history_entries(stack).await?.into_iter().map(|entry| entry.update).collect())
    }

    /// Adds an entry to the history without a copy of the checkpoint. An entry of the same time is replaced.
    pub async fn add_history_entry(&self, stack: &StackReference, entry: &HistoryEntry) -> Result<(), StoreError> {
        let compression = self.options.compression;
        let [key, _] = self.layout.history_files(stack, entry.time.as_nanosecond());
        let update = compression.compress(&entry.update).into_owned().into();
        self.replace(&format!("{key}{}", compression.suffix()), update).await
    }

    /// Adds a copy of a checkpoint. A copy of the same kind and time is replaced; there is one previous checkpoint.
    pub async fn add_copy(
        &self,
        stack: &StackReference,
        kind: CopyKind,
        time: Timestamp,
        checkpoint: &str,
    ) -> Result<(), StoreError> {
        let compression = self.options.compression;
        let content = compression.compress(checkpoint).into_owned().into();
        self.replace(&self.layout.copy(stack, kind, time, compression), content).await
    }

    /// Returns the location of the mark of a stack, for messages.
    pub fn mark_location(&self, stack: &StackReference) -> String {
        self.location_of(&self.layout.mark(stack))
    }

    /// Returns the mark of a stack, if it has one.
    ///
    /// # Errors
    /// [`StoreError::MovePending`] if a move of resources from or to the stack has not ended.
    pub async fn mark(&self, stack: &StackReference) -> Result<Option<MigrationMark>, StoreError> {
        let key = self.layout.mark(stack);
        let Some(object) = self.objects.read(&key, MAX_STATE_BYTES).await? else { return Ok(None) };
        let location = self.location_of(&key);
        if let Some(record) = MoveRecord::read(&object.content, &location)? {
            let (stack, other, is_source) = (stack.clone(), Box::new(record.other), record.side != MoveSide::Target);
            return Err(StoreError::MovePending { stack, other, is_source });
        }
        stored_mark::read(&object.content, &location).map(Some)
    }

    /// Writes the mark of a stack, or removes it.
    pub async fn set_mark(&self, stack: &StackReference, mark: Option<&MigrationMark>) -> Result<(), StoreError> {
        let key = self.layout.mark(stack);
        match mark {
            Some(mark) => self.replace(&key, stored_mark::write(mark).into()).await,
            None => Ok(self.objects.remove(&key).await?),
        }
    }
}
