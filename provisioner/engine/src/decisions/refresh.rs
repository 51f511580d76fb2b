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

/// Maximum number of initialization errors that a read leaves in an entry, so that repeated reads whose texts differ do not
/// add up.
const MAX_INIT_ERRORS: usize = 16;

/// Returns an entry with the state that was read; `None` if the resource does not exist any more.
///
/// Recorded initialization errors stay, after those of the read: a provider whose Read does not check the initialization
/// returns none. Only a Create or an Update that succeeds removes them, so the next update calls Update.
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
    new.init_errors = with_recorded_init_errors(&old.init_errors, init_errors);
    Some(new)
}

fn with_recorded_init_errors(recorded: &[String], read: Vec<String>) -> Vec<String> {
    let mut errors = read;
    for error in recorded {
        if errors.len() < MAX_INIT_ERRORS && !errors.contains(error) {
            errors.push(error.clone());
        }
    }
    errors
}

/// Returns the result of a refresh step whose resource still exists.
pub(crate) fn refresh_result(change: &Change) -> StepOp {
    if change.changed { StepOp::Update } else { StepOp::Same }
}
