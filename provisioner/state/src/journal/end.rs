//! End of the file of a journal.

/// Position at which the file of a journal ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileEnd {
    /// After the newline of its last line.
    AfterLine,
    /// Within a line, or before its newline: a write was interrupted.
    InLine,
}

impl FileEnd {
    /// Returns the kind of end of a text.
    pub(super) fn of(text: &str) -> Self {
        if text.ends_with('\n') { Self::AfterLine } else { Self::InLine }
    }
}
