//! Rename of a stack that survives the end of its process.

use std::fs::File;
use std::path::PathBuf;

use bridge::fs::FileError;

use super::error::StoreError;
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

/// Rename of a stack that holds the locks of both names. It ends with `StackCatalog::finish_rename`; if the process
/// ends before, `StackCatalog::resume_rename` completes or undoes it.
#[derive(Debug)]
#[must_use = "a rename is ended with `StackCatalog::finish_rename`"]
pub struct StackRename {
    pub(super) from: StackLock,
    pub(super) to: StackLock,
    /// Outcome of the steps so far.
    pub outcome: RenameOutcome,
    pub(super) intent: Option<HeldIntent>,
}

/// Intent of a rename, as the process of the rename holds it.
#[derive(Debug)]
pub(super) enum HeldIntent {
    File(FileIntent),
    Object(Box<ObjectIntent>),
}

/// Object with the intent of a rename. The process of the rename holds the lock of the old name.
#[derive(Clone, Debug)]
pub(super) struct ObjectIntent {
    pub(super) key: String,
    pub(super) intent: Intent,
}

/// File with the intent of a rename. The process of the rename holds a lock of the operating system on it, which ends with
/// the process.
#[derive(Debug)]
pub(super) struct FileIntent {
    pub(super) path: PathBuf,
    /// Open file with the lock.
    pub(super) file: File,
}

impl HeldIntent {
    fn duplicate(&self) -> Result<Self, StoreError> {
        Ok(match self {
            Self::File(FileIntent { path, file }) => {
                let file = file.try_clone().map_err(FileError::of("open", path))?;
                Self::File(FileIntent { path: path.clone(), file })
            }
            Self::Object(intent) => Self::Object(intent.clone()),
        })
    }
}

impl StackRename {
    /// Returns the same rename for a task that works on behalf of its owner. The intent stays locked until both are
    /// dropped.
    pub(super) fn duplicate(&self) -> Result<Self, StoreError> {
        let intent = self.intent.as_ref().map(HeldIntent::duplicate).transpose()?;
        Ok(Self { from: self.from.duplicate(), to: self.to.duplicate(), outcome: self.outcome, intent })
    }

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
