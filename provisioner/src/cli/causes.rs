//! Errors in a chain of causes. A chain skips an error whose variant is transparent.

use std::error::Error;

use provisioner::operation::{OperationError, SetupError};
use state::StateError;
use state::format::FormatError;
use state::secrets::SecretsError;
use state::store::StoreError;

/// Downcasts a cause to an error type, including a boxed one.
pub(super) fn downcast<'e, E: Error + 'static>(cause: &'e (dyn Error + 'static)) -> Option<&'e E> {
    cause.downcast_ref::<E>().or_else(|| cause.downcast_ref::<Box<E>>().map(AsRef::as_ref))
}

/// Returns the error of the secrets of a stack that is the cause, if there is one.
pub(crate) fn secrets_error(error: &anyhow::Error) -> Option<&SecretsError> {
    error.chain().find_map(|cause| match (downcast::<SecretsError>(cause), downcast::<FormatError>(cause)) {
        (Some(error), _) | (None, Some(FormatError::Secret(error))) => Some(error),
        (None, _) => match state_error(cause) {
            Some(StateError::Secrets(error)) => Some(error),
            _ => None,
        },
    })
}

/// Returns the error of a store, including one inside a transparent [`StateError`], which the chain skips.
pub(super) fn error_of_store<'e>(cause: &'e (dyn Error + 'static)) -> Option<&'e StoreError> {
    match state_error(cause) {
        Some(StateError::Store(error)) => Some(error),
        _ => store_error(cause),
    }
}

/// Returns the error of a backend, including one inside a transparent [`SetupError`], which the chain skips.
fn store_error<'e>(cause: &'e (dyn Error + 'static)) -> Option<&'e StoreError> {
    match cause.downcast_ref::<SetupError>() {
        Some(SetupError::Rename(error)) => Some(error),
        _ => downcast::<StoreError>(cause),
    }
}

/// Returns the state error of a cause, including one inside a transparent [`OperationError`], which the chain skips.
fn state_error<'e>(cause: &'e (dyn Error + 'static)) -> Option<&'e StateError> {
    match downcast::<OperationError>(cause) {
        Some(OperationError::State(error)) => Some(error),
        _ => downcast::<StateError>(cause),
    }
}
