//! Choice of the messages that a display shows.

use engine::events::{Message, Severity};

/// Choice of messages. It depends on the message alone, so that a message that is not shown is neither queued nor masked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageFilter {
    /// True if debug messages are shown, too.
    pub(crate) verbose: bool,
    /// True if ephemeral messages are shown, too.
    pub(crate) ephemeral: bool,
}

impl MessageFilter {
    /// Returns whether a message is shown.
    pub(crate) fn shows(self, message: &Message) -> bool {
        (self.verbose || message.severity > Severity::Debug) && (self.ephemeral || !message.ephemeral)
    }
}
