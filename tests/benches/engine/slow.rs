//! Store with slow writes, like a store in a network.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use state::store::{
    Backups, CheckpointCopy, CopyKind, Expected, FileStore, HistoryEntry, LockHolder, LockInfo, MigrationMark,
    Revision, StackCatalog, StackContents, StackLock, StackReference, StackRename, StateStore, StoreError,
    StoredCheckpoint, Tags,
};

/// Additional time of each write.
const DELAY: Duration = Duration::from_millis(50);

/// Store in a folder with slow writes. Consecutive writes of an operation are delayed one after the other.
pub(crate) struct SlowStore(pub(crate) FileStore);

async fn delay_writes(objects: u32) {
    tokio::time::sleep(DELAY * objects).await;
}

#[async_trait]
impl StateStore for SlowStore {
    fn location(&self) -> String {
        self.0.location()
    }

    fn checkpoint_location(&self, stack: &StackReference) -> String {
        self.0.checkpoint_location(stack)
    }

    /// Delays the backup of the previous checkpoint and the write of the new one.
    async fn save(&self, lock: &StackLock, checkpoint: &str, expected: &Expected) -> Result<Revision, StoreError> {
        delay_writes(2).await;
        self.0.save(lock, checkpoint, expected).await
    }

    /// Delays the writes of the history entry, its checkpoint and the backup.
    async fn archive(&self, stack: &StackReference, entry: &HistoryEntry) -> Result<(), StoreError> {
        delay_writes(3).await;
        self.0.archive(stack, entry).await
    }

    async fn lock(&self, stack: &StackReference, holder: &LockHolder) -> Result<StackLock, StoreError> {
        delay_writes(1).await;
        self.0.lock(stack, holder).await
    }

    async fn unlock(&self, lock: StackLock) -> Result<(), StoreError> {
        delay_writes(1).await;
        self.0.unlock(lock).await
    }

    async fn renew(&self, lock: &StackLock) -> Result<(), StoreError> {
        delay_writes(1).await;
        self.0.renew(lock).await
    }

    async fn end_lease(&self, lock: &StackLock) -> Result<(), StoreError> {
        self.0.end_lease(lock).await
    }

    async fn remove_ended_lock(
        &self,
        stack: &StackReference,
        lock: &LockInfo,
        holder: &LockHolder,
    ) -> Result<bool, StoreError> {
        self.0.remove_ended_lock(stack, lock, holder).await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.0.now().await
    }

    async fn locks(&self, stack: &StackReference) -> Result<Vec<LockInfo>, StoreError> {
        self.0.locks(stack).await
    }

    async fn break_locks(&self, stack: &StackReference, locks: &[LockInfo]) -> Result<Vec<LockInfo>, StoreError> {
        delay_writes(1).await;
        self.0.break_locks(stack, locks).await
    }
}

#[async_trait]
impl StackContents for SlowStore {
    async fn read_checkpoint(&self, stack: &StackReference) -> Result<Option<StoredCheckpoint>, StoreError> {
        self.0.read_checkpoint(stack).await
    }

    async fn history_entries(&self, stack: &StackReference) -> Result<Vec<HistoryEntry>, StoreError> {
        self.0.history_entries(stack).await
    }

    async fn add_history_entry(&self, stack: &StackReference, entry: &HistoryEntry) -> Result<(), StoreError> {
        delay_writes(1).await;
        self.0.add_history_entry(stack, entry).await
    }

    async fn add_copy(
        &self,
        stack: &StackReference,
        kind: CopyKind,
        time: Timestamp,
        checkpoint: &str,
    ) -> Result<(), StoreError> {
        delay_writes(1).await;
        self.0.add_copy(stack, kind, time, checkpoint).await
    }

    fn mark_location(&self, stack: &StackReference) -> String {
        self.0.mark_location(stack)
    }

    async fn mark(&self, stack: &StackReference) -> Result<Option<MigrationMark>, StoreError> {
        self.0.mark(stack).await
    }

    async fn set_mark(&self, stack: &StackReference, mark: Option<&MigrationMark>) -> Result<(), StoreError> {
        delay_writes(1).await;
        self.0.set_mark(stack, mark).await
    }
}

#[async_trait]
impl StackCatalog for SlowStore {
    async fn list(&self) -> Result<Vec<StackReference>, StoreError> {
        self.0.list().await
    }

    async fn tags(&self, stack: &StackReference) -> Result<Tags, StoreError> {
        self.0.tags(stack).await
    }

    async fn set_tags(&self, stack: &StackReference, tags: &Tags) -> Result<(), StoreError> {
        delay_writes(1).await;
        self.0.set_tags(stack, tags).await
    }

    async fn copies(&self, stack: &StackReference, kinds: &[CopyKind]) -> Result<Vec<CheckpointCopy>, StoreError> {
        self.0.copies(stack, kinds).await
    }

    async fn read_copy(&self, copy: &CheckpointCopy) -> Result<String, StoreError> {
        self.0.read_copy(copy).await
    }

    async fn restore(
        &self,
        lock: &StackLock,
        copy: &CheckpointCopy,
        checkpoint: &str,
        expected: &Expected,
    ) -> Result<(), StoreError> {
        self.0.restore(lock, copy, checkpoint, expected).await
    }

    async fn begin_rename(
        &self,
        from: &StackReference,
        to: &StackReference,
        holder: &LockHolder,
    ) -> Result<StackRename, StoreError> {
        self.0.begin_rename(from, to, holder).await
    }

    async fn rename(&self, rename: &mut StackRename, checkpoint: &str, expected: &Expected) -> Result<(), StoreError> {
        self.0.rename(rename, checkpoint, expected).await
    }

    async fn finish_rename(&self, rename: StackRename) -> Result<(), StoreError> {
        self.0.finish_rename(rename).await
    }

    async fn resume_rename(
        &self,
        stack: &StackReference,
        holder: &LockHolder,
    ) -> Result<Option<StackRename>, StoreError> {
        self.0.resume_rename(stack, holder).await
    }

    async fn complete_rename(&self, rename: &mut StackRename) -> Result<(), StoreError> {
        self.0.complete_rename(rename).await
    }

    async fn remove(&self, lock: &StackLock, backups: Backups, expected: &Expected) -> Result<(), StoreError> {
        delay_writes(2).await;
        self.0.remove(lock, backups, expected).await
    }
}
