//! Checkpoints as objects: the current one, the previous one, history, backups.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join;
use jiff::Timestamp;

use super::super::compression::{Compression, decompressed_text};
use super::super::error::StoreError;
use super::super::history_entry::HistoryEntry;
use super::super::reference::StackReference;
use super::super::revision::{Expected, ObjectRevision, Revision, StoredCheckpoint};
use super::interface::{ObjectErrorKind, ObjectVersion, StoredObject, WriteCondition, WriteError};
use super::store::ObjectStore;
use crate::MAX_STATE_BYTES;

/// Delays between attempts to write a checkpoint, if the store has not written it and says nothing about the reason. Each
/// attempt of a client is a series of requests already.
const WRITE_DELAYS: [Duration; 3] = [Duration::from_millis(200), Duration::from_secs(1), Duration::from_secs(5)];

/// Current checkpoint of a stack.
pub(super) struct Current {
    pub(super) variant: Compression,
    pub(super) object: StoredObject,
}

impl ObjectStore {
    pub(super) async fn load_checkpoint(&self, stack: &StackReference) -> Result<Option<StoredCheckpoint>, StoreError> {
        let Some(current) = self.find_current(stack).await? else { return Ok(None) };
        let Current { variant, object: StoredObject { content, version, .. } } = current;
        let location = self.location_of(&self.layout.checkpoint(stack, variant));
        let text = Arc::new(decompressed_text(content, MAX_STATE_BYTES, &location)?);
        let revision = Revision::of_object(Arc::clone(&text), ObjectRevision { variant, version });
        Ok(Some(StoredCheckpoint { text, revision }))
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

    /// Returns the object of the expected checkpoint of a stack; `None` if no checkpoint is expected, and there is none.
    /// The object of a revision is not compared with the store: a conditional write does that.
    pub(super) async fn expected_object(
        &self,
        stack: &StackReference,
        expected: &Expected,
    ) -> Result<Option<ObjectRevision>, StoreError> {
        if let Expected::Revision(revision) = expected
            && let Some(object) = revision.object()
        {
            return Ok(Some(object.clone()));
        }
        self.check_expected(stack, expected).await
    }

    /// Compares the checkpoint of a stack with the expected one, and returns its object.
    pub(super) async fn check_expected(
        &self,
        stack: &StackReference,
        expected: &Expected,
    ) -> Result<Option<ObjectRevision>, StoreError> {
        let current = self.find_current(stack).await?;
        let is_met = match (expected, &current) {
            (Expected::Any, _) => true,
            (Expected::Revision(revision), Some(found)) => match revision.object() {
                Some(object) => object.variant == found.variant && object.version == found.object.version,
                None => {
                    let location = self.location_of(&self.layout.checkpoint(stack, found.variant));
                    let text = decompressed_text(found.object.content.clone(), MAX_STATE_BYTES, &location)?;
                    expected.is_met_by(Some(&text))
                }
            },
            (Expected::Missing, found) => found.is_none(),
            (Expected::Revision(_), None) => false,
        };
        if !is_met {
            let written = current.map(|current| current.object.modified);
            return Err(StoreError::Replaced { stack: stack.clone(), written });
        }
        Ok(current.map(|Current { variant, object }| ObjectRevision { variant, version: object.version }))
    }

    pub(super) async fn save_checkpoint(
        &self,
        stack: &StackReference,
        checkpoint: &str,
        expected: &Expected,
    ) -> Result<Revision, StoreError> {
        self.write_metadata().await?;
        let variant = self.options.compression;
        let key = self.layout.checkpoint(stack, variant);
        let previous = self.expected_object(stack, expected).await?;
        let condition = match &previous {
            None => WriteCondition::Missing,
            Some(previous) => {
                let previous_key = self.layout.checkpoint(stack, previous.variant);
                if !self.objects.copy(&previous_key, &format!("{previous_key}.bak")).await? {
                    return Err(StoreError::Replaced { stack: stack.clone(), written: None });
                }
                if previous.variant == variant {
                    WriteCondition::Unchanged(previous.version.clone())
                } else {
                    // No write has a condition on another object.
                    self.check_expected(stack, expected).await?;
                    let outdated = self.objects.read(&key, MAX_STATE_BYTES).await?;
                    outdated.map_or(WriteCondition::Missing, |outdated| WriteCondition::Unchanged(outdated.version))
                }
            }
        };
        let content = variant.compress(checkpoint).into_owned();
        let version = self.write_checkpoint(stack, &key, content, &condition).await?;
        self.remember_variant(stack, Some(variant));
        // The previous checkpoint with another compression is removed only after the new one was written.
        if let Some(previous) = previous.filter(|previous| previous.variant != variant) {
            self.objects.remove(&self.layout.checkpoint(stack, previous.variant)).await?;
        }
        if self.options.retain_checkpoints {
            self.objects.copy(&key, &format!("{key}.{}", Timestamp::now().as_nanosecond())).await?;
        }
        Ok(Revision::of_object(Arc::new(checkpoint.to_owned()), ObjectRevision { variant, version }))
    }

    /// Writes a checkpoint on a condition, and returns its version. If the reply to a request is lost, the content of the
    /// object says whether it was written.
    pub(super) async fn write_checkpoint(
        &self,
        stack: &StackReference,
        key: &str,
        content: Vec<u8>,
        condition: &WriteCondition,
    ) -> Result<ObjectVersion, StoreError> {
        let content_type = Compression::of(&content).content_type();
        let mut delays = WRITE_DELAYS.iter();
        loop {
            let failed = match self.objects.write(key, content.clone(), content_type, condition).await {
                Ok(version) => return Ok(version),
                Err(WriteError::Condition) => None,
                Err(WriteError::Request(error)) if error.kind == ObjectErrorKind::Unreachable => Some(error),
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
                (Some(_), Some(delay)) if is_unchanged => tokio::time::sleep(*delay).await,
                (Some(error), None) if is_unchanged => return Err(error.into()),
                _ => {
                    let written = found.map(|found| found.modified);
                    return Err(StoreError::Replaced { stack: stack.clone(), written });
                }
            }
        }
    }

    pub(super) async fn archive_checkpoint(
        &self,
        stack: &StackReference,
        entry: &HistoryEntry,
    ) -> Result<(), StoreError> {
        let compression = self.options.compression;
        let time = entry.time.as_nanosecond();
        let [file, copy] = self.layout.history_files(stack, time);
        let update = compression.compress(&entry.update).into_owned();
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
            if self.objects.copy(&key, &format!("{key}.bak")).await? {
                self.objects.remove(&key).await?;
            }
        }
        self.remember_variant(stack, None);
        Ok(())
    }
}
