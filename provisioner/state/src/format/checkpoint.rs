//! The content of a checkpoint.

use crate::snapshot::Snapshot;

/// What a checkpoint holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checkpoint {
    /// The name that the stack had when somebody last said so; never to be relied on.
    pub stack: String,
    /// The state; `None` in a stack that was only just created.
    pub snapshot: Option<Snapshot>,
}
