//! Intent of a rename: written before its first step, removed after its last one.
//!
//! The steps have a fixed order: the checkpoint under the new name, the removal of the old one, the history. While the old
//! checkpoint exists, a rename whose process has ended is undone, which removes the new checkpoint; from then on it is
//! completed.

use bridge::json;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::error::{Damage, StoreError};
use super::lock::{LockHolder, StackLock};
use super::reference::StackReference;

/// Folder of the intents, relative to that of the store.
pub(super) const RENAMES: &str = ".sc/renames";

const VERSION: u32 = 1;

/// Stored form of an intent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Intent {
    pub(super) version: u32,
    pub(super) from: StackName,
    pub(super) to: StackName,
    /// User and host of the process.
    #[serde(default)]
    pub(super) user: String,
    pub(super) host: String,
    /// Time of the begin (RFC 3339); earlier versions did not write it.
    #[serde(default)]
    pub(super) time: String,
    /// Names of the locks of both stacks.
    pub(super) locks: [String; 2],
    pub(super) progress: Progress,
}

/// Progress of a rename when its intent was written.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Progress {
    /// Locks are taken; no step has begun.
    Locking,
    /// Steps are carried out. The digests are those of the checkpoint before the rename and after it.
    Moving([String; 2]),
    /// The stack has its old name; only the locks are left.
    Undone,
    /// The stack has its new name; only the locks are left.
    Done,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StackName {
    project: Option<String>,
    stack: String,
}

impl StackName {
    pub(super) fn new(stack: &StackReference) -> Self {
        let project = Some(stack.project().to_owned()).filter(|project| !project.is_empty());
        Self { project, stack: stack.stack().to_owned() }
    }

    /// Returns the reference; `None` if the names are invalid.
    pub(super) fn reference(&self) -> Option<StackReference> {
        match &self.project {
            Some(project) => StackReference::new(project, &self.stack).ok(),
            None => StackReference::without_project(&self.stack).ok(),
        }
    }
}

impl Intent {
    /// Creates the intent of a rename that has not begun.
    pub(super) fn new(from: &StackLock, to: &StackLock, holder: &LockHolder) -> Self {
        Self {
            version: VERSION,
            from: StackName::new(&from.stack),
            to: StackName::new(&to.stack),
            user: holder.username.clone(),
            host: holder.hostname.clone(),
            time: Timestamp::now().to_string(),
            locks: [from.name.clone(), to.name.clone()],
            progress: Progress::Locking,
        }
    }

    /// Returns the text of the intent.
    pub(super) fn write(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers are always JSON")
    }

    /// Parses the intent at a location.
    pub(super) fn read(text: &[u8], location: &str) -> Result<Self, StoreError> {
        let damaged = |source| StoreError::Damaged { location: location.to_owned(), source };
        let intent: Self = json::from_slice(text).map_err(|error| damaged(Damage::Rename(error)))?;
        let has_paths = intent.locks.iter().any(|name| name.contains('/'));
        match intent.version {
            VERSION if has_paths => Err(damaged(Damage::RenameNames)),
            VERSION => Ok(intent),
            version => Err(StoreError::TooNew { location: location.to_owned(), version: version.into() }),
        }
    }

    /// Returns the old and the new name of the stack. The location is that of the intent, for an error.
    pub(super) fn stacks(&self, location: &str) -> Result<[StackReference; 2], StoreError> {
        let damaged = || StoreError::Damaged { location: location.to_owned(), source: Damage::RenameNames };
        Ok([self.from.reference().ok_or_else(damaged)?, self.to.reference().ok_or_else(damaged)?])
    }
}
