//! Steps that a provider publishes for views, and their outcome for each view.

use std::sync::Arc;
use std::time::Instant;

use bridge::provider::{ViewFailure, ViewOp};
use hashbrown::HashMap;
use pulumi_proto::urn::Urn;
use state::{Effect, EntryId, ResourceState};

use crate::deployment_state::DeploymentState;
use crate::events::StepInfo;

/// Step of a view that its provider has published.
#[derive(Clone, Debug)]
pub(super) struct Published {
    pub(super) info: Arc<StepInfo>,
    /// Operation on the view.
    pub(super) op: ViewOp,
    pub(super) failure: Option<ViewFailure>,
    /// Entry id of a new view.
    pub(super) entry: EntryId,
    pub(super) started: Instant,
    pub(super) outcome: ViewOutcome,
}

/// Outcome of a step of a view in the record of the step of its resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ViewOutcome {
    /// The step has no outcome: no record was made, or the record has no place for the view.
    NotRecorded,
    /// The URN of the view is that of another resource, so the view is not recorded.
    UrnTaken,
    /// The outcome of the step is recorded.
    Recorded,
}

/// Returns the outcome of steps for each of their views: the index of its last step, and its new state, or `None` if it
/// is deleted.
pub(super) fn outcomes(steps: &[Published]) -> Vec<(usize, Option<&Arc<ResourceState>>)> {
    let mut outcomes: Vec<(usize, Option<&Arc<ResourceState>>)> = Vec::new();
    let mut places: HashMap<&Urn, usize> = HashMap::new();
    let done = |step: &Published| step.failure.as_ref().is_none_or(|failure| failure.partial);
    for (number, step) in steps.iter().enumerate().filter(|(_, step)| done(step)) {
        let before = places.get(&step.info.urn).and_then(|place| outcomes.get_mut(*place));
        let outcome = match step.op {
            // A replacement is published beside its two halves.
            ViewOp::Replace => continue,
            // The old half of a replacement may follow the new half.
            ViewOp::DeleteReplaced | ViewOp::DiscardReplaced
                if before.as_ref().is_some_and(|(_, new)| new.is_some()) =>
            {
                continue;
            }
            ViewOp::Delete
            | ViewOp::DeleteReplaced
            | ViewOp::ReadDiscard
            | ViewOp::DiscardReplaced
            | ViewOp::RemovePendingReplace => None,
            ViewOp::Same
            | ViewOp::Create
            | ViewOp::Update
            | ViewOp::CreateReplacement
            | ViewOp::Read
            | ViewOp::ReadReplacement
            | ViewOp::Refresh
            | ViewOp::Import
            | ViewOp::ImportReplacement => step.info.new.as_ref(),
        };
        match before {
            Some(before) => *before = (number, outcome),
            None => {
                places.insert(&step.info.urn, outcomes.len());
                outcomes.push((number, outcome));
            }
        }
    }
    outcomes
}

/// Returns the key of a view among those of its resource, independent of the URN of the resource.
pub(super) fn name_of(urn: &Urn) -> (&str, &str) {
    (urn.type_token(), urn.name())
}

/// Returns the state that the effects of a record give to an entry, if they rewrite it.
pub(super) fn rewritten(effects: &[Effect], entry: EntryId) -> Option<&Arc<ResourceState>> {
    effects.iter().rev().find_map(|effect| match effect {
        Effect::Rewrite(id, state) if *id == entry => Some(state),
        _ => None,
    })
}

/// Returns whether a URN is that of another live entry after a record, or of a registered resource.
pub(super) fn is_taken(state: &DeploymentState, effects: &[Effect], urn: &Urn) -> bool {
    let leaves = |entry: EntryId| {
        let removed = effects.iter().any(|effect| matches!(effect, Effect::Remove(id) if *id == entry));
        removed || rewritten(effects, entry).is_some_and(|state| state.delete || state.urn != *urn)
    };
    let mut live = state.ledger().entries_of(urn).filter(|(_, state)| !state.delete);
    state.inheritance(urn).is_some() || live.any(|(id, _)| !leaves(id))
}
