//! What can go wrong with recorded state.

use super::format::FormatError;
use super::integrity::IntegrityError;
use super::secrets::SecretsError;
use super::store::{StackReference, StoreError};

/// Why state could not be read, kept or written.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// A snapshot breaks its laws.
    #[error(transparent)]
    Integrity(#[from] IntegrityError),
    /// The store could not do its part.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The checkpoint of a stack could not be read.
    #[error("the checkpoint of {stack} cannot be read")]
    Checkpoint {
        /// The stack.
        stack: StackReference,
        /// Why not.
        source: Box<FormatError>,
    },
    /// A secret could not be sealed or opened.
    #[error(transparent)]
    Secrets(#[from] SecretsError),
}
