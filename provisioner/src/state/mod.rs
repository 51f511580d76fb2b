//! What is recorded of a stack, and how it is kept.

mod error;
pub mod integrity;
mod ledger;
mod recorder;
mod resource;
mod snapshot;

pub use error::StateError;
pub use ledger::{Effect, EntryId, Ledger, OperationId, Record};
pub use recorder::{MemoryRecorder, StateRecorder};
pub use resource::{CustomTimeouts, ResourceState};
pub use snapshot::{Manifest, OperationKind, PendingOperation, SecretsDescription, Snapshot, SnapshotRest};
