//! Outcome of reading a recorded entry (docs/spec/engine-semantics.md#5.1 and #5.4).

use std::sync::Arc;

use bridge::provider::ReadReply;

use crate::events::StepOp;
use state::ResourceState;

use super::change::Change;

/// Returns whether an entry in scope is read before all decisions: any entry if `everything` is true, else a live entry
/// with `refreshBeforeUpdate`.
pub(crate) fn should_refresh_first(state: &ResourceState, everything: bool, in_scope: bool) -> bool {
    in_scope && (everything || (!state.delete && state.refresh_before_update))
}

/// Returns an entry with the state that was read; `None` if the resource does not exist any more.
pub(crate) fn refreshed_state(
    old: &ResourceState,
    reply: ReadReply,
    init_errors: Vec<String>,
) -> Option<ResourceState> {
    let (Some(id), Some(outputs)) = (reply.id, reply.outputs) else { return None };
    let mut new = old.clone();
    new.id = Some(id);
    new.outputs = Arc::new(outputs);
    if let Some(inputs) = reply.inputs {
        new.inputs = Arc::new(inputs);
    }
    new.refresh_before_update = reply.refresh_before_update;
    new.init_errors = init_errors;
    Some(new)
}

/// Returns the result of a refresh step whose resource still exists.
pub(crate) fn refresh_result(change: &Change) -> StepOp {
    if change.changed { StepOp::Update } else { StepOp::Same }
}
