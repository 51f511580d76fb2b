//! What a store keeps of stacks besides their checkpoints.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::error::StoreError;
use super::lock::StackLock;
use super::reference::StackReference;

/// Tags of a stack, by name.
pub type Tags = BTreeMap<String, String>;

/// What becomes of the backups of a stack that is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backups {
    /// They stay, and the last checkpoint with them.
    Kept,
    /// They go, and so does the last checkpoint. What was kept on purpose stays.
    Removed,
}

/// Knows which stacks there are, and what is kept about each. Nothing here needs the lock unless it asks for it.
#[async_trait]
pub trait StackCatalog: Send + Sync {
    /// The stacks there are, sorted.
    async fn list(&self) -> Result<Vec<StackReference>, StoreError>;

    /// The entries of the history of a stack, oldest first.
    async fn history(&self, stack: &StackReference) -> Result<Vec<String>, StoreError>;

    /// The tags of a stack.
    async fn tags(&self, stack: &StackReference) -> Result<Tags, StoreError>;

    /// Replaces the tags of a stack.
    async fn set_tags(&self, stack: &StackReference, tags: &Tags) -> Result<(), StoreError>;

    /// Moves the stack that is locked: this becomes the checkpoint under the new name, and the history goes with it. Tags
    /// and backups stay under the old name, and so does the checkpoint, as one that was replaced.
    ///
    /// # Errors
    /// [`StoreError::Exists`], [`StoreError::Locked`] of the new name, [`StoreError::LockLost`]; nothing has moved then. The
    /// history moves last: where it cannot, the stack has its new name all the same.
    async fn rename(&self, lock: &StackLock, to: &StackReference, checkpoint: &str) -> Result<(), StoreError>;

    /// Removes the stack that is locked: its checkpoint, its history and its tags.
    ///
    /// # Errors
    /// [`StoreError::LockLost`]; nothing has gone then.
    async fn remove(&self, lock: &StackLock, backups: Backups) -> Result<(), StoreError>;
}
