//! What is recorded of a stack, and how it is kept.

mod ledger;
mod resource;
mod snapshot;

pub use ledger::{Effect, EntryId, Ledger, OperationId, Record};
pub use resource::{CustomTimeouts, ResourceState};
pub use snapshot::{Manifest, OperationKind, PendingOperation, SecretsDescription, Snapshot, SnapshotRest};
