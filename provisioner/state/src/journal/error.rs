//! Errors of writing and replaying a journal.

use std::path::PathBuf;

use bridge::fs::FileError;

use crate::format::FormatError;

/// Reason why a journal cannot be written or replayed.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file cannot be read or written.
    #[error(transparent)]
    Path(#[from] FileError),
    /// A line other than the last is malformed.
    #[error("line {line} of the journal {} is damaged", path.display())]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Reason why the line cannot be read.
        source: Box<FormatError>,
    },
    /// Format version that the program does not support.
    #[error("the journal {} has format version {version}, which this program does not support", path.display())]
    UnsupportedVersion {
        /// The journal.
        path: PathBuf,
        /// Version of the format.
        version: u32,
    },
    /// An earlier write failed, so the journal may be incomplete.
    #[error("an earlier write to the journal {} failed; it accepts no more records", path.display())]
    EarlierWriteFailed {
        /// The journal.
        path: PathBuf,
    },
}
