//! Recorded state for the commands that change it.

use bridge::message_text::MessageText;
use provisioner::operation::{obsolete_text, recovery_text};
use state::{Snapshot, StackAccess, StackView, StateError, UnmergedJournal};

use crate::cli::access::opening_text;
use crate::cli::output::Output;
use crate::cli::waits::show_while;

/// Purpose of a change of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Edit,
    /// The state may violate the integrity of snapshots, and there may be journals that cannot be merged.
    Repair,
}

/// Loads the state without locking it, and for a repair the journals that cannot be merged.
pub(super) async fn load_snapshot(
    output: &Output,
    access: &StackAccess,
    purpose: Purpose,
) -> Result<(Snapshot, Vec<UnmergedJournal>), StateError> {
    let view = show_while(output, &opening_text(access.stack.stack()), StackView::open(access)).await?;
    if let Some(recovered) = &view.recovered {
        output.warn(recovery_text(recovered, view.is_idle));
    }
    if !view.late.is_empty() {
        output.warn(MessageText::of(&view.late));
    }
    view.obsolete.iter().for_each(|started| output.warn(obsolete_text(started)));
    match (purpose, view.conflict, view.integrity_error) {
        (Purpose::Edit, Some(conflict), _) => Err(StateError::Conflict(Box::new(conflict))),
        (Purpose::Edit, None, Some(error)) => Err(StateError::Integrity(error)),
        (Purpose::Edit, None, None) | (Purpose::Repair, ..) => Ok((view.snapshot.unwrap_or_default(), view.unmerged)),
    }
}
