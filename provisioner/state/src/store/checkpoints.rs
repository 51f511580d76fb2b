//! Checkpoints of a stack: the current one, the previous one, history, backups.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::{join, try_join};
use jiff::Timestamp;

use super::catalog::HistoryEntry;
use super::checkpoint_text::CheckpointText;
use super::compression::{Compression, decompressed_text};
use super::error::StoreError;
use super::lock::StackLock;
use super::migration_mark::MigrationDirection;
use super::objects::{Durability, Effect, ObjectErrorKind, ObjectVersion, StoredObject, WriteCondition, WriteError};
use super::reference::StackReference;
use super::revision::{Expected, Revision, StoredCheckpoint};
use super::state_store::StateStore;
use crate::MAX_STATE_BYTES;

/// Delays between attempts to write a checkpoint, if the store has not written it and says nothing about the reason. Each
/// attempt of a client is a series of requests already.
const WRITE_DELAYS: [Duration; 3] = [Duration::from_millis(200), Duration::from_secs(1), Duration::from_secs(5)];

/// Time after which the check of a lock before a write is repeated.
const CHECK_AGE: Duration = Duration::from_secs(1);

/// Current checkpoint of a stack.
pub(super) struct Current {
    pub(super) variant: Compression,
    pub(super) object: StoredObject,
}

impl StateStore {
    /// Returns the checkpoint of a stack; `None` if the stack does not exist. The mark is read at the same time.
    ///
    /// # Errors
    /// [`StoreError::Migrated`] if the stack has a mark.
    pub async fn load(&self, stack: &StackReference) -> Result<Option<StoredCheckpoint>, StoreError> {
        let (checkpoint, unmarked) = join(self.read_checkpoint(stack), self.refuse_migrated(stack)).await;
        unmarked?;
        checkpoint
    }

    /// Returns the text of the checkpoint of a stack; `None` if the stack does not exist.
    ///
    /// # Errors
    /// The errors of [`StateStore::load`].
    pub async fn text(&self, stack: &StackReference) -> Result<Option<String>, StoreError> {
        Ok(self.load(stack).await?.map(StoredCheckpoint::into_text))
    }

    /// Fails if the stack has a mark. That of a rename does not count where there is a checkpoint: another program, which does not see
    /// the mark, has renamed a stack back or begun a new one.
    ///
    /// # Errors
    /// [`StoreError::Migrated`].
    pub async fn refuse_migrated(&self, stack: &StackReference) -> Result<(), StoreError> {
        let Some(mark) = self.mark(stack).await? else { return Ok(()) };
        if mark.direction == MigrationDirection::Renamed && self.find_current(stack).await?.is_some() {
            return Ok(());
        }
        let (stack, mark_location) = (stack.clone(), self.mark_location(stack));
        Err(StoreError::Migrated { stack, mark: Box::new(mark), mark_location })
    }

    /// Fails if the stack has a mark, except that of a rename: the name is free then.
    ///
    /// # Errors
    /// [`StoreError::Migrated`].
    pub async fn refuse_taken_mark(&self, stack: &StackReference) -> Result<(), StoreError> {
        match self.refuse_migrated(stack).await {
            Err(StoreError::Migrated { mark, .. }) if mark.direction == MigrationDirection::Renamed => Ok(()),
            other => other,
        }
    }

    /// Removes the mark of a rename, so that a new stack begins under the old name.
    pub async fn remove_renamed_mark(&self, stack: &StackReference) -> Result<(), StoreError> {
        match self.mark(stack).await? {
            Some(mark) if mark.direction == MigrationDirection::Renamed => self.set_mark(stack, None).await,
            _ => Ok(()),
        }
    }

    /// Returns the checkpoint of a stack, whatever its mark says; `None` if there is none.
    pub async fn read_checkpoint(&self, stack: &StackReference) -> Result<Option<StoredCheckpoint>, StoreError> {
        let Some(current) = self.find_current(stack).await? else { return Ok(None) };
        let Current { variant, object: StoredObject { content, version, .. } } = current;
        let location = self.location_of(&self.layout.checkpoint(stack, variant));
        let text = decompressed_text(content, MAX_STATE_BYTES, &location)?;
        Ok(Some(StoredCheckpoint::new(text, variant, version)))
    }

    /// Returns the current checkpoint: the newest object, and of equally new ones the last variant. All variants are
    /// requested at the same time, because a listing first would double the time.
    pub(super) async fn find_current(&self, stack: &StackReference) -> Result<Option<Current>, StoreError> {
        let keys = Compression::ALL.map(|variant| self.layout.checkpoint(stack, variant));
        let objects = self.objects.read_all(&keys.each_ref().map(String::as_str), MAX_STATE_BYTES).await?;
        let mut current: Option<Current> = None;
        for (variant, object) in Compression::ALL.into_iter().zip(objects) {
            let Some(object) = object else { continue };
            let found = Current { variant, object };
            if current.as_ref().is_none_or(|newest| found.object.modified >= newest.object.modified) {
                current = Some(found);
            }
        }
        self.remember_variant(stack, current.as_ref().map(|current| current.variant));
        Ok(current)
    }

    /// Compares the checkpoint of a stack with the expected one, and returns the one that is there. One with the same text is
    /// the expected one under another version too, such as that of a file that was restored.
    pub(super) async fn check_expected(
        &self,
        stack: &StackReference,
        expected: &Expected,
    ) -> Result<Option<Current>, StoreError> {
        let current = self.find_current(stack).await?;
        let is_met = match (expected, &current) {
            (Expected::Any, _) | (Expected::Missing, None) => true,
            (Expected::Revision(revision), Some(found)) => {
                revision.is_object(found.variant, &found.object.version) || {
                    let location = self.location_of(&self.layout.checkpoint(stack, found.variant));
                    let text = decompressed_text(found.object.content.clone(), MAX_STATE_BYTES, &location)?;
                    revision.has_text(&text)
                }
            }
            (Expected::Missing, Some(_)) | (Expected::Revision(_), None) => false,
        };
        if is_met {
            return Ok(current);
        }
        let written = current.map(|current| current.object.modified);
        Err(StoreError::Replaced { stack: stack.clone(), written })
    }

    /// Returns the expected checkpoint of a stack: its compression and its version. That of a revision is not compared with
    /// the store, because a conditional write does that.
    async fn expected_version(
        &self,
        stack: &StackReference,
        expected: &Expected,
    ) -> Result<Option<(Compression, ObjectVersion)>, StoreError> {
        match expected {
            Expected::Revision(revision) => Ok(Some(revision.object())),
            Expected::Missing | Expected::Any => {
                let current = self.check_expected(stack, expected).await?;
                Ok(current.map(|current| (current.variant, current.object.version)))
            }
        }
    }

    /// Compares the checkpoint of the locked stack with the expected one, then replaces it atomically and durably, and keeps
    /// the previous one beside it. Returns the revision of the new one.
    ///
    /// The present checkpoint becomes the previous one first, because the write replaces it. The write has the condition that
    /// the object is the one that was read. If the condition is not met, the object decides: it has the new text already (the
    /// reply to an earlier attempt was lost), it has the expected text under another version, or another program has written.
    ///
    /// # Errors
    /// [`StoreError::LockLost`] if the lock was broken, [`StoreError::Locked`] if there is a lock of another holder as
    /// well; nothing is written then. [`StoreError::Replaced`] if the checkpoint is not the expected one, which then stays, and
    /// may be the previous one too.
    pub async fn save(
        &self,
        lock: &StackLock,
        checkpoint: impl Into<CheckpointText>,
        expected: &Expected,
    ) -> Result<Revision, StoreError> {
        self.save_after(async {}, lock, checkpoint, expected).await
    }

    /// Does the same after what must precede the checkpoint in the store, such as the end of a journal, which is written while the
    /// lock is checked.
    ///
    /// # Errors
    /// As [`StateStore::save`].
    pub async fn save_after(
        &self,
        preceding: impl Future<Output = ()>,
        lock: &StackLock,
        checkpoint: impl Into<CheckpointText>,
        expected: &Expected,
    ) -> Result<Revision, StoreError> {
        let checkpoint = &checkpoint.into();
        let begun = Instant::now();
        let (checked, ()) = join(self.check_lock(lock), preceding).await;
        checked?;
        if begun.elapsed() > CHECK_AGE {
            self.check_lock(lock).await?;
        }
        self.write_metadata().await?;
        let stack = &lock.stack;
        match self.replace_checkpoint(stack, checkpoint, expected).await {
            Err(replaced @ StoreError::Replaced { .. }) => {
                let Expected::Revision(revision) = expected else { return Err(replaced) };
                let Some(current) = self.check_expected(stack, expected).await? else { return Err(replaced) };
                let moved = Expected::Revision(revision.at(current.variant, current.object.version));
                self.replace_checkpoint(stack, checkpoint, &moved).await
            }
            saved => saved,
        }
    }

    async fn replace_checkpoint(
        &self,
        stack: &StackReference,
        checkpoint: &CheckpointText,
        expected: &Expected,
    ) -> Result<Revision, StoreError> {
        let variant = self.options.compression;
        let key = self.layout.checkpoint(stack, variant);
        let previous = self.expected_version(stack, expected).await?;
        let condition = match &previous {
            None => WriteCondition::Missing,
            Some((previous, version)) => {
                let previous_key = self.layout.checkpoint(stack, *previous);
                if !self.objects.preserve(&previous_key, &format!("{previous_key}.bak")).await? {
                    return Err(StoreError::Replaced { stack: stack.clone(), written: None });
                }
                if *previous == variant {
                    WriteCondition::Unchanged(version.clone())
                } else {
                    // No write has a condition on another object.
                    self.check_expected(stack, expected).await?;
                    let outdated = self.objects.read(&key, MAX_STATE_BYTES).await?;
                    outdated.map_or(WriteCondition::Missing, |outdated| WriteCondition::Unchanged(outdated.version))
                }
            }
        };
        let content = variant.content(checkpoint);
        let version = self.write_checkpoint(stack, &key, content, &condition).await?;
        self.remember_variant(stack, Some(variant));
        // The previous checkpoint with another compression is removed only after the new one was written.
        if let Some((previous, _)) = previous.filter(|(previous, _)| *previous != variant) {
            self.objects.remove(&self.layout.checkpoint(stack, previous)).await?;
        }
        if self.options.retain_checkpoints {
            self.objects.copy(&key, &format!("{key}.{}", Timestamp::now().as_nanosecond())).await?;
        }
        Ok(Revision::new(checkpoint.shared(), variant, version))
    }

    /// Writes a checkpoint on a condition, and returns its version. If the reply to a request is lost, the content of the
    /// object says whether it was written.
    pub(super) async fn write_checkpoint(
        &self,
        stack: &StackReference,
        key: &str,
        content: Bytes,
        condition: &WriteCondition,
    ) -> Result<ObjectVersion, StoreError> {
        let mut delays = WRITE_DELAYS.iter();
        loop {
            let failed = match self.objects.write(key, content.clone(), condition, Durability::Immediate).await {
                Ok(version) => return Ok(version),
                Err(WriteError::Condition) => None,
                Err(WriteError::Request(error)) if error.effect == Effect::Unknown => Some(error),
                Err(WriteError::Request(error)) => return Err(error.into()),
            };
            let found = self.objects.read(key, MAX_STATE_BYTES).await?;
            if let Some(found) = &found
                && found.content == content
            {
                return Ok(found.version.clone());
            }
            let is_unchanged = match (condition, &found) {
                (WriteCondition::None, _) | (WriteCondition::Missing, None) => true,
                (WriteCondition::Unchanged(version), Some(found)) => found.version == *version,
                (WriteCondition::Missing, Some(_)) | (WriteCondition::Unchanged(_), None) => false,
            };
            match (failed, delays.next()) {
                // The store does not report that it can write again.
                (Some(error), Some(delay)) if is_unchanged && error.kind == ObjectErrorKind::Unreachable => {
                    tokio::time::sleep(*delay).await;
                }
                (Some(error), _) if is_unchanged => return Err(error.into()),
                _ => {
                    let written = found.map(|found| found.modified);
                    return Err(StoreError::Replaced { stack: stack.clone(), written });
                }
            }
        }
    }

    /// Adds an entry to the history of a stack, with a copy of its checkpoint, and another copy to the backups. An entry
    /// of the same time is replaced, so an interrupted call can be repeated.
    pub async fn archive(&self, stack: &StackReference, entry: &HistoryEntry) -> Result<(), StoreError> {
        let compression = self.options.compression;
        let time = entry.time.as_nanosecond();
        let [file, copy] = self.layout.history_files(stack, time);
        let update = compression.compress(&entry.update).into_owned().into();
        self.replace(&format!("{file}{}", compression.suffix()), update).await?;
        let variant = match self.known_variant(stack) {
            Some(variant) => variant,
            None => match self.find_current(stack).await? {
                Some(current) => current.variant,
                None => return Ok(()),
            },
        };
        let checkpoint = self.layout.checkpoint(stack, variant);
        let copy_to = async |key: String| self.objects.copy(&checkpoint, &format!("{key}{}", variant.suffix())).await;
        if self.options.skip_backups {
            copy_to(copy).await?;
        } else {
            try_join(copy_to(copy), copy_to(self.layout.backup(stack, time))).await?;
        }
        Ok(())
    }

    /// Moves the checkpoint of a stack to its backup (`.bak`), in every compression that exists, the current one last: an
    /// older one must not take its place.
    pub(super) async fn back_up_and_remove(&self, stack: &StackReference) -> Result<(), StoreError> {
        let current = self.find_current(stack).await?.map(|current| current.variant);
        let others = Compression::ALL.into_iter().filter(|variant| Some(*variant) != current);
        for variant in others.chain(current) {
            let key = self.layout.checkpoint(stack, variant);
            if self.objects.preserve(&key, &format!("{key}.bak")).await? {
                self.objects.remove(&key).await?;
            }
        }
        self.remember_variant(stack, None);
        Ok(())
    }
}
