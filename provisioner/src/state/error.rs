//! What can go wrong with recorded state.

use super::integrity::IntegrityError;

/// Why state could not be read, kept or written.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// A snapshot breaks its laws.
    #[error(transparent)]
    Integrity(#[from] IntegrityError),
}
