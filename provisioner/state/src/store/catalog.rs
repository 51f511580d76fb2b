//! Interface of a store for whole stacks: list, history, copies of checkpoints, tags, rename, remove.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::copy::{CheckpointCopy, CopyKind};
use super::error::StoreError;
use super::lock::{LockHolder, StackLock};
use super::reference::StackReference;
use super::rename::StackRename;
use super::revision::Expected;

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

    /// Returns the tags of a stack.
    async fn tags(&self, stack: &StackReference) -> Result<Tags, StoreError>;

    /// Replaces the tags of a stack.
    async fn set_tags(&self, stack: &StackReference, tags: &Tags) -> Result<(), StoreError>;

    /// Returns the copies of the checkpoints of a stack that are of one of the kinds, newest first.
    async fn copies(&self, stack: &StackReference, kinds: &[CopyKind]) -> Result<Vec<CheckpointCopy>, StoreError>;

    /// Returns the text of a copy.
    async fn read_copy(&self, copy: &CheckpointCopy) -> Result<String, StoreError>;

    /// Replaces the expected checkpoint of the locked stack by a text that was read from a copy, as a save does. The
    /// content of the copy stays among the copies, even if the save fails.
    ///
    /// # Errors
    /// The errors of [`StateStore::save`](super::StateStore::save).
    async fn restore(
        &self,
        lock: &StackLock,
        copy: &CheckpointCopy,
        checkpoint: &str,
        expected: &Expected,
    ) -> Result<(), StoreError>;

    /// Locks the old and the new name of a stack for a rename.
    ///
    /// # Errors
    /// [`StoreError::Locked`] of either name.
    async fn begin_rename(
        &self,
        from: &StackReference,
        to: &StackReference,
        holder: &LockHolder,
    ) -> Result<StackRename, StoreError>;

    /// Renames a stack with the expected checkpoint: `checkpoint` becomes that under the new name, and the history moves
    /// with it. Tags and backups stay under the old name; the old checkpoint becomes a backup.
    ///
    /// # Errors
    /// [`StoreError::Exists`], [`StoreError::LockLost`], [`StoreError::Replaced`]; nothing was changed then. After other
    /// errors, the outcome of the rename says which name the stack has.
    async fn rename(&self, rename: &mut StackRename, checkpoint: &str, expected: &Expected) -> Result<(), StoreError>;

    /// Ends a rename: releases both locks.
    async fn finish_rename(&self, rename: StackRename) -> Result<(), StoreError>;

    /// Locks both names of a rename from or to a stack whose process has ended before it had finished the rename; `None` if
    /// there is none. [`StackCatalog::complete_rename`] follows.
    ///
    /// # Errors
    /// [`StoreError::Locked`] if the process may still run, or another holder has a lock of either name.
    async fn resume_rename(
        &self,
        stack: &StackReference,
        holder: &LockHolder,
    ) -> Result<Option<StackRename>, StoreError>;

    /// Completes or undoes a rename that was resumed.
    ///
    /// # Errors
    /// [`StoreError::BothNames`] if both stacks have been changed since. The rename stays pending after each error.
    async fn complete_rename(&self, rename: &mut StackRename) -> Result<(), StoreError>;

    /// Removes the locked stack with the expected checkpoint: its checkpoint, its history and its tags.
    ///
    /// # Errors
    /// [`StoreError::LockLost`], [`StoreError::Replaced`]; nothing was removed then.
    async fn remove(&self, lock: &StackLock, backups: Backups, expected: &Expected) -> Result<(), StoreError>;
}
