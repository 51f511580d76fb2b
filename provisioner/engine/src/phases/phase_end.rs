//! End of a phase of a run.

use crate::context::Context;

/// End of a phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PhaseEnd {
    /// All work of the phase was begun.
    Complete,
    /// The user stopped the phase, which left work undone.
    Stopped,
}

impl PhaseEnd {
    /// Returns the end of a phase that left work undone, or not. The phase is stopped only if the user stopped the run.
    pub(crate) fn of(ctx: &Context, left_undone: bool) -> Self {
        if left_undone && ctx.signals.stop.is_cancelled() { Self::Stopped } else { Self::Complete }
    }

    /// Returns the end of a run that consists of this and another phase.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Complete, Self::Complete) => Self::Complete,
            (Self::Stopped, _) | (_, Self::Stopped) => Self::Stopped,
        }
    }
}
