//! Failures of keys.

use state::secrets::{KeyFailure, KeyFailureKind};

/// Creates a failure.
pub(super) fn failure(kind: KeyFailureKind, message: impl Into<String>) -> KeyFailure {
    KeyFailure { kind, message: message.into() }
}
