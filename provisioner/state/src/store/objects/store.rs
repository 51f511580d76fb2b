//! Store above the interface of objects.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bridge::fs::MAX_DOCUMENT_BYTES;
use jiff::Timestamp;

use super::super::catalog::{Backups, StackCatalog, Tags};
use super::super::compression::Compression;
use super::super::contents::StackContents;
use super::super::copy::{CheckpointCopy, CopyKind};
use super::super::error::StoreError;
use super::super::history_entry::HistoryEntry;
use super::super::layout::{self, Layout};
use super::super::lock::{LockHolder, LockInfo, StackLock, StoredLock};
use super::super::meta;
use super::super::migration_mark::MigrationMark;
use super::super::options::{LegacyStores, StoreOptions};
use super::super::reference::StackReference;
use super::super::rename::StackRename;
use super::super::revision::{Expected, Revision, StoredCheckpoint};
use super::super::state_store::StateStore;
use super::interface::{ObjectError, ObjectErrorKind, Objects, WriteCondition, WriteError};

/// Store that keeps states in a bucket or a table. Clones share the connection.
#[derive(Clone)]
pub struct ObjectStore {
    pub(super) objects: Arc<dyn Objects>,
    pub(super) options: StoreOptions,
    pub(super) layout: Layout,
    /// `true` once the metadata of the store exist.
    has_metadata: Arc<AtomicBool>,
    /// Compression of the checkpoint of each stack that was loaded or saved. Its object is then found without a search.
    pub(super) variants: Arc<Mutex<BTreeMap<StackReference, Compression>>>,
}

impl fmt::Debug for ObjectStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ObjectStore").field(&self.objects.location()).finish()
    }
}

impl ObjectStore {
    /// Opens a store. Writes nothing.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be reached, or has an unsupported layout.
    pub async fn open(objects: Arc<dyn Objects>, options: StoreOptions) -> Result<Self, StoreError> {
        let store =
            Self { objects, options, layout: Layout::Projects, has_metadata: Arc::default(), variants: Arc::default() };
        let metadata = store.objects.read(layout::META, MAX_DOCUMENT_BYTES).await?;
        let location = store.location_of(layout::META);
        store.has_metadata.store(metadata.is_some(), Ordering::Relaxed);
        let layout = match metadata {
            Some(metadata) => meta::layout(metadata.content, &location)?,
            None if store.has_legacy_stacks().await? => Layout::Legacy,
            None => options.new_layout,
        };
        if layout == Layout::Legacy && options.legacy_stores == LegacyStores::Refused {
            return Err(StoreError::Legacy(store.objects.location()));
        }
        Ok(Self { layout, ..store })
    }

    /// Returns `true` if there are checkpoints that belong to no project.
    async fn has_legacy_stacks(&self) -> Result<bool, StoreError> {
        let found = self.objects.list(layout::STACKS).await?;
        Ok(found.iter().any(|object| layout::stack_name_of_file(&object.name).is_some()))
    }

    /// Writes the metadata of a new store.
    pub(super) async fn write_metadata(&self) -> Result<(), StoreError> {
        if self.layout == Layout::Legacy || self.has_metadata.load(Ordering::Relaxed) {
            return Ok(());
        }
        match self.write(layout::META, meta::TEXT.as_bytes().to_vec(), &WriteCondition::Missing).await {
            Ok(()) => self.verify_conditions().await?,
            // Another program has written them at the same time.
            Err(WriteError::Condition) => {}
            Err(WriteError::Request(error)) => return Err(error.into()),
        }
        self.has_metadata.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Writes the metadata of a new store again, on the condition that there are none: a store that writes them ignores
    /// conditions. They are removed unless the condition was
    /// respected, so that the next command finds a new store.
    async fn verify_conditions(&self) -> Result<(), StoreError> {
        let written = self.write(layout::META, meta::TEXT.as_bytes().to_vec(), &WriteCondition::Missing).await;
        if !matches!(written, Err(WriteError::Condition)) {
            self.objects.remove(layout::META).await?;
        }
        match written {
            Err(WriteError::Condition) => Ok(()),
            Err(WriteError::Request(error)) => Err(error.into()),
            Ok(()) => {
                let text = "the store ignores the conditions of writes, so that two runs could overwrite the state of each \
                            other: use another store";
                let (operation, location) = ("write", self.location_of(layout::META));
                let kind = ObjectErrorKind::Unsupported;
                Err(ObjectError { operation, location, kind, source: text.into() }.into())
            }
        }
    }

    /// Writes an object whose version is not needed.
    pub(super) async fn write(
        &self,
        key: &str,
        content: Vec<u8>,
        condition: &WriteCondition,
    ) -> Result<(), WriteError> {
        let content_type = Compression::of(&content).content_type();
        self.objects.write(key, content, content_type, condition).await.map(drop)
    }

    /// Writes an object, or replaces the one that has the key.
    pub(super) async fn replace(&self, key: &str, content: Vec<u8>) -> Result<(), StoreError> {
        match self.write(key, content, &WriteCondition::None).await {
            Ok(()) => Ok(()),
            Err(WriteError::Request(error)) => Err(error.into()),
            Err(WriteError::Condition) => {
                let (operation, location) = ("write", self.location_of(key));
                let source = "the store refused a write without a condition because of a condition".into();
                Err(ObjectError { operation, location, kind: ObjectErrorKind::Other, source }.into())
            }
        }
    }

    /// Returns the location of an object, for messages.
    pub(super) fn location_of(&self, key: &str) -> String {
        self.objects.location_of(key)
    }

    pub(super) fn known_variant(&self, stack: &StackReference) -> Option<Compression> {
        self.variants.lock().unwrap_or_else(PoisonError::into_inner).get(stack).copied()
    }

    pub(super) fn remember_variant(&self, stack: &StackReference, variant: Option<Compression>) {
        let mut variants = self.variants.lock().unwrap_or_else(PoisonError::into_inner);
        match variant {
            Some(variant) => variants.insert(stack.clone(), variant),
            None => variants.remove(stack),
        };
    }
}

#[async_trait]
impl StackCatalog for ObjectStore {
    async fn list(&self) -> Result<Vec<StackReference>, StoreError> {
        self.stacks().await
    }

    async fn tags(&self, stack: &StackReference) -> Result<Tags, StoreError> {
        self.read_tags(stack).await
    }

    async fn set_tags(&self, stack: &StackReference, tags: &Tags) -> Result<(), StoreError> {
        self.write_tags(stack, tags).await
    }

    async fn copies(&self, stack: &StackReference, kinds: &[CopyKind]) -> Result<Vec<CheckpointCopy>, StoreError> {
        self.list_copies(stack, kinds).await
    }

    async fn read_copy(&self, copy: &CheckpointCopy) -> Result<String, StoreError> {
        self.copy_text(copy).await
    }

    async fn restore(
        &self,
        lock: &StackLock,
        copy: &CheckpointCopy,
        checkpoint: &str,
        expected: &Expected,
    ) -> Result<(), StoreError> {
        self.restore_copy(lock, copy, checkpoint, expected).await
    }

    async fn begin_rename(
        &self,
        from: &StackReference,
        to: &StackReference,
        holder: &LockHolder,
    ) -> Result<StackRename, StoreError> {
        self.lock_for_rename(from, to, holder).await
    }

    async fn rename(&self, rename: &mut StackRename, checkpoint: &str, expected: &Expected) -> Result<(), StoreError> {
        self.move_stack(rename, checkpoint, expected).await
    }

    async fn finish_rename(&self, rename: StackRename) -> Result<(), StoreError> {
        self.end_rename(rename).await
    }

    async fn resume_rename(
        &self,
        stack: &StackReference,
        holder: &LockHolder,
    ) -> Result<Option<StackRename>, StoreError> {
        self.resume_interrupted_rename(stack, holder).await
    }

    async fn complete_rename(&self, rename: &mut StackRename) -> Result<(), StoreError> {
        self.complete_interrupted_rename(rename).await
    }

    async fn remove(&self, lock: &StackLock, backups: Backups, expected: &Expected) -> Result<(), StoreError> {
        self.remove_stack(lock, backups, expected).await
    }
}

#[async_trait]
impl StackContents for ObjectStore {
    async fn read_checkpoint(&self, stack: &StackReference) -> Result<Option<StoredCheckpoint>, StoreError> {
        self.load_checkpoint(stack).await
    }

    async fn history_entries(&self, stack: &StackReference) -> Result<Vec<HistoryEntry>, StoreError> {
        self.read_history_entries(stack).await
    }

    async fn add_history_entry(&self, stack: &StackReference, entry: &HistoryEntry) -> Result<(), StoreError> {
        self.write_history_entry(stack, entry).await
    }

    async fn add_copy(
        &self,
        stack: &StackReference,
        kind: CopyKind,
        time: Timestamp,
        checkpoint: &str,
    ) -> Result<(), StoreError> {
        self.write_copy(stack, kind, time, checkpoint).await
    }

    fn mark_location(&self, stack: &StackReference) -> String {
        self.location_of(&self.layout.mark(stack))
    }

    async fn mark(&self, stack: &StackReference) -> Result<Option<MigrationMark>, StoreError> {
        self.read_mark(stack).await
    }

    async fn set_mark(&self, stack: &StackReference, mark: Option<&MigrationMark>) -> Result<(), StoreError> {
        self.write_mark(stack, mark).await
    }
}

#[async_trait]
impl StateStore for ObjectStore {
    fn location(&self) -> String {
        self.objects.location()
    }

    fn full_name(&self, stack: &StackReference) -> String {
        self.layout.full_name(stack)
    }

    fn checkpoint_location(&self, stack: &StackReference) -> String {
        let variant = self.known_variant(stack).unwrap_or(self.options.compression);
        self.location_of(&self.layout.checkpoint(stack, variant))
    }

    async fn save(&self, lock: &StackLock, checkpoint: &str, expected: &Expected) -> Result<Revision, StoreError> {
        self.check_lock(lock).await?;
        self.save_checkpoint(&lock.stack, checkpoint, expected).await
    }

    async fn archive(&self, stack: &StackReference, entry: &HistoryEntry) -> Result<(), StoreError> {
        self.archive_checkpoint(stack, entry).await
    }

    async fn lock(&self, stack: &StackReference, holder: &LockHolder) -> Result<StackLock, StoreError> {
        self.take_new_lock(stack, holder).await
    }

    async fn unlock(&self, lock: StackLock) -> Result<(), StoreError> {
        Ok(self.objects.remove(&self.lock_key(&lock.stack, &lock.name)).await?)
    }

    async fn renew(&self, lock: &StackLock) -> Result<(), StoreError> {
        self.rewrite_lock(lock, StoredLock::renewed).await
    }

    async fn end_lease(&self, lock: &StackLock) -> Result<(), StoreError> {
        self.rewrite_lock(lock, StoredLock::without_lease).await
    }

    async fn remove_ended_lock(
        &self,
        stack: &StackReference,
        lock: &LockInfo,
        holder: &LockHolder,
    ) -> Result<bool, StoreError> {
        self.remove_unrenewed(stack, lock, holder).await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.time().await
    }

    async fn locks(&self, stack: &StackReference) -> Result<Vec<LockInfo>, StoreError> {
        self.read_locks(stack).await
    }

    async fn break_locks(&self, stack: &StackReference, locks: &[LockInfo]) -> Result<Vec<LockInfo>, StoreError> {
        let held = self.lock_names(stack).await?;
        let mut removed = locks.to_vec();
        removed.retain(|lock| held.contains(&lock.name));
        for lock in &removed {
            self.objects.remove(&self.lock_key(stack, &lock.name)).await?;
        }
        Ok(removed)
    }
}
