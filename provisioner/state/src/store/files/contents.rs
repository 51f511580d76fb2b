//! Contents of a stack in a folder, for a migration.

use bridge::fs::{MAX_DOCUMENT_BYTES, read_if_exists, write_atomically};
use jiff::Timestamp;

use super::super::copy::CopyKind;
use super::super::error::StoreError;
use super::super::history_entry::HistoryEntry;
use super::super::layout;
use super::super::migration_mark::MigrationMark;
use super::super::reference::StackReference;
use super::super::stored_mark;
use super::folder::{Folder, list, remove};

impl Folder {
    pub(super) fn history_entries(&self, stack: &StackReference) -> Result<Vec<HistoryEntry>, StoreError> {
        let folder = self.layout.history(stack);
        let mut entries = Vec::new();
        for entry in list(&self.path_of(&folder))?.into_iter().filter(|entry| !entry.is_folder) {
            let Some(time) = layout::time_of_history_entry(stack, &entry.name) else { continue };
            let update = self.read_text(&format!("{folder}/{}", entry.name), MAX_DOCUMENT_BYTES)?;
            entries.extend(update.map(|update| HistoryEntry { time, update }));
        }
        Ok(entries)
    }

    pub(super) fn add_history_entry(&self, stack: &StackReference, entry: &HistoryEntry) -> Result<(), StoreError> {
        let compression = self.options.compression;
        let [key, _] = self.layout.history_files(stack, entry.time.as_nanosecond());
        self.write(&format!("{key}{}", compression.suffix()), &compression.compress(&entry.update))
    }

    pub(super) fn add_copy(
        &self,
        stack: &StackReference,
        kind: CopyKind,
        time: Timestamp,
        checkpoint: &str,
    ) -> Result<(), StoreError> {
        let compression = self.options.compression;
        self.write(&self.layout.copy(stack, kind, time, compression), &compression.compress(checkpoint))
    }

    pub(super) fn mark(&self, stack: &StackReference) -> Result<Option<MigrationMark>, StoreError> {
        let path = self.path_of(&self.layout.mark(stack));
        let text = read_if_exists(&path, MAX_DOCUMENT_BYTES)?;
        text.map(|text| stored_mark::read(&text, &path.display().to_string())).transpose()
    }

    pub(super) fn set_mark(&self, stack: &StackReference, mark: Option<&MigrationMark>) -> Result<(), StoreError> {
        let path = self.path_of(&self.layout.mark(stack));
        let Some(mark) = mark else { return remove(&path) };
        if let Some(folder) = path.parent() {
            self.make_folder(folder)?;
        }
        Ok(write_atomically(&path, stored_mark::write(mark).as_bytes(), self.options.access)?)
    }
}
