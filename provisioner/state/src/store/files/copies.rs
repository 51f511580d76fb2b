//! Copies of checkpoints in a folder.

use std::io::ErrorKind;
use std::path::Path;

use bridge::fs::FileError;
use jiff::Timestamp;

use super::super::compression::Compression;
use super::super::copy::{CheckpointCopy, CopyKind};
use super::super::error::StoreError;
use super::super::layout;
use super::super::lock::StackLock;
use super::super::reference::StackReference;
use super::super::revision::Expected;
use super::folder::{Folder, list};
use crate::MAX_STATE_BYTES;

impl Folder {
    /// Returns the copies of the checkpoints of a stack that are of one of the kinds, newest first.
    pub(super) fn copies(&self, stack: &StackReference, kinds: &[CopyKind]) -> Result<Vec<CheckpointCopy>, StoreError> {
        let mut found = Vec::new();
        for variant in Compression::ALL.into_iter().filter(|_| kinds.contains(&CopyKind::Previous)) {
            found.extend(self.previous(stack, variant)?);
        }
        let folders = [
            (CopyKind::History, self.layout.history(stack)),
            (CopyKind::Backup, self.layout.backups(stack)),
            (CopyKind::Retained, self.layout.checkpoints(stack)),
        ];
        for (kind, folder) in folders.into_iter().filter(|(kind, _)| kinds.contains(kind)) {
            for entry in list(&self.path_of(&folder))?.into_iter().filter(|entry| !entry.is_folder) {
                let Some(time) = layout::time_of_copy(kind, stack, &entry.name) else { continue };
                let name = format!("{}-{}", kind.as_str(), time.as_nanosecond());
                found.push(self.copy_at(kind, name, time, format!("{folder}/{}", entry.name)));
            }
        }
        found.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.name.cmp(&b.name)));
        Ok(found)
    }

    /// Returns the previous checkpoint with a compression, if there is one.
    fn previous(&self, stack: &StackReference, variant: Compression) -> Result<Option<CheckpointCopy>, StoreError> {
        let key = format!("{}.bak", self.layout.checkpoint(stack, variant));
        let path = self.path_of(&key);
        let modified = match std::fs::metadata(&path).and_then(|metadata| metadata.modified()) {
            Ok(modified) => modified,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(FileError::of("read", &path)(error).into()),
        };
        let time = Timestamp::try_from(modified).unwrap_or(Timestamp::UNIX_EPOCH);
        Ok(Some(self.copy_at(CopyKind::Previous, format!("bak{}", variant.suffix()), time, key)))
    }

    fn copy_at(&self, kind: CopyKind, name: String, time: Timestamp, key: String) -> CheckpointCopy {
        CheckpointCopy { kind, name, location: self.path_of(&key).display().to_string(), time, key }
    }

    pub(super) fn read_copy(&self, copy: &CheckpointCopy) -> Result<String, StoreError> {
        let missing = || FileError::of("read", Path::new(&copy.location))(ErrorKind::NotFound.into()).into();
        self.read_text(&copy.key, MAX_STATE_BYTES)?.ok_or_else(missing)
    }

    /// Saves the checkpoint that was read from a copy. A copy that the save replaces is added to the backups before,
    /// because it may be the only one with this content, and the save may fail.
    pub(super) fn restore(
        &self,
        lock: &StackLock,
        copy: &CheckpointCopy,
        checkpoint: &str,
        expected: &Expected,
    ) -> Result<(), StoreError> {
        self.check_lock(lock)?;
        self.check_expected(&lock.stack, expected)?;
        if copy.kind == CopyKind::Previous {
            let backup = self.layout.backup(&lock.stack, Timestamp::now().as_nanosecond());
            let suffix = copy.name.strip_prefix("bak").unwrap_or_default();
            let backup = format!("{backup}{suffix}");
            self.copy(&copy.key, &backup)?;
            self.flush(&backup);
        }
        self.save(&lock.stack, checkpoint)
    }
}
