//! End of a journal: its last line, which describes the end of the run; a line that was interrupted; a journal that is kept.

use std::path::PathBuf;

use super::dto::{CloseDto, HistoryDto};
use crate::store::HistoryEntry;

/// Content of the line that closes a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Closing {
    /// Digest of the checkpoint that is about to be saved.
    pub(crate) checkpoint: String,
    /// Entry that is added to the history after the checkpoint was saved; `None` if the run has none.
    pub(crate) history: Option<HistoryEntry>,
}

impl Closing {
    pub(super) fn to_dto(&self) -> CloseDto<'_> {
        let checkpoint = self.checkpoint.as_str().into();
        match &self.history {
            None => CloseDto::Checkpoint(checkpoint),
            Some(HistoryEntry { time, update }) => CloseDto::WithHistory {
                checkpoint,
                history: HistoryDto { time: time.to_string().into(), update: update.into() },
            },
        }
    }
}

impl Closing {
    /// Returns the entry of the history as a seal has it.
    pub(super) fn history_of_seal(&self) -> Option<HistoryDto<'static>> {
        let HistoryEntry { time, update } = self.history.as_ref()?;
        Some(HistoryDto { time: time.to_string().into(), update: update.clone().into() })
    }
}

impl TryFrom<CloseDto<'_>> for Closing {
    type Error = jiff::Error;

    fn try_from(dto: CloseDto<'_>) -> Result<Self, jiff::Error> {
        let (checkpoint, history) = match dto {
            CloseDto::Checkpoint(checkpoint) => (checkpoint, None),
            CloseDto::WithHistory { checkpoint, history: HistoryDto { time, update } } => {
                (checkpoint, Some(HistoryEntry { time: time.parse()?, update: update.into_owned() }))
            }
        };
        Ok(Self { checkpoint: checkpoint.into_owned(), history })
    }
}

/// Returns `true` for a line that closes a journal.
pub(super) fn is_close_line(line: &str) -> bool {
    line.starts_with("{\"close\":")
}

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

/// Journal that was kept after the end of a run whose state could not be saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptJournal {
    /// The file.
    pub path: PathBuf,
    /// `true` if it is in a fallback folder instead of the backend.
    pub is_fallback: bool,
    /// `true` if it lacks changes: they are in [`Unrecorded`](crate::Unrecorded).
    pub lacks_changes: bool,
}
