//! What is recorded of a stack, and how it is kept.

mod checkpoint;
mod error;
pub mod format;
pub mod integrity;
mod journal;
mod ledger;
mod recorder;
mod resource;
pub mod secrets;
mod settings;
mod snapshot;
mod stack_state;
pub mod store;
pub mod surgery;

pub use checkpoint::{LoadedCheckpoint, decode_checkpoint, encode_checkpoint};
pub use error::{ImportProblem, JournalConflict, StateError};
pub use journal::JournalError;
pub use ledger::{Effect, EntryId, Ledger, OperationId, Record, Subject};
pub use recorder::{MemoryRecorder, StateRecorder};
pub use resource::{CustomTimeouts, ResourceState};
pub use settings::{SettingsError, StackSettings};
pub use snapshot::{Manifest, OperationKind, PendingOperation, SecretsDescription, Snapshot, SnapshotRest};
pub use stack_state::{
    ExportedSecrets, Imported, JournalRecorder, Recovered, StackAccess, StackState, StackSummary, StackView, history,
    import, remove_stack, rename_stack, summary,
};

/// Frees what nobody needs any more. For a large state that takes as long as to write it, and nobody has to wait for it.
/// Only where tokio runs.
pub fn free_aside(value: impl Send + 'static) {
    tokio::task::spawn_blocking(move || drop(value));
}
