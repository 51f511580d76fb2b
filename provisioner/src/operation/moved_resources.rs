//! Resources that have moved in server.yaml, compared with what is recorded.

use std::collections::HashMap;

use bridge::message_text::MessageText;
use config::diagnostics::{Code, Diagnostic};
use config::{Moved, Place};
use engine::events::{Event, Message, Operation, Severity};
use state::{ResourceState, Snapshot};

use super::{OperationError, StackRun};

impl StackRun {
    /// Checks that a resource that has moved has one entry in the state, and tells of moves that are done, so that the file need not have them
    /// any more.
    ///
    /// # Errors
    /// [`OperationError::Types`] if both places have an entry: one of them would be deleted.
    pub(super) fn check_moved(&self, operation: Operation, recorded: &Snapshot) -> Result<(), OperationError> {
        let moved = &self.program.stack().moved;
        if moved.is_empty() || !self.has_program(operation) {
            return Ok(());
        }
        let entries = recorded.resources.iter().filter(|entry| entry.custom && !entry.delete);
        let by_name: HashMap<&str, &ResourceState> = entries.map(|entry| (entry.urn.name(), &**entry)).collect();
        let entry = |place: &Place| by_name.get(place.logical_name().as_str()).copied();
        let mut found = Vec::new();
        for Moved { from, to, span } in moved {
            match (entry(from), entry(to)) {
                (Some(old), Some(new)) if old.urn.qualified_type() == new.urn.qualified_type() => {
                    let summary =
                        MessageText::new(format_args!("the state has both {from} and {to}, to which it is moved"));
                    let error = Diagnostic::error(Code("moved"), *span, summary);
                    found.push(error.help(format_args!(
                        "remove the entry from `moved`, so that {from} is deleted, or remove one of both from the state"
                    )));
                }
                (None, Some(_)) => {
                    let text =
                        MessageText::new(format_args!("{from} was moved to {to}: its entry in `moved` can be removed"));
                    self.events.emit(Event::Message(Message::new(Severity::Info, text)));
                }
                _ => {}
            }
        }
        if found.is_empty() { Ok(()) } else { Err(OperationError::Types(found)) }
    }
}
