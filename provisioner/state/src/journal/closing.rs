//! End of a run, as the last line of its journal describes it.

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
