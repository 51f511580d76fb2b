//! Seals: marks that a run has taken over the journal of another one.

use bridge::json;
use serde::{Deserialize, Serialize};

use super::dto::HistoryDto;

/// Mark that another run has taken a journal over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seal {
    /// Id of the run that has taken the journal over.
    pub(super) run: String,
    /// Number of the last line that it has taken.
    pub(super) lines: usize,
    /// SHA-256 of the checkpoint that it is about to save; `None` if nothing was to be saved.
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
    /// Returns the content of the object.
    pub(super) fn write(&self) -> Vec<u8> {
        serde_json::to_vec(&StoredSeal { seal: self.clone() }).expect("texts and numbers are always JSON")
    }
}

/// Reads a seal; `None` if the object is none.
pub(super) fn read_seal(content: &[u8]) -> Option<Seal> {
    json::from_slice::<StoredSeal>(content).ok().map(|stored| stored.seal)
}
