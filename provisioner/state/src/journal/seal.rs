//! Seals: marks that a run has taken over the journal of another one.

use bridge::json;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::closing::Closing;
use super::dto::HistoryDto;
use crate::store::HistoryEntry;

/// Mark that another run has taken a journal over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seal {
    /// Id of the run that has taken the journal over.
    pub(super) run: String,
    /// Number of the last line that it has taken.
    pub(super) lines: usize,
    /// SHA-256 of the checkpoint that it is about to save; `None` if nothing was to be saved any more.
    pub(super) checkpoint: Option<String>,
    /// Time of the seal, RFC 3339.
    pub(super) time: String,
    /// Entry that it adds to the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) history: Option<HistoryDto<'static>>,
    /// `true` if the checkpoint was saved, or nothing was to be saved.
    #[serde(default)]
    pub(super) saved: bool,
}

#[derive(Serialize, Deserialize)]
struct StoredSeal {
    seal: Seal,
}

impl Seal {
    /// Creates the seal of a run that has taken lines and is about to save a checkpoint.
    pub(super) fn of_takeover(run: &str, lines: usize, closing: &Closing) -> Self {
        let (checkpoint, history) = (Some(closing.checkpoint.clone()), closing.history_of_seal());
        Self { run: run.to_owned(), lines, checkpoint, time: Timestamp::now().to_string(), history, saved: false }
    }

    /// Creates the seal of a journal whose first lines are saved in a checkpoint, or which has none.
    pub(super) fn of_saved(run: &str, lines: usize) -> Self {
        let time = Timestamp::now().to_string();
        Self { run: run.to_owned(), lines, checkpoint: None, time, history: None, saved: true }
    }

    /// Returns the end of the run as the seal has it; `None` if it names no checkpoint.
    pub(super) fn closing(&self) -> Option<Closing> {
        let history = match &self.history {
            Some(HistoryDto { time, update }) => {
                Some(HistoryEntry { time: time.parse().ok()?, update: update.clone().into_owned() })
            }
            None => None,
        };
        Some(Closing { checkpoint: self.checkpoint.clone()?, history })
    }

    /// Returns the content of the object.
    pub(super) fn write(&self) -> Vec<u8> {
        serde_json::to_vec(&StoredSeal { seal: self.clone() }).expect("texts and numbers are always JSON")
    }
}

/// Reads a seal; `None` if the object is none.
pub(super) fn read_seal(content: &[u8]) -> Option<Seal> {
    json::from_slice::<StoredSeal>(content).ok().map(|stored| stored.seal)
}
