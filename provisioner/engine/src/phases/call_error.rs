//! Why a function or a method has no result.

use bridge::provider::ProviderError;

use crate::registrar::Halted;

/// Why a function or a method has no result.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The provider refused it or failed. This has not been reported.
    Provider(ProviderError),
    /// The run goes no further.
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
