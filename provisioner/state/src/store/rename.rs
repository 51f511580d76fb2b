//! Rename of a stack that survives the end of its process.

use super::lock::StackLock;
use super::reference::StackReference;
use super::rename_intent::Intent;

/// Outcome of the steps of a rename.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenameOutcome {
    /// The stack has its old name: nothing has changed, or all changes were undone.
    OldName,
    /// The stack has its new name, with its checkpoint and its history.
    NewName,
    /// A step has failed, and so has the attempt to undo or complete the rename. The next command does it.
    Pending,
}

/// Rename of a stack that holds the locks of both names. It ends with `StateStore::finish_rename`; if the process
/// ends before, `StateStore::resume_rename` completes or undoes it.
#[derive(Debug)]
#[must_use = "a rename is ended with `StateStore::finish_rename`"]
pub struct StackRename {
    pub(super) from: StackLock,
    pub(super) to: StackLock,
    /// Outcome of the steps so far.
    pub outcome: RenameOutcome,
    pub(super) intent: StoredIntent,
}

/// Object with the intent of a rename. The process of the rename holds the lock of the old name.
#[derive(Clone, Debug)]
pub(super) struct StoredIntent {
    pub(super) key: String,
    pub(super) intent: Intent,
}

impl StackRename {
    /// Returns the locks of the old and of the new name.
    pub(crate) fn locks(&self) -> [&StackLock; 2] {
        [&self.from, &self.to]
    }

    /// Returns the old name.
    pub fn from(&self) -> &StackReference {
        self.from.stack()
    }

    /// Returns the new name.
    pub fn to(&self) -> &StackReference {
        self.to.stack()
    }
}
