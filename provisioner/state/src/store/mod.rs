//! Stores of the states of stacks.
//!
//! Input: the text of a checkpoint or of a history entry. Output: the same text. A store saves, loads and locks; it
//! does not interpret the texts. Excluded: keys, the environment, the home directory.

mod catalog;
mod checkpoint_text;
mod checkpoints;
#[cfg(any(test, feature = "testing"))]
pub mod compliance;
mod compression;
mod contents;
mod copies;
mod error;
mod folder;
mod journal_objects;
mod layout;
mod listing;
mod lock;
mod locking;
#[cfg(any(test, feature = "testing"))]
mod memory_objects;
mod migration_mark;
mod move_record;
mod objects;
mod options;
mod outage;
mod reference;
mod rename_intent;
mod renames;
mod revision;
mod state_store;
mod stored_mark;
mod tags;
#[cfg(test)]
mod tests;
mod traced;
mod url;
mod used_plans;

pub use catalog::{Backups, HistoryEntry};
pub use checkpoint_text::CheckpointText;
pub use compression::{Compression, content_type};
pub(crate) use error::NEWER;
pub use error::{Damage, StoreError};
pub use folder::FolderObjects;
pub use journal_objects::StoredJournals;
pub(crate) use journal_objects::{CreatedObject, JournalObject};
pub use layout::Layout;
pub use layout::{CheckpointCopy, CopyKind};
pub use listing::{ListedNames, ListingTooLong, MAX_NAME_BYTES, MAX_NAMES};
pub use lock::{LockHolder, LockInfo, LockLease, ProcessFingerprint, StackLock};
#[cfg(any(test, feature = "testing"))]
pub use memory_objects::{Fault, MemoryObjects, Request};
pub use migration_mark::{MigrationDirection, MigrationMark};
pub use move_record::{MoveRecord, MoveSide};
pub use objects::{
    Durability, Effect, ListedObject, ObjectError, ObjectErrorKind, ObjectVersion, Objects, StoredObject,
    WriteCondition, WriteError,
};
pub use options::{LegacyStores, StoreOptions};
pub use outage::{Outage, OutageReport, OutageWatch};
pub use reference::{ReferenceError, StackReference};
pub use renames::{RenameOutcome, StackRename};
pub use revision::{Expected, Revision, StoredCheckpoint};
pub use state_store::StateStore;
pub use tags::Tags;
pub use url::{FileUrl, UrlError};
pub use used_plans::UsedPlan;
