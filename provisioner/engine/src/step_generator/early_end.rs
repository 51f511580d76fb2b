//! Early end of a registration, before its steps.

use pulumi_proto::urn::Urn;

use crate::context::Context;
use crate::deployment_state::Incomplete;
use crate::registrar::{Halted, Registered, RegistrationResult};
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
    /// Ends a registration that failed, after which the run continues with resources that do not depend on it.
    pub(crate) fn failed(ctx: &Context, urn: &Urn) -> Self {
        ctx.shared.finish(urn);
        ctx.state().mark_incomplete(urn, Incomplete::Failed);
        Self::Reply(Box::new(Registered::without_outputs(urn.clone(), RegistrationResult::Failed)))
    }

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
