//! What reading an entry comes to (engine semantics, sections 5.1 and 5.4).

use std::sync::Arc;

use bridge::provider::ReadReply;

use crate::events::StepOp;
use state::ResourceState;

use super::change::Change;

/// Whether an entry is read before anything else: `everything` in scope where the user asked for it, else what asked for it
/// itself, in scope, too.
pub(crate) fn is_read_first(state: &ResourceState, everything: bool, in_scope: bool) -> bool {
    in_scope && (everything || (!state.delete && state.refresh_before_update))
}

/// The entry as it was read, whatever a Diff may say of that; `None`: it is gone. `reasons`: why it does not work.
pub(crate) fn as_read(old: &ResourceState, reply: ReadReply, reasons: Vec<String>) -> Option<ResourceState> {
    let (Some(id), Some(outputs)) = (reply.id, reply.outputs) else { return None };
    let mut new = old.clone();
    new.id = Some(id);
    new.outputs = Arc::new(outputs);
    if let Some(inputs) = reply.inputs {
        new.inputs = Arc::new(inputs);
    }
    new.refresh_before_update = reply.refresh_before_update;
    new.init_errors = reasons;
    Some(new)
}

/// What is shown of an entry that was read and is still there.
pub(crate) fn shown_as(change: &Change) -> StepOp {
    if change.changed { StepOp::Update } else { StepOp::Same }
}
