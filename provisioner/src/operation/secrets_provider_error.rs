//! Reasons why the secrets provider of a stack was not changed.

use std::io;
use std::path::PathBuf;

use bridge::fs::FileError;
use state::secrets::SecretsError;
use state::{SettingsEditError, StateError};

/// Reason why the secrets provider of a stack was not changed.
#[derive(Debug, thiserror::Error)]
pub enum SecretsProviderError {
    /// The state was not changed, and neither was the settings file.
    #[error("the secrets provider was not changed")]
    State(#[from] StateError),
    /// The new key cannot be used. Nothing was changed.
    #[error("the secrets provider was not changed")]
    Secrets(#[from] SecretsError),
    /// The settings file cannot be edited. Nothing was changed.
    #[error("{} cannot be edited, and nothing was changed", path.display())]
    Edit {
        /// Path of the file.
        path: PathBuf,
        /// Reason.
        source: SettingsEditError,
    },
    /// The settings file cannot be read. Nothing was changed.
    #[error("{} cannot be read, and nothing was changed", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The new settings file cannot be written. Nothing was changed.
    #[error("the new settings file cannot be written, and nothing was changed")]
    Unwritable(#[source] FileError),
    /// The state was changed, but the new settings file is not in its place.
    #[error("the state was changed, but {} could not be renamed to {}", from.display(), to.display())]
    NotMoved {
        /// Path of the new file.
        from: PathBuf,
        /// Path of the file that it replaces.
        to: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}
