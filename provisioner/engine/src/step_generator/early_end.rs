//! Early end of a registration, before its steps.

use crate::registrar::{Halted, Registered};
use crate::reporter::ErrorReported;

/// Early end of a registration, before its steps.
#[derive(Debug)]
pub(crate) enum EarlyEnd {
    /// The reply is known: the resource is skipped, or the registration failed and the run continues.
    Reply(Box<Registered>),
    /// The run is halted.
    Halted(Halted),
}

impl EarlyEnd {
    /// Returns the reply to the registration.
    ///
    /// # Errors
    /// [`Halted`] if the run is halted.
    pub(crate) fn into_reply(self) -> Result<Registered, Halted> {
        match self {
            Self::Reply(reply) => Ok(*reply),
            Self::Halted(halted) => Err(halted),
        }
    }
}

impl From<Halted> for EarlyEnd {
    fn from(halted: Halted) -> Self {
        Self::Halted(halted)
    }
}

impl From<ErrorReported> for EarlyEnd {
    fn from(error: ErrorReported) -> Self {
        Self::Halted(error.into())
    }
}
