//! Content of a checkpoint.

use crate::snapshot::Snapshot;

/// Content of a checkpoint.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checkpoint {
    /// Name of the stack when the checkpoint was written. It may be outdated and is informational only.
    pub stack: String,
    /// Snapshot; `None` for a newly created stack.
    pub snapshot: Option<Snapshot>,
}
