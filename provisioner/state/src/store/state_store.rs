//! Interface of a store.

use async_trait::async_trait;
use futures_util::future::join;
use jiff::Timestamp;

use super::catalog::StackCatalog;
use super::contents::StackContents;
use super::error::StoreError;
use super::history_entry::HistoryEntry;
use super::lock::{LockHolder, LockInfo, StackLock};
use super::reference::StackReference;
use super::revision::{Expected, Revision, StoredCheckpoint};

/// Store of the states of stacks. Methods need the lock of a stack only if they have it as a parameter; callers of
/// [`StateStore::archive`] must hold it too.
#[async_trait]
pub trait StateStore: StackCatalog + StackContents {
    /// Returns the location of the store, for messages.
    fn location(&self) -> String;

    /// Returns the full name of a stack as checkpoints contain it.
    fn full_name(&self, stack: &StackReference) -> String {
        stack.to_string()
    }

    /// Returns the location of the checkpoint of a stack, for messages.
    fn checkpoint_location(&self, stack: &StackReference) -> String;

    /// Returns the checkpoint of a stack; `None` if the stack does not exist. The mark is read at the same time.
    ///
    /// # Errors
    /// [`StoreError::Migrated`] if the stack has a mark.
    async fn load(&self, stack: &StackReference) -> Result<Option<StoredCheckpoint>, StoreError> {
        let (checkpoint, unmarked) = join(self.read_checkpoint(stack), self.refuse_migrated(stack)).await;
        unmarked?;
        checkpoint
    }

    /// Fails if the stack has a mark.
    ///
    /// # Errors
    /// [`StoreError::Migrated`].
    async fn refuse_migrated(&self, stack: &StackReference) -> Result<(), StoreError> {
        let Some(mark) = self.mark(stack).await? else { return Ok(()) };
        let (stack, mark_location) = (stack.clone(), self.mark_location(stack));
        Err(StoreError::Migrated { stack, mark: Box::new(mark), mark_location })
    }

    /// Returns the text of the checkpoint of a stack; `None` if the stack does not exist.
    ///
    /// # Errors
    /// The errors of [`StateStore::load`].
    async fn text(&self, stack: &StackReference) -> Result<Option<String>, StoreError> {
        Ok(self.load(stack).await?.map(StoredCheckpoint::into_text))
    }

    /// Compares the checkpoint of the locked stack with the expected one, then replaces it atomically and durably, and keeps
    /// the previous one beside it. Returns the revision of the new one. A store without conditional writes does not notice a
    /// program that writes without the lock between the two.
    ///
    /// # Errors
    /// [`StoreError::LockLost`] if the lock was broken, [`StoreError::Locked`] if there is a lock of another holder as
    /// well; nothing is written then. [`StoreError::Replaced`] if the checkpoint is not the expected one, which then stays; a
    /// store of objects may have copied it over the previous one.
    async fn save(&self, lock: &StackLock, checkpoint: &str, expected: &Expected) -> Result<Revision, StoreError>;

    /// Adds an entry to the history of a stack, with a copy of its checkpoint, and another copy to the backups. An entry
    /// of the same time is replaced, so an interrupted call can be repeated.
    async fn archive(&self, stack: &StackReference, entry: &HistoryEntry) -> Result<(), StoreError>;

    /// Takes the lock of a stack.
    ///
    /// # Errors
    /// [`StoreError::Locked`] if another holder has the lock, or requests it at the same time: of two concurrent
    /// requests both may fail, but at most one succeeds.
    async fn lock(&self, stack: &StackReference, holder: &LockHolder) -> Result<StackLock, StoreError>;

    /// Releases a lock.
    async fn unlock(&self, lock: StackLock) -> Result<(), StoreError>;

    /// Renews the lease of a lock. A lock that was removed is not created again.
    ///
    /// # Errors
    /// [`StoreError::LockLost`] if the lock was removed.
    async fn renew(&self, lock: &StackLock) -> Result<(), StoreError>;

    /// Removes the lease of a lock, which then stays until it is released or broken. A lock that was removed is not created
    /// again.
    ///
    /// # Errors
    /// [`StoreError::LockLost`] if the lock was removed.
    async fn end_lease(&self, lock: &StackLock) -> Result<(), StoreError>;

    /// Removes a lock whose run has ended, on behalf of a holder, unless it was renewed since it was read. Returns whether it
    /// is removed.
    async fn remove_ended_lock(
        &self,
        stack: &StackReference,
        lock: &LockInfo,
        holder: &LockHolder,
    ) -> Result<bool, StoreError>;

    /// Returns the time by the clock that [`LockInfo::renewed`] has.
    async fn now(&self) -> Result<Timestamp, StoreError>;

    /// Returns the held locks of a stack.
    async fn locks(&self, stack: &StackReference) -> Result<Vec<LockInfo>, StoreError>;

    /// Breaks the given locks of a stack, and returns those that were still held. Locks that other runs have taken since
    /// they were listed stay.
    async fn break_locks(&self, stack: &StackReference, locks: &[LockInfo]) -> Result<Vec<LockInfo>, StoreError>;
}
