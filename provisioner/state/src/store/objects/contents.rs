//! Contents of a stack as objects, for a migration.

use bridge::fs::MAX_DOCUMENT_BYTES;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;

use super::super::copy::CopyKind;
use super::super::error::StoreError;
use super::super::history_entry::HistoryEntry;
use super::super::layout;
use super::super::migration_mark::MigrationMark;
use super::super::reference::StackReference;
use super::super::stored_mark;
use super::catalog::PARALLEL_REQUESTS;
use super::store::ObjectStore;

impl ObjectStore {
    pub(super) async fn read_history_entries(&self, stack: &StackReference) -> Result<Vec<HistoryEntry>, StoreError> {
        let folder = self.layout.history(stack);
        let listed = self.objects.list(&folder).await?;
        let named = listed.into_iter().filter_map(|object| {
            Some((layout::time_of_history_entry(stack, &object.name)?, format!("{folder}/{}", object.name)))
        });
        let read = named.map(async |(time, key)| {
            let update = self.read_text(key, MAX_DOCUMENT_BYTES).await?;
            Ok::<_, StoreError>(update.map(|update| HistoryEntry { time, update }))
        });
        let entries: Vec<_> = stream::iter(read).buffered(PARALLEL_REQUESTS).try_collect().await?;
        Ok(entries.into_iter().flatten().collect())
    }

    pub(super) async fn write_history_entry(
        &self,
        stack: &StackReference,
        entry: &HistoryEntry,
    ) -> Result<(), StoreError> {
        let compression = self.options.compression;
        let [key, _] = self.layout.history_files(stack, entry.time.as_nanosecond());
        let update = compression.compress(&entry.update).into_owned();
        self.replace(&format!("{key}{}", compression.suffix()), update).await
    }

    pub(super) async fn write_copy(
        &self,
        stack: &StackReference,
        kind: CopyKind,
        time: Timestamp,
        checkpoint: &str,
    ) -> Result<(), StoreError> {
        let compression = self.options.compression;
        let content = compression.compress(checkpoint).into_owned();
        self.replace(&self.layout.copy(stack, kind, time, compression), content).await
    }

    pub(super) async fn read_mark(&self, stack: &StackReference) -> Result<Option<MigrationMark>, StoreError> {
        let key = self.layout.mark(stack);
        let object = self.objects.read(&key, MAX_DOCUMENT_BYTES).await?;
        object.map(|object| stored_mark::read(&object.content, &self.location_of(&key))).transpose()
    }

    pub(super) async fn write_mark(
        &self,
        stack: &StackReference,
        mark: Option<&MigrationMark>,
    ) -> Result<(), StoreError> {
        let key = self.layout.mark(stack);
        match mark {
            Some(mark) => self.replace(&key, stored_mark::write(mark).into_bytes()).await,
            None => Ok(self.objects.remove(&key).await?),
        }
    }
}
