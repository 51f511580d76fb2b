//! End of a phase of a run, and of a registration that failed.

use pulumi_proto::urn::Urn;

use crate::context::Context;
use crate::step_generator::EarlyEnd;

/// End of a phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PhaseEnd {
    /// The phase left no work undone, or the user did not stop the run. Errors are in the reporter.
    Complete,
    /// The user stopped the run, and the phase left work undone.
    Stopped,
}

impl PhaseEnd {
    /// Returns the end of a phase. `has_undone_work` is true if the phase left work undone. The phase is stopped only
    /// if the user stopped the run, too.
    pub(crate) fn of(ctx: &Context, has_undone_work: bool) -> Self {
        if has_undone_work && ctx.signals.stop.is_cancelled() { Self::Stopped } else { Self::Complete }
    }

    /// Returns the end of the program phase: stopped if the user stopped the run, because the program may then lack
    /// registrations.
    pub(crate) fn of_program(ctx: &Context) -> Self {
        Self::of(ctx, true)
    }

    /// Returns the end of a run that consists of this and another phase.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Complete, Self::Complete) => Self::Complete,
            (Self::Stopped, _) | (_, Self::Stopped) => Self::Stopped,
        }
    }
}

/// Finishes a registration that failed. Returns a reply if the run continues on errors, else ends the run.
pub(super) fn failed(ctx: &Context, urn: &Urn) -> EarlyEnd {
    if ctx.request.options.continue_on_error {
        EarlyEnd::failed(ctx, urn)
    } else {
        ctx.shared.finish(urn);
        EarlyEnd::Halted(ctx.halted())
    }
}
