//! The recorded state of Pulumi stacks: loaded, locked, journaled, saved, in the layout and the formats of Pulumi's command
//! line.
//!
//! Enters: a store ([`store::FileUrl`]), the name of a stack, keys to its secrets ([`secrets::Keyring`]), and the records of
//! a run ([`Record`]) as they happen. Leaves: a [`Snapshot`] of the resources, and files that `pulumi` reads, byte for byte
//! as it would have written them.
//!
//! Never here: providers, decisions about resources, the environment, the home directory, a terminal.
//!
//! - [`StackState`] is a stack that is locked for a change: open it, record what a run does, close it.
//! - [`StackView`] reads a stack without a lock; [`import`], [`rename_stack`] and [`remove_stack`] change it as a whole.
//! - [`Ledger`] turns records into a snapshot: the engine's during a run, and the next run's after a crash.
//! - [`integrity`] checks the invariants of a snapshot, [`surgery`] edits one by hand.
//! - [`format`] and [`store`] hold the stored forms, [`secrets`] their encryption.
//!
//! ```
//! use std::sync::Arc;
//!
//! use state::secrets::Keyring;
//! use state::store::{FileStore, FileUrl, LockHolder, StackReference};
//! use state::{StackAccess, StackState, StackView};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let url = FileUrl::parse("file://store?create_dir=true", folder.path(), None)?;
//! let access = StackAccess {
//!     store: Arc::new(FileStore::open(&url).await?),
//!     stack: StackReference::parse("dev", "reef")?,
//!     keyring: Arc::new(Keyring::new(None)),
//!     configured_secrets: None,
//!     config: Default::default(),
//!     journals: url.folder.clone(),
//!     engine_version: "v0.1.0".to_owned(),
//! };
//! let holder = LockHolder { pid: 1, username: "ada".to_owned(), hostname: "reefbox".to_owned() };
//! let stack = StackState::open(access.clone(), &holder).await?;
//! let snapshot = stack.snapshot().clone();
//! stack.close(snapshot, None).await?;
//!
//! let view = StackView::open(&access).await?;
//! assert!(view.snapshot.is_some_and(|snapshot| snapshot.resources.is_empty()));
//! # Ok(())
//! # }
//! ```

mod background;
mod checkpoint;
mod error;
pub mod format;
pub mod integrity;
mod journal;
mod ledger;
mod record;
mod recorder;
mod resource;
pub mod secrets;
mod settings;
mod snapshot;
mod stack_state;
pub mod store;
pub mod surgery;

pub use background::free_aside;
pub use checkpoint::{LoadedCheckpoint, decode_checkpoint, encode_checkpoint};
pub use error::{ImportProblem, JournalConflict, StateError};
pub use journal::JournalError;
pub use ledger::Ledger;
pub use record::{Effect, EntryId, OperationId, Record, Subject};
pub use recorder::{MemoryRecorder, StateRecorder};
pub use resource::{CustomTimeouts, ResourceState};
pub use settings::{SettingsError, StackSettings};
pub use snapshot::{Manifest, OperationKind, PendingOperation, SecretsDescription, Snapshot, SnapshotRest};
pub use stack_state::{
    ExportedSecrets, Imported, JournalRecorder, Recovered, StackAccess, StackState, StackSummary, StackView, history,
    import, remove_stack, rename_stack, summary,
};
