//! Copies of the checkpoints of a stack.

use std::io::ErrorKind;

use futures_util::future::try_join_all;
use jiff::Timestamp;

use super::checkpoint_text::CheckpointText;
use super::compression::Compression;
use super::error::StoreError;
use super::layout;
use super::layout::{CheckpointCopy, CopyKind};
use super::lock::StackLock;
use super::objects::{Effect, ObjectError, ObjectErrorKind};
use super::reference::StackReference;
use super::revision::Expected;
use super::state_store::StateStore;
use crate::MAX_STATE_BYTES;

impl StateStore {
    /// Returns the copies of the checkpoints of a stack that are of one of the kinds, newest first. Lists all folders at the
    /// same time: each request would delay a run on a new stack.
    pub async fn copies(&self, stack: &StackReference, kinds: &[CopyKind]) -> Result<Vec<CheckpointCopy>, StoreError> {
        let mut found = Vec::new();
        let folders = [
            (self.layout.history(stack), &[CopyKind::History][..]),
            (self.layout.backups(stack), &[CopyKind::Backup][..]),
            (self.layout.checkpoints(stack), &[CopyKind::Previous, CopyKind::Retained][..]),
        ];
        let folders = folders.into_iter().filter_map(|(folder, in_folder)| {
            let wanted: Vec<_> = in_folder.iter().copied().filter(|kind| kinds.contains(kind)).collect();
            (!wanted.is_empty()).then_some((folder, wanted))
        });
        let folders: Vec<_> = folders.collect();
        let listed = try_join_all(folders.iter().map(|(folder, _)| self.objects.list(folder))).await?;
        for ((folder, wanted), objects) in folders.iter().zip(listed) {
            for object in objects {
                let copy = wanted.iter().find_map(|kind| match kind {
                    CopyKind::Previous => {
                        let variant = self.variant_of_previous(stack, &object.name)?;
                        Some((*kind, format!("bak{}", variant.suffix()), object.modified))
                    }
                    _ => {
                        let time = layout::time_of_copy(*kind, stack, &object.name)?;
                        Some((*kind, format!("{}-{}", kind.as_str(), time.as_nanosecond()), time))
                    }
                });
                let Some((kind, name, time)) = copy else { continue };
                let key = format!("{folder}/{}", object.name);
                found.push(CheckpointCopy { kind, name, location: self.location_of(&key), time, key });
            }
        }
        found.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.name.cmp(&b.name)));
        Ok(found)
    }

    /// Returns the compression of a previous checkpoint of a stack; `None` for other objects.
    fn variant_of_previous(&self, stack: &StackReference, name: &str) -> Option<Compression> {
        let is_previous = |variant: &Compression| {
            let bare = name.strip_suffix(".bak").and_then(|name| name.strip_suffix(variant.suffix()));
            bare.and_then(|bare| bare.strip_suffix(".json")) == Some(stack.stack())
        };
        Compression::ALL.into_iter().find(is_previous)
    }

    /// Returns the text of a copy.
    pub async fn read_copy(&self, copy: &CheckpointCopy) -> Result<String, StoreError> {
        let missing = || {
            let source = std::io::Error::from(ErrorKind::NotFound).into();
            let location = copy.location.clone();
            ObjectError { operation: "read", location, kind: ObjectErrorKind::Other, effect: Effect::None, source }
                .into()
        };
        self.read_text(&copy.key, MAX_STATE_BYTES).await?.ok_or_else(missing)
    }

    /// Replaces the expected checkpoint of the locked stack by a text that was read from a copy, as a save does. A copy that
    /// the save replaces is added to the backups before, because it may be the only one with this content, and the save may
    /// fail.
    ///
    /// # Errors
    /// The errors of [`StateStore::save`].
    pub async fn restore(
        &self,
        lock: &StackLock,
        copy: &CheckpointCopy,
        checkpoint: impl Into<CheckpointText>,
        expected: &Expected,
    ) -> Result<(), StoreError> {
        let checkpoint = checkpoint.into();
        self.check_lock(lock).await?;
        self.check_expected(&lock.stack, expected).await?;
        if copy.kind == CopyKind::Previous
            && let Some(previous) = self.objects.read(&copy.key, MAX_STATE_BYTES).await?
        {
            let backup = self.layout.backup(&lock.stack, Timestamp::now().as_nanosecond());
            let suffix = copy.name.strip_prefix("bak").unwrap_or_default();
            // Written, because a copy within the store may not be on the disk when the save begins.
            self.replace(&format!("{backup}{suffix}"), previous.content.into()).await?;
        }
        self.save(lock, checkpoint, expected).await.map(drop)
    }
}
