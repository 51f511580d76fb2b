//! Entry that a store adds to the history of a stack.

use jiff::Timestamp;

/// Entry to add to the history of a stack. Its time names the files, so an entry that is added twice exists once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryEntry {
    /// Time of the entry. No other entry of the stack has it.
    pub time: Timestamp,
    /// Text of the update.
    pub update: String,
}

impl HistoryEntry {
    /// Creates an entry of the current time.
    pub fn new(update: impl Into<String>) -> Self {
        Self { time: Timestamp::now(), update: update.into() }
    }
}
