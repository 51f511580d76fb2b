//! Messages that a display takes, and the limit of the memory for lines of plugins that wait for its thread.
//!
//! A plugin can log faster than lines are masked and written. The sink of events must not wait, as the engine calls it,
//! so a line that finds no memory is dropped and counted. Nothing here waits, so nothing can wait for each other. Events
//! about resources and messages of the engine are not counted, and never dropped: a run has only so many.

use std::sync::atomic::{AtomicUsize, Ordering};

use engine::events::{Message, Severity};

/// Number of bytes of waiting lines. Warnings and errors may fill as many again.
const LIMIT: usize = 4 << 20;
/// Number of bytes that a line takes beside its text, so that many empty lines are limited, too.
const LINE_BYTES: usize = 500;

/// Lines of plugins that wait for the display, and the number of those that were dropped.
#[derive(Debug, Default)]
pub(super) struct QueuedLogs {
    bytes: AtomicUsize,
    dropped: AtomicUsize,
}

impl QueuedLogs {
    /// Counts a line that is to wait, and returns its bytes. If there is no memory for it, counts it as dropped and
    /// returns `None`.
    pub(super) fn reserve(&self, message: &Message) -> Option<usize> {
        let limit = if message.severity >= Severity::Warning { 2 * LIMIT } else { LIMIT };
        let bytes = message.text.len() + LINE_BYTES;
        let fits = |waiting: usize| Some(waiting + bytes).filter(|sum| *sum <= limit);
        if self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok() {
            return Some(bytes);
        }
        self.dropped.fetch_add(1, Ordering::Relaxed);
        None
    }

    /// Returns the bytes of a line that no longer waits.
    pub(super) fn release(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Returns the number of lines that were dropped since the last call. While many lines wait, more of them may be
    /// dropped: then it returns 0, unless this is the `last` call for a while.
    pub(super) fn take_dropped(&self, last: bool) -> usize {
        let has_room = self.bytes.load(Ordering::Relaxed) < LIMIT / 2;
        if has_room || last { self.dropped.swap(0, Ordering::Relaxed) } else { 0 }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_lines_are_limited_and_warnings_have_memory_of_their_own() {
        let logs = QueuedLogs::default();
        let info = Message::new(Severity::Info, "x".repeat(LIMIT / 4));
        let count = |message: &Message| std::iter::from_fn(|| logs.reserve(message)).count();
        assert_eq!((count(&info), logs.take_dropped(false)), (3, 0));
        let empty = Message::new(Severity::Info, "");
        assert_eq!(count(&empty), (LIMIT - 3 * (LIMIT / 4 + LINE_BYTES)) / LINE_BYTES);
        let error = Message { severity: Severity::Error, ..info.clone() };
        assert_eq!(count(&error), 3);
        assert_eq!(logs.take_dropped(false), 0);
        logs.release(LIMIT + LIMIT / 2);
        assert_eq!((logs.take_dropped(false), logs.take_dropped(false)), (3, 0));
        count(&error);
        assert_eq!((logs.take_dropped(false), logs.take_dropped(true)), (0, 1));
    }
}
