//! Checkpoints in a folder: the current one, the previous one, history, backups.

use std::fs;
use std::io::ErrorKind;
use std::time::SystemTime;

use bridge::fs::{FileError, MAX_DOCUMENT_BYTES, read_if_exists};
use jiff::Timestamp;

use super::super::compression::{Compression, decompressed_text};
use super::super::error::StoreError;
use super::super::history_entry::HistoryEntry;
use super::super::layout::{self, Layout};
use super::super::meta;
use super::super::options::LegacyStores;
use super::super::reference::StackReference;
use super::super::revision::Expected;
use super::folder::{Folder, list};
use crate::MAX_STATE_BYTES;
use crate::background::drop_in_background;

impl Folder {
    /// Returns the layout of the store; for an empty store the layout of the options.
    pub(super) fn find_layout(&self) -> Result<Layout, StoreError> {
        if !self.path.is_dir() {
            return Err(StoreError::NoFolder(self.path.clone()));
        }
        let layout = match self.layout_of_metadata()? {
            Some(layout) => layout,
            None if self.has_legacy_stacks()? => Layout::Legacy,
            None => self.options.new_layout,
        };
        if layout == Layout::Legacy && self.options.legacy_stores == LegacyStores::Refused {
            return Err(StoreError::Legacy(self.path.display().to_string()));
        }
        Ok(layout)
    }

    /// Returns the layout that the metadata name; `None` without metadata.
    fn layout_of_metadata(&self) -> Result<Option<Layout>, StoreError> {
        let path = self.path_of(layout::META);
        let metadata = read_if_exists(&path, MAX_DOCUMENT_BYTES)?;
        metadata.map(|metadata| meta::layout(metadata, &path.display().to_string())).transpose()
    }

    /// Returns `true` if there are checkpoints that belong to no project.
    fn has_legacy_stacks(&self) -> Result<bool, StoreError> {
        let stacks = list(&self.path_of(layout::STACKS))?;
        Ok(stacks.iter().any(|entry| !entry.is_folder && layout::stack_name_of_file(&entry.name).is_some()))
    }

    pub(super) fn load(&self, stack: &StackReference) -> Result<Option<String>, StoreError> {
        let Some(variant) = self.current_variant(stack)? else { return Ok(None) };
        self.read_text(&self.layout.checkpoint(stack, variant), MAX_STATE_BYTES)
    }

    /// Checks that the checkpoint of a locked stack is the expected one.
    pub(super) fn check_expected(&self, stack: &StackReference, expected: &Expected) -> Result<(), StoreError> {
        if matches!(expected, Expected::Any) || expected.is_met_by(self.load(stack)?.as_deref()) {
            return Ok(());
        }
        let modified = |variant| fs::metadata(self.path_of(&self.layout.checkpoint(stack, variant)))?.modified();
        let written = self.current_variant(stack)?.and_then(|variant| modified(variant).ok());
        let written = written.and_then(|written| Timestamp::try_from(written).ok());
        Err(StoreError::Replaced { stack: stack.clone(), written })
    }

    /// Returns the decompressed text of a file, of at most `limit` bytes both compressed and decompressed; `None` if it
    /// does not exist.
    pub(super) fn read_text(&self, key: &str, limit: u64) -> Result<Option<String>, StoreError> {
        let path = self.path_of(key);
        let content = read_if_exists(&path, limit)?;
        content.map(|content| decompressed_text(content, limit, &path.display().to_string())).transpose()
    }

    /// Returns the compression of the current checkpoint: that of the newest file, and of equally new files the last
    /// variant.
    pub(super) fn current_variant(&self, stack: &StackReference) -> Result<Option<Compression>, StoreError> {
        let mut current: Option<(SystemTime, Compression)> = None;
        for variant in Compression::ALL {
            let path = self.path_of(&self.layout.checkpoint(stack, variant));
            let modified = match fs::metadata(&path).and_then(|metadata| metadata.modified()) {
                Ok(modified) => modified,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(FileError::of("read", &path)(error).into()),
            };
            if current.as_ref().is_none_or(|(newest, _)| modified >= *newest) {
                current = Some((modified, variant));
            }
        }
        Ok(current.map(|(_, variant)| variant))
    }

    pub(super) fn save(&self, stack: &StackReference, checkpoint: &str) -> Result<(), StoreError> {
        self.write_meta()?;
        let key = self.layout.checkpoint(stack, self.options.compression);
        let previous = self.current_variant(stack)?.map(|variant| self.layout.checkpoint(stack, variant));
        let replaced = match &previous {
            Some(previous) => self.back_up(previous, &format!("{previous}.bak"))?,
            None => Vec::new(),
        };
        let written = self.write(&key, &self.options.compression.compress(checkpoint));
        // The replaced files are freed only now: the flush would wait until the disk has released their blocks.
        drop_in_background(replaced);
        written?;
        // The previous checkpoint with another compression is removed only after the new one was written.
        previous.filter(|previous| *previous != key).map_or(Ok(()), |previous| self.remove(&previous))?;
        if self.options.retain_checkpoints {
            self.copy(&key, &format!("{key}.{}", Timestamp::now().as_nanosecond()))?;
        }
        Ok(())
    }

    pub(super) fn archive(&self, stack: &StackReference, entry: &HistoryEntry) -> Result<(), StoreError> {
        let compression = self.options.compression;
        let time = entry.time.as_nanosecond();
        let [file, copy] = self.layout.history_files(stack, time);
        self.write(&format!("{file}{}", compression.suffix()), &compression.compress(&entry.update))?;
        let Some(variant) = self.current_variant(stack)? else { return Ok(()) };
        let checkpoint = self.layout.checkpoint(stack, variant);
        self.copy(&checkpoint, &format!("{copy}{}", variant.suffix()))?;
        if self.options.skip_backups {
            return Ok(());
        }
        let backup = self.layout.backup(stack, time);
        self.copy(&checkpoint, &format!("{backup}{}", variant.suffix()))
    }

    pub(super) fn write_meta(&self) -> Result<(), StoreError> {
        if self.layout == Layout::Legacy || self.path_of(layout::META).exists() {
            return Ok(());
        }
        self.write(layout::META, meta::TEXT.as_bytes())
    }
}
