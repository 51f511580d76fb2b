//! Progress of a run with one URN.

/// Progress of a run with one URN.
///
/// Each transition is a method; a transition that does not apply leaves the status as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ResourceStatus {
    /// The run has done nothing for the URN.
    #[default]
    Untouched,
    /// A registration or a read has begun.
    Registered,
    /// The URN ended without decided steps: its registration failed or was skipped, another resource took its entry
    /// over under a new URN, its entry was deleted, or it was imported and its registration is not decided yet.
    Ended,
    /// The steps are decided and not all done.
    Decided,
    /// The steps of a resource that depends on the URN carry its entry over, and are not done yet.
    CarryingOver,
    /// All steps are done, successful or not.
    Finished,
    /// The steps of a resource that depends on the URN have carried its entry over.
    CarriedOver,
}

impl ResourceStatus {
    /// Begins a registration or a read.
    pub(super) fn register(&mut self) {
        if *self == Self::Untouched {
            *self = Self::Registered;
        }
    }

    /// Marks the steps as decided.
    pub(super) fn decide(&mut self) {
        *self = match *self {
            Self::Untouched | Self::Registered => Self::Decided,
            Self::Ended => Self::Finished,
            decided @ (Self::Decided | Self::CarryingOver | Self::Finished | Self::CarriedOver) => decided,
        }
    }

    /// Marks the entry as carried over by the steps of another resource.
    pub(super) fn carry_over(&mut self) {
        *self = match *self {
            Self::Untouched | Self::Registered | Self::Decided | Self::CarryingOver => Self::CarryingOver,
            Self::Ended | Self::Finished | Self::CarriedOver => Self::CarriedOver,
        }
    }

    /// Marks all steps as done. Also ends a URN that has no steps.
    pub(super) fn finish(&mut self) {
        *self = match *self {
            Self::Untouched | Self::Registered | Self::Ended => Self::Ended,
            Self::Decided | Self::Finished => Self::Finished,
            Self::CarryingOver | Self::CarriedOver => Self::CarriedOver,
        }
    }

    /// Returns whether steps have been decided, by the registration of the URN or by another one.
    pub(super) fn is_decided(self) -> bool {
        match self {
            Self::Decided | Self::CarryingOver | Self::Finished | Self::CarriedOver => true,
            Self::Untouched | Self::Registered | Self::Ended => false,
        }
    }

    /// Returns whether the work on the URN is finished: other jobs no longer wait for it.
    pub(super) fn is_finished(self) -> bool {
        match self {
            Self::Ended | Self::Finished | Self::CarriedOver => true,
            Self::Untouched | Self::Registered | Self::Decided | Self::CarryingOver => false,
        }
    }

    /// Returns whether the steps of another resource carry the entry over, or have done so.
    pub(super) fn is_carried_over(self) -> bool {
        matches!(self, Self::CarryingOver | Self::CarriedOver)
    }
}

#[cfg(test)]
mod tests {
    use super::ResourceStatus::{self, *};

    const ALL: [ResourceStatus; 7] = [Untouched, Registered, Ended, Decided, CarryingOver, Finished, CarriedOver];

    type Transition = fn(&mut ResourceStatus);

    fn after(transition: Transition) -> [ResourceStatus; 7] {
        ALL.map(|mut status| {
            transition(&mut status);
            status
        })
    }

    #[test]
    fn transitions_match_the_table() {
        // From:       Untouched,   Registered,   Ended,       Decided,      CarryingOver, Finished,    CarriedOver
        let rows: [(Transition, [ResourceStatus; 7]); 4] = [
            (ResourceStatus::register, [Registered, Registered, Ended, Decided, CarryingOver, Finished, CarriedOver]),
            (ResourceStatus::decide, [Decided, Decided, Finished, Decided, CarryingOver, Finished, CarriedOver]),
            (
                ResourceStatus::carry_over,
                [CarryingOver, CarryingOver, CarriedOver, CarryingOver, CarryingOver, CarriedOver, CarriedOver],
            ),
            (ResourceStatus::finish, [Ended, Ended, Ended, Finished, CarriedOver, Finished, CarriedOver]),
        ];
        for (transition, expected) in rows {
            assert_eq!(after(transition), expected);
        }
    }

    #[test]
    fn decided_finished_and_carried_over_are_never_reverted() {
        for transition in
            [ResourceStatus::register, ResourceStatus::decide, ResourceStatus::carry_over, ResourceStatus::finish]
        {
            for (before, after) in ALL.into_iter().zip(after(transition)) {
                assert!(!before.is_decided() || after.is_decided(), "{before:?}");
                assert!(!before.is_finished() || after.is_finished(), "{before:?}");
                assert!(!before.is_carried_over() || after.is_carried_over(), "{before:?}");
            }
        }
    }
}
