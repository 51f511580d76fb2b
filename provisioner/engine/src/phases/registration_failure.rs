//! End of a registration that failed.

use crate::context::Context;
use crate::step_generator::EarlyEnd;
use pulumi_proto::urn::Urn;

/// Finishes a registration that failed. Returns a reply if the run continues on errors, else ends the run.
pub(super) fn failed(ctx: &Context, urn: &Urn) -> EarlyEnd {
    if ctx.request.options.continue_on_error {
        EarlyEnd::failed(ctx, urn)
    } else {
        ctx.shared.finish(urn);
        EarlyEnd::Halted(ctx.halted())
    }
}
