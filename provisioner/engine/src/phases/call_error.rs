//! Error of a call of a function or a method.

use bridge::provider::ProviderError;

use crate::registrar::Halted;

/// Error of a call of a function or a method.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The provider rejected the arguments or failed. The error has not been reported.
    Provider(ProviderError),
    /// The run is halted.
    Halted(Halted),
}

impl From<ProviderError> for CallError {
    fn from(error: ProviderError) -> Self {
        Self::Provider(error)
    }
}

impl From<Halted> for CallError {
    fn from(halted: Halted) -> Self {
        Self::Halted(halted)
    }
}
