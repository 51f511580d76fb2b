//! First line of a journal.

use serde::{Deserialize, Serialize};

use crate::format::UpdateOrigin;
use crate::snapshot::SecretsDescription;

/// Version of the format of journals.
pub(super) const VERSION: u32 = 1;

/// First line of a journal as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StoredHeader {
    /// Version of the format.
    pub(super) journal: u32,
    /// Full name of the stack; informational.
    pub(super) stack: Option<String>,
    /// SHA-256 of the checkpoint that the journal starts from; `None` if there was none.
    pub(super) base: Option<String>,
    /// Start of the run, RFC 3339.
    pub(super) started: Option<String>,
    /// Kind of the update; `None` in older journals.
    pub(super) update: Option<String>,
    /// Secrets manager that encrypts the secrets in the journal.
    pub(super) secrets: Option<StoredSecrets>,
    /// Origin of the update; `None` in older journals, and if it was not known when the journal began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) origin: Option<Box<UpdateOrigin>>,
    /// Id of the run, in a segment of the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<String>,
    /// User and host of the run, in a segment of the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) by: Option<String>,
    /// Numbers of the segment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) segment: Option<StoredSegment>,
}

/// Numbers of a segment and of its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredSegment {
    /// Number of the object, from 0.
    pub(super) number: u64,
    /// Number of its first line.
    pub(super) first: usize,
    /// Number of its lines, without a `close` line.
    pub(super) lines: usize,
}

/// Secrets manager as the first line describes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StoredSecrets {
    #[serde(rename = "type")]
    kind: String,
    state: serde_json::Value,
}

impl From<StoredSecrets> for SecretsDescription {
    fn from(stored: StoredSecrets) -> Self {
        Self { kind: stored.kind, state: stored.state }
    }
}

impl From<SecretsDescription> for StoredSecrets {
    fn from(description: SecretsDescription) -> Self {
        Self { kind: description.kind, state: description.state }
    }
}
