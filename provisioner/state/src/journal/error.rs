//! Errors of writing and replaying a journal.

use std::path::PathBuf;

use bridge::error::{Hint, chain};
use bridge::fs::FileError;
use bridge::message_text::MessageText;

use crate::format::FormatError;
use crate::unrecorded::UnrecordedChange;

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
    /// The file was removed, or another file has its name.
    #[error("the journal {} was removed during the run", path.display())]
    Removed {
        /// The journal.
        path: PathBuf,
    },
    /// The written records could not be flushed to disk.
    #[error("the journal {} could not be flushed to disk", path.display())]
    Unflushed {
        /// The journal.
        path: PathBuf,
    },
    /// The journal is in a fallback folder, because the backend could not be written. It accepts the ends of running
    /// operations, and no begins of others.
    #[error(
        "no operation begins, because the journal of the backend could not be written; what was done is recorded in {}",
        journal.display()
    )]
    InFallback {
        /// The journal in the fallback folder.
        journal: PathBuf,
    },
    /// The outcome of an operation could not be recorded in any place. The run has it in memory, for the checkpoint.
    #[error(
        "the outcome could be recorded in no journal ({}); it is saved with the state at the end of the run{}",
        chain(reason),
        lines(changes)
    )]
    Unrecorded {
        /// Changes that no journal contains.
        changes: Vec<UnrecordedChange>,
        /// Reason why the first journal could not be written.
        reason: Box<JournalError>,
    },
}

impl Hint for JournalError {
    fn hint(&self) -> Option<MessageText> {
        match self {
            Self::UnsupportedVersion { .. } => {
                Some("a newer version of `sc` has written this: use that version to continue".into())
            }
            Self::Damaged { source, .. } => Some(source.hint().unwrap_or_else(|| {
                "find out what its run has created, and import it; then `sc state journal ls` names the run, and `sc state journal discard RUN` \
                 removes the journal without using it"
                    .into()
            })),
            // The run goes on with its state in memory, or says at its end what to do.
            Self::Path(_)
            | Self::Removed { .. }
            | Self::Unflushed { .. }
            | Self::InFallback { .. }
            | Self::Unrecorded { .. } => None,
        }
    }
}

fn lines(changes: &[UnrecordedChange]) -> String {
    let lines: String = changes.iter().map(|change| format!("\n  {change}")).collect();
    if lines.is_empty() { lines } else { ":".to_owned() + &lines }
}
