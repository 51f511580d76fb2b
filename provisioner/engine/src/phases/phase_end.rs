//! How a phase of a run ends.

use crate::context::Context;

/// How a phase of a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PhaseEnd {
    /// All its work was begun.
    Complete,
    /// The user stopped it with work left undone.
    Stopped,
}

impl PhaseEnd {
    /// Returns how a phase ends that left work undone, or not: only the user's stop counts.
    pub(crate) fn of(ctx: &Context, left_undone: bool) -> Self {
        if left_undone && ctx.signals.stop.is_cancelled() { Self::Stopped } else { Self::Complete }
    }

    /// Returns how a run ends of which this and another phase are parts.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Complete, Self::Complete) => Self::Complete,
            (Self::Stopped, _) | (_, Self::Stopped) => Self::Stopped,
        }
    }
}
