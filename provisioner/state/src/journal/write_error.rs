//! Error of writing lines to a file.

use super::error::JournalError;
use crate::error::StateError;
use crate::secrets::SecretsError;

/// Reason why lines could not be written.
pub(super) enum WriteError {
    /// The file cannot be written.
    Journal(JournalError),
    /// The lines cannot be encrypted; nothing was written.
    Secrets(SecretsError),
}

impl From<JournalError> for WriteError {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}

impl From<SecretsError> for WriteError {
    fn from(error: SecretsError) -> Self {
        Self::Secrets(error)
    }
}

impl From<WriteError> for StateError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Journal(error) => error.into(),
            WriteError::Secrets(error) => error.into(),
        }
    }
}
