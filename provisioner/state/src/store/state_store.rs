//! The interface of a store.

use async_trait::async_trait;

use super::catalog::StackCatalog;
use super::error::StoreError;
use super::lock::{LockHolder, LockInfo, StackLock};
use super::reference::StackReference;

/// Keeps the states of stacks. Everything but [`StateStore::archive`] may be called without holding the lock, unless it asks
/// for it.
#[async_trait]
pub trait StateStore: StackCatalog {
    /// Where the store is, for messages.
    fn location(&self) -> String;

    /// The whole name of a stack, as its checkpoint says it for information.
    fn full_name(&self, stack: &StackReference) -> String {
        stack.to_string()
    }

    /// The text of the checkpoint of a stack, if the stack exists.
    async fn load(&self, stack: &StackReference) -> Result<Option<String>, StoreError>;

    /// Replaces the checkpoint of the stack that is locked as a whole, durably, and keeps the previous one beside it.
    ///
    /// # Errors
    /// [`StoreError::LockLost`] if somebody took the lock away, [`StoreError::Locked`] if that of somebody else stands beside it;
    /// nothing is written then.
    async fn save(&self, lock: &StackLock, checkpoint: &str) -> Result<(), StoreError>;

    /// Adds an entry to the history of a stack, with a copy of its checkpoint, and another copy to the backups.
    async fn archive(&self, stack: &StackReference, update: &str) -> Result<(), StoreError>;

    /// Takes the lock of a stack.
    ///
    /// # Errors
    /// [`StoreError::Locked`] if somebody else holds it, or tries to at this moment: of two who try at once both may fail,
    /// and never do both succeed.
    async fn lock(&self, stack: &StackReference, holder: &LockHolder) -> Result<StackLock, StoreError>;

    /// Gives a lock back.
    async fn unlock(&self, lock: StackLock) -> Result<(), StoreError>;

    /// Who holds the lock of a stack.
    async fn locks(&self, stack: &StackReference) -> Result<Vec<LockInfo>, StoreError>;

    /// Takes the lock of a stack from whoever holds it, and says who that was.
    async fn break_locks(&self, stack: &StackReference) -> Result<Vec<LockInfo>, StoreError>;
}
