//! Where the states of stacks are kept.
//!
//! Enters: the text of a checkpoint, of a history entry. Leaves: the same. What a store must do is save, load and lock; what
//! a text means is not its business. Never here: keys, the environment, the home directory.

mod catalog;
#[cfg(test)]
mod compliance;
mod compression;
mod files;
mod layout;
mod lock;
mod memory;
mod options;
mod reference;
mod url;

use async_trait::async_trait;
use bridge::fs::PathError;

pub use catalog::{Backups, StackCatalog, Tags};
pub use compression::Compression;
pub use files::FileStore;
pub use lock::{LockHolder, LockInfo, StackLock};
pub use memory::MemoryStore;
pub use options::FileOptions;
pub use reference::{ReferenceError, StackReference};
pub use url::{FileUrl, UrlError};

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

/// Why a store could not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Something in the store cannot be read or written.
    #[error(transparent)]
    Path(#[from] PathError),
    /// Somebody holds the lock.
    #[error("{stack}: the stack is currently locked by {} lock(s){}", holders.len(), list(holders))]
    Locked {
        /// The stack.
        stack: StackReference,
        /// Who holds it.
        holders: Vec<LockInfo>,
    },
    /// Somebody took the lock away from who holds it.
    #[error("{stack}: the lock of this run was taken away{}", now_held_by(holders))]
    LockLost {
        /// The stack.
        stack: StackReference,
        /// Who holds it now.
        holders: Vec<LockInfo>,
    },
    /// There is a stack of that name.
    #[error("there is a stack {0} already")]
    Exists(StackReference),
    /// The folder of the store is not there.
    #[error("there is no folder {0} (add `?create_dir=true` to the URL to have it made)")]
    NoFolder(String),
    /// The store says of itself what makes no sense.
    #[error("{path} is damaged: {problem}")]
    Damaged {
        /// What is damaged.
        path: String,
        /// How.
        problem: String,
    },
    /// The store has the layout of long ago.
    #[error("{0} has the old layout without projects")]
    Legacy(String),
    /// The store has a layout that came after us.
    #[error("{path} says layout version {version}, which is newer than this program knows")]
    TooNew {
        /// Where it says so.
        path: String,
        /// The version.
        version: u64,
    },
    /// The store refuses a checkpoint that it could not give back (only stores for tests do).
    #[error("{stack}: refusing to save: {problem}")]
    Refused {
        /// The stack.
        stack: StackReference,
        /// Why.
        problem: String,
    },
}

fn now_held_by(holders: &[LockInfo]) -> String {
    if holders.is_empty() { ", and nobody holds it".to_owned() } else { format!(", and now held by{}", list(holders)) }
}

fn list(holders: &[LockInfo]) -> String {
    holders.iter().map(|holder| format!("\n  {holder}")).collect()
}
