//! Stores of the states of stacks.
//!
//! Input: the text of a checkpoint or of a history entry. Output: the same text. A store saves, loads and locks; it
//! does not interpret the texts. Excluded: keys, the environment, the home directory.

mod catalog;
#[cfg(any(test, feature = "testing"))]
pub mod compliance;
mod compression;
mod contents;
mod copy;
mod error;
mod files;
mod history_entry;
mod layout;
mod listing;
mod lock;
#[cfg(test)]
mod memory;
mod meta;
mod migration_mark;
mod objects;
mod options;
mod outage;
mod reference;
mod rename;
mod rename_intent;
mod revision;
mod state_store;
mod stored_mark;
mod tags;
#[cfg(test)]
mod tests;
mod url;

pub use catalog::{Backups, StackCatalog, Tags};
pub use compression::Compression;
pub use contents::StackContents;
pub use copy::{CheckpointCopy, CopyKind};
pub use error::{Damage, StoreError};
pub use files::FileStore;
pub use history_entry::HistoryEntry;
pub use layout::Layout;
pub use listing::{ListedNames, ListingTooLong, MAX_NAME_BYTES, MAX_NAMES};
pub use lock::{LockHolder, LockInfo, LockLease, ProcessFingerprint, StackLock};
#[cfg(test)]
pub(crate) use memory::MemoryStore;
pub use migration_mark::{MigrationDirection, MigrationMark};
#[cfg(any(test, feature = "testing"))]
pub use objects::{Fault, MemoryObjects, Request};
pub use objects::{
    ListedObject, ObjectError, ObjectErrorKind, ObjectStore, ObjectVersion, Objects, StoredObject, WriteCondition,
    WriteError,
};
pub use options::{LegacyStores, StoreOptions};
pub use outage::{Outage, OutageReport, OutageWatch};
pub use reference::{ReferenceError, StackReference};
pub use rename::{RenameOutcome, StackRename};
pub use revision::{Expected, Revision, StoredCheckpoint};
pub use state_store::StateStore;
pub use url::{FileUrl, UrlError};
