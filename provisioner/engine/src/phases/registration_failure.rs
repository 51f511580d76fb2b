//! End of a registration that failed.

use crate::context::Context;
use crate::deployment_state::Incomplete;
use crate::registrar::{Registered, RegistrationResult};
use crate::step_generator::EarlyEnd;
use pulumi_proto::urn::Urn;

/// Finishes a registration that failed. Returns a reply if the run continues on errors, else ends the run.
pub(super) fn failed(ctx: &Context, urn: &Urn) -> EarlyEnd {
    ctx.shared.finish(urn);
    if ctx.options.continue_on_error {
        ctx.state().mark_incomplete(urn, Incomplete::Failed);
        EarlyEnd::Reply(Box::new(Registered::without_outputs(urn.clone(), RegistrationResult::Failed)))
    } else {
        EarlyEnd::Halted(ctx.halted())
    }
}
