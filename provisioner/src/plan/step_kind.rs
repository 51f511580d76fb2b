//! Kinds of steps as a plan has them: the steps of a replacement are one kind, in either order.

use std::collections::{BTreeMap, BTreeSet};

use engine::events::StepOp;
use pulumi_proto::urn::Urn;

use super::planned::{PlannedResource, PlannedStep};

/// Operations of steps, for their names in a plan.
const OPS: [StepOp; 15] = [
    StepOp::Same,
    StepOp::Create,
    StepOp::Update,
    StepOp::Delete,
    StepOp::Replace,
    StepOp::CreateReplacement,
    StepOp::DeleteReplaced,
    StepOp::Read,
    StepOp::ReadReplacement,
    StepOp::Discard,
    StepOp::DiscardReplaced,
    StepOp::Refresh,
    StepOp::Import,
    StepOp::ImportReplacement,
    StepOp::RemovePendingReplace,
];

/// Returns the operation with a name; `None` for a name of a later format.
pub(super) fn op_named(name: &str) -> Option<StepOp> {
    OPS.into_iter().find(|op| op.as_str() == name)
}

/// Kind of a step on a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StepKind {
    /// No change.
    Same,
    /// The resource is created.
    Create,
    /// The resource is updated.
    Update,
    /// The resource is replaced: created and deleted, in either order.
    Replace,
    /// The resource is deleted.
    Delete,
    /// The resource is read.
    Read,
    /// The resource leaves the state, and is left alone.
    Discard,
    /// The resource is imported.
    Import,
}

impl StepKind {
    /// Returns the kind of an operation.
    pub fn of(op: StepOp) -> Self {
        match op {
            StepOp::Same | StepOp::Refresh => Self::Same,
            StepOp::Create => Self::Create,
            StepOp::Update => Self::Update,
            StepOp::Replace
            | StepOp::CreateReplacement
            | StepOp::DeleteReplaced
            | StepOp::RemovePendingReplace
            | StepOp::ReadReplacement => Self::Replace,
            StepOp::Delete => Self::Delete,
            StepOp::Read => Self::Read,
            StepOp::Discard | StepOp::DiscardReplaced => Self::Discard,
            StepOp::Import | StepOp::ImportReplacement => Self::Import,
        }
    }

    /// Returns whether a step of this kind changes a resource or the list of resources.
    pub fn is_change(self) -> bool {
        match self {
            Self::Same | Self::Read => false,
            Self::Create | Self::Update | Self::Replace | Self::Delete | Self::Discard | Self::Import => true,
        }
    }

    /// Returns the participle for messages: `created`.
    pub fn participle(self) -> &'static str {
        match self {
            Self::Same => "left as it is",
            Self::Create => "created",
            Self::Update => "updated",
            Self::Replace => "replaced",
            Self::Delete => "deleted",
            Self::Read => "read",
            Self::Discard => "removed from the state",
            Self::Import => "imported",
        }
    }
}

/// Kinds of the planned steps, by URN.
#[derive(Clone, Debug, Default)]
pub struct StepKinds(BTreeMap<Urn, BTreeSet<StepKind>>);

impl StepKinds {
    /// Returns the kinds of the steps of planned resources, steps in the registrations of other resources among them.
    pub fn of(resources: &[PlannedResource]) -> Self {
        let mut kinds = Self::default();
        for resource in resources {
            let registered = resource.registration.iter().flat_map(|registration| &registration.steps);
            for PlannedStep { op, urn } in registered.chain(&resource.steps) {
                kinds.0.entry(urn.clone()).or_default().insert(StepKind::of(*op));
            }
        }
        kinds
    }

    /// Returns the kinds of the steps on a resource.
    pub fn of_urn(&self, urn: &Urn) -> impl Iterator<Item = StepKind> {
        self.0.get(urn).into_iter().flatten().copied()
    }

    /// Returns whether there is a step of a kind on a resource.
    pub fn contains(&self, urn: &Urn, kind: StepKind) -> bool {
        self.0.get(urn).is_some_and(|kinds| kinds.contains(&kind))
    }

    /// Returns all steps: URN and kind, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&Urn, StepKind)> {
        self.0.iter().flat_map(|(urn, kinds)| kinds.iter().map(move |kind| (urn, *kind)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_has_a_name_that_leads_back_to_it() {
        for op in OPS {
            assert_eq!(op_named(op.as_str()), Some(op));
        }
        assert_eq!(op_named("rebuild"), None);
    }

    #[test]
    fn both_orders_of_a_replacement_are_one_kind() {
        let ops = [StepOp::CreateReplacement, StepOp::Replace, StepOp::DeleteReplaced];
        assert!(ops.into_iter().all(|op| StepKind::of(op) == StepKind::Replace));
        assert!(StepKind::Replace.is_change() && !StepKind::Read.is_change() && !StepKind::Same.is_change());
    }
}
