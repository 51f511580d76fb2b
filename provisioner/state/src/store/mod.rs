//! Where the states of stacks are kept.
//!
//! Enters: the text of a checkpoint, of a history entry. Leaves: the same. What a store must do is save, load and lock; what
//! a text means is not its business. Never here: keys, the environment, the home directory.

mod catalog;
#[cfg(test)]
mod compliance;
mod compression;
mod error;
mod files;
mod layout;
mod lock;
#[cfg(test)]
mod memory;
mod options;
mod reference;
mod state_store;
mod url;

pub use catalog::{Backups, StackCatalog, Tags};
pub use compression::Compression;
pub use error::{Damage, StoreError};
pub use files::FileStore;
pub use layout::Layout;
pub use lock::{LockHolder, LockInfo, StackLock};
#[cfg(test)]
pub(crate) use memory::MemoryStore;
pub use options::{FileOptions, LegacyStores};
pub use reference::{ReferenceError, StackReference};
pub use state_store::StateStore;
pub use url::{FileUrl, UrlError};
