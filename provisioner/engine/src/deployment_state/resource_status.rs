//! How far a run has come with one URN.

/// How far a run has come with one URN.
///
/// Each transition is a method; a transition that does not apply leaves the status as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ResourceStatus {
    /// Nothing has been done for it.
    #[default]
    Untouched,
    /// A registration or a read of it has begun.
    Registered,
    /// It ended without steps being decided for it: its registration failed or was skipped, another resource took its
    /// entry over under a new name, or its entry was deleted.
    Ended,
    /// Its steps are decided and not all done.
    Decided,
    /// The steps of a resource that depends on it carry its entry over, and are not done yet.
    CarryingOver,
    /// All its steps are done, well or badly.
    Settled,
    /// The steps of a resource that depends on it have carried its entry over.
    CarriedOver,
}

impl ResourceStatus {
    /// A registration or a read begins.
    pub(super) fn register(&mut self) {
        if *self == Self::Untouched {
            *self = Self::Registered;
        }
    }

    /// Its steps are decided.
    pub(super) fn decide(&mut self) {
        *self = match *self {
            Self::Untouched | Self::Registered => Self::Decided,
            Self::Ended => Self::Settled,
            decided @ (Self::Decided | Self::CarryingOver | Self::Settled | Self::CarriedOver) => decided,
        }
    }

    /// Another resource's steps are to carry its entry over.
    pub(super) fn carry_over(&mut self) {
        *self = match *self {
            Self::Untouched | Self::Registered | Self::Decided | Self::CarryingOver => Self::CarryingOver,
            Self::Ended | Self::Settled | Self::CarriedOver => Self::CarriedOver,
        }
    }

    /// All its steps are done, or it has none.
    pub(super) fn settle(&mut self) {
        *self = match *self {
            Self::Untouched | Self::Registered | Self::Ended => Self::Ended,
            Self::Decided | Self::Settled => Self::Settled,
            Self::CarryingOver | Self::CarriedOver => Self::CarriedOver,
        }
    }

    /// Whether steps have been decided for it, by its own registration or by another one.
    pub(super) fn is_decided(self) -> bool {
        match self {
            Self::Decided | Self::CarryingOver | Self::Settled | Self::CarriedOver => true,
            Self::Untouched | Self::Registered | Self::Ended => false,
        }
    }

    /// Whether nothing more is done for it.
    pub(super) fn is_settled(self) -> bool {
        match self {
            Self::Ended | Self::Settled | Self::CarriedOver => true,
            Self::Untouched | Self::Registered | Self::Decided | Self::CarryingOver => false,
        }
    }

    /// Whether another resource's steps carry its entry over, or have done so.
    pub(super) fn is_carried_over(self) -> bool {
        matches!(self, Self::CarryingOver | Self::CarriedOver)
    }
}

#[cfg(test)]
mod tests {
    use super::ResourceStatus::{self, *};

    const ALL: [ResourceStatus; 7] = [Untouched, Registered, Ended, Decided, CarryingOver, Settled, CarriedOver];

    type Transition = fn(&mut ResourceStatus);

    fn after(transition: Transition) -> [ResourceStatus; 7] {
        ALL.map(|mut status| {
            transition(&mut status);
            status
        })
    }

    #[test]
    fn each_transition_leads_from_every_status_to_one() {
        // From:       Untouched,   Registered,   Ended,       Decided,      CarryingOver, Settled,     CarriedOver
        let rows: [(Transition, [ResourceStatus; 7]); 4] = [
            (ResourceStatus::register, [Registered, Registered, Ended, Decided, CarryingOver, Settled, CarriedOver]),
            (ResourceStatus::decide, [Decided, Decided, Settled, Decided, CarryingOver, Settled, CarriedOver]),
            (
                ResourceStatus::carry_over,
                [CarryingOver, CarryingOver, CarriedOver, CarryingOver, CarryingOver, CarriedOver, CarriedOver],
            ),
            (ResourceStatus::settle, [Ended, Ended, Ended, Settled, CarriedOver, Settled, CarriedOver]),
        ];
        for (transition, expected) in rows {
            assert_eq!(after(transition), expected);
        }
    }

    #[test]
    fn what_is_decided_settled_or_carried_over_stays_so() {
        for transition in
            [ResourceStatus::register, ResourceStatus::decide, ResourceStatus::carry_over, ResourceStatus::settle]
        {
            for (before, after) in ALL.into_iter().zip(after(transition)) {
                assert!(!before.is_decided() || after.is_decided(), "{before:?}");
                assert!(!before.is_settled() || after.is_settled(), "{before:?}");
                assert!(!before.is_carried_over() || after.is_carried_over(), "{before:?}");
            }
        }
    }
}
