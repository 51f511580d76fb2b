//! Interface of a store for whole stacks: list, history, tags, rename, remove.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::error::StoreError;
use super::lock::StackLock;
use super::reference::StackReference;

/// Tags of a stack, by name.
pub type Tags = BTreeMap<String, String>;

/// Treatment of the backups of a removed stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backups {
    /// The backups are kept, and the last checkpoint becomes one of them.
    Kept,
    /// The backups and the last checkpoint are removed. Retained checkpoints are kept.
    Removed,
}

/// Catalog of the stacks of a store. Methods need the lock of a stack only if they have it as a parameter.
#[async_trait]
pub trait StackCatalog: Send + Sync {
    /// Returns the stacks, sorted.
    async fn list(&self) -> Result<Vec<StackReference>, StoreError>;

    /// Returns the history entries of a stack, oldest first.
    async fn history(&self, stack: &StackReference) -> Result<Vec<String>, StoreError>;

    /// Returns the tags of a stack.
    async fn tags(&self, stack: &StackReference) -> Result<Tags, StoreError>;

    /// Replaces the tags of a stack.
    async fn set_tags(&self, stack: &StackReference, tags: &Tags) -> Result<(), StoreError>;

    /// Renames the locked stack: `checkpoint` becomes the checkpoint under the new name, and the history moves with it.
    /// Tags and backups stay under the old name; the old checkpoint becomes a backup.
    ///
    /// # Errors
    /// [`StoreError::Exists`], [`StoreError::Locked`] of the new name, [`StoreError::LockLost`]; nothing was changed
    /// then. The history moves last: if that fails, the stack already has its new name.
    async fn rename(&self, lock: &StackLock, to: &StackReference, checkpoint: &str) -> Result<(), StoreError>;

    /// Removes the locked stack: its checkpoint, its history and its tags.
    ///
    /// # Errors
    /// [`StoreError::LockLost`]; nothing was removed then.
    async fn remove(&self, lock: &StackLock, backups: Backups) -> Result<(), StoreError>;
}
