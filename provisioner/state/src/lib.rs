//! Recorded state of Pulumi stacks: loading, locking, journaling and saving, in the layout and the formats of Pulumi's
//! command line.
//!
//! Input: a store ([`store::FileUrl`]), the name of a stack, keys to its secrets ([`secrets::Keyring`]), and the
//! records of a run ([`Record`]) as they happen. Output: a [`Snapshot`] of the resources, and files that are byte for
//! byte those of `pulumi`.
//!
//! Excluded: providers, decisions about resources, the environment, the home directory, a terminal.
//!
//! - [`StackState`] is a stack that is locked for a change: open it, record what a run does, close it.
//! - [`StackView`] reads a stack without a lock; [`import`], [`Restore`], [`rename_stack`] and [`remove_stack`] change
//!   whole stacks.
//! - [`Ledger`] turns records into a snapshot: the engine's during a run, and the recovery's after a crash.
//! - [`integrity`] checks the invariants of a snapshot, [`state_edit`] implements `sc state`.
//! - [`mod@format`] and [`store`] contain the stored forms, [`secrets`] their encryption.
//!
//! ```
//! use std::sync::Arc;
//!
//! use state::secrets::Keyring;
//! use state::store::{StateStore, FileUrl, LockHolder, StackReference, StoreOptions};
//! use state::{JournalFolders, StackAccess, StackState, StackView, Unrecorded};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let url = FileUrl::parse("file://store?create_dir=true", folder.path(), None)?;
//! let access = StackAccess {
//!     store: StateStore::open_folder(&url, StoreOptions::default()).await?,
//!     stack: StackReference::parse("dev", "reef")?,
//!     keyring: Arc::new(Keyring::new(None)),
//!     configured_secrets: None,
//!     config: Default::default(),
//!     journals: JournalFolders::of_backend(&url.folder),
//!     journal_mode: Default::default(),
//!     unrecorded: Unrecorded::default(),
//!     locks: state::LockSettings::default(),
//!     begins_anew: false,
//!     engine_version: "v0.1.0".to_owned(),
//! };
//! let holder = LockHolder { pid: 1, username: "ada".to_owned(), hostname: "reefbox".to_owned(), process: None, lease: None };
//! let stack = StackState::open(access.clone(), &holder).await?;
//! let snapshot = stack.snapshot().clone();
//! stack.close(snapshot, None).await?;
//!
//! let view = StackView::open(&access).await?;
//! assert!(view.snapshot.is_some_and(|snapshot| snapshot.resources.is_empty()));
//! # Ok(())
//! # }
//! ```

mod adoption;
mod checkpoint;
mod content_digest;
mod digest;
mod error;
pub mod format;
mod held_lease;
pub mod integrity;
mod journal;
mod ledger;
mod migration_error;
mod receipt;
mod record;
mod recorder;
mod references;
mod resource;
pub mod secrets;
mod settings;
mod settings_edit;
mod snapshot;
mod stack_state;
pub mod state_edit;
pub mod store;
mod unrecorded;

/// Maximum size of a checkpoint, an export or a journal that is read, in bytes, and of a checkpoint that is
/// decompressed.
pub const MAX_STATE_BYTES: u64 = 4 << 30;

pub use checkpoint::{LoadedCheckpoint, decode_checkpoint, encode_checkpoint};
pub use content_digest::content_digest;
pub use error::{ImportProblem, JournalConflict, StateError, UnexplainedEmptyState};
pub use held_lease::HeldLease;
pub use journal::{Creations, JournalError, JournalFolders, JournalMode, KeptJournal, SegmentStatistics};
pub use ledger::{Entry, Ledger};
pub use migration_error::MigrationError;
pub use receipt::Receipt;
#[cfg(any(test, feature = "testing"))]
pub use receipt::ReceiptControl;
pub use record::{Effect, EntryId, OperationId, Record, Subject};
pub use recorder::{MemoryRecorder, StateRecorder};
pub use references::{Relation, Rewrite};
pub use resource::{CustomTimeouts, ResourceState, can_identify};
pub use settings::{SettingsError, StackSettings};
pub use settings_edit::{SettingsEdit, SettingsEditError};
pub use snapshot::{
    Manifest, OperationKind, PendingOperation, SecretsDescription, Snapshot, SnapshotRest, drop_in_background,
};
pub use stack_state::{
    AwaitedLocks, EntryChange, ExportedSecrets, ImportReport, JournalRecorder, JournalStatus, JournalSummary,
    LateConflict, LateReport, LockSettings, LockSummary, LockWait, LockedRun, MigratedStack, MigrationOutcome,
    MoveOutcome, MovedResources, Namesake, RecoveredRun, Restore, SecretsChange, StackAccess, StackMigration,
    StackState, StackSummary, StackView, StateCopy, TakenOverLock, UnmergedJournal, adopt_journal, break_locks,
    change_secrets, discard_journal, history, import, journals, move_between_stacks, namesakes, remove_stack,
    rename_stack, resume_move, resume_rename, state_copies, stored_secrets, summary,
};
pub use unrecorded::{ChangeKind, Unrecorded, UnrecordedChange, UnrecordedReport};
