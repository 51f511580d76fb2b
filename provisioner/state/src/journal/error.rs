//! Errors of writing and replaying a journal.

use std::path::PathBuf;

use bridge::fs::PathError;

use crate::format::FormatError;

/// Why a journal cannot be written or replayed.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file cannot be read or written.
    #[error(transparent)]
    Path(#[from] PathError),
    /// A line other than the last makes no sense.
    #[error("line {line} of the journal {} is damaged", path.display())]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        source: Box<FormatError>,
    },
    /// Written by something newer than us.
    #[error("the journal {} has format version {version}, which this program does not know", path.display())]
    TooNew {
        /// The journal.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// An earlier write failed, and the journal can no longer be trusted to be whole.
    #[error("the journal {} could not be written before, and takes no more", path.display())]
    Broken {
        /// The journal.
        path: PathBuf,
    },
}
