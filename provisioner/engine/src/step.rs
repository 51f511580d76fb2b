//! Steps and the errors that they fail with: values only.

use std::sync::Arc;
use std::time::Duration;

use bridge::host::HostError;
use bridge::message_text::MessageText;
use bridge::provider::{Provider, ProviderError};
use pulumi_proto::urn::Urn;

use state::{Entry, EntryId, ResourceState, StateError};

use crate::decisions::change::Change;
use crate::decisions::deletions::Undeletable;
use crate::deployment_state::{DeletionReport, DeletionWait};
use crate::events::{SourceRef, StepInfo, StepOp};
use crate::providers::Instance;
use crate::secretness::{GoalInputs, with_secrets_of};

/// Step on one entry, with everything that the step executor needs.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) op: StepOp,
    pub(crate) urn: Urn,
    /// Entry before the step.
    pub(crate) old: Option<Entry>,
    /// Entry after the step, as far as the step generator can decide it.
    pub(crate) new: Option<Arc<ResourceState>>,
    pub(crate) change: Change,
    /// Actor that carries the step out.
    pub(crate) actor: Actor,
    pub(crate) internal: bool,
    /// True for a creation of a resource that an earlier run may have created.
    pub(crate) may_exist: bool,
    pub(crate) source: Option<SourceRef>,
    /// True in a replacement whose old resource is deleted first: the delete step leaves the entry with a pending
    /// replacement, and the create step completes the replacement.
    pub(crate) delete_before_replace: bool,
    /// Form in which the entry is carried over; `None` if it is not carried over.
    pub(crate) carry_over: Option<CarryOver>,
    /// Inputs of the goal; empty if there is none. Values that are secret among them are secret in the result, too.
    pub(crate) goal_inputs: GoalInputs,
    /// Time for which a read waits for a resource that does not exist yet.
    pub(crate) patience: Duration,
    /// Pending deletes that name the resource that the step deletes: they are removed with the entry.
    pub(crate) also_deleted: Vec<EntryId>,
    /// Reports the deletion of the entry.
    pub(crate) deletion_report: Option<DeletionReport>,
    /// Deletions by other registrations that must be done before this step.
    pub(crate) waits_for: Vec<DeletionWait>,
    /// Resources whose decided steps must be done before this step.
    pub(crate) waits_for_steps_of: Vec<Urn>,
}

/// Form in which an entry is carried over. Steps of other registrations may still change its references.
#[derive(Clone, Debug)]
pub(crate) enum CarryOver {
    /// The entry is carried over as it is recorded.
    AsRecorded,
    /// The destroy is about to delete the entry: options that matter to the deletion are those of this goal,
    /// everything else is as recorded.
    UntilDeleted(Arc<ResourceState>),
}

/// Actor that carries a step out.
#[derive(Clone, Debug)]
pub(crate) enum Actor {
    /// Engine alone: no provider is called.
    Engine,
    /// Configured provider of a resource.
    Instance(Arc<Instance>),
    /// New instance of a provider resource, not configured yet.
    Unconfigured(Arc<dyn Provider>),
    /// The provider that the step needs could not be started.
    Missing(HostError),
}

/// Error that a step fails with.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StepError {
    #[error(transparent)]
    Provider(#[from] ProviderError),
    #[error("the state could not be written")]
    State(#[from] StateError),
    #[error(transparent)]
    Host(HostError),
    /// An earlier run may have created the resource.
    #[error("it is not created, because an earlier run was interrupted while creating it, so it may exist")]
    MayExist,
    /// The step cannot be carried out, or the reply of its provider is invalid.
    #[error("{0}")]
    Failed(MessageText),
    /// The entry is not deleted. If it is protected, the run goes on and fails at its end.
    #[error("{text}")]
    NotDeleted { reason: Undeletable, text: MessageText },
}

impl Step {
    /// Creates a step that has only its operation and its URN.
    pub(crate) fn new(op: StepOp, urn: Urn) -> Self {
        Self {
            op,
            urn,
            old: None,
            new: None,
            change: Change::default(),
            actor: Actor::Engine,
            internal: false,
            may_exist: false,
            source: None,
            delete_before_replace: false,
            carry_over: None,
            goal_inputs: GoalInputs::default(),
            patience: Duration::ZERO,
            also_deleted: Vec::new(),
            deletion_report: None,
            waits_for: Vec::new(),
            waits_for_steps_of: Vec::new(),
        }
    }

    /// Returns the state before the step.
    pub(crate) fn old_state(&self) -> Option<&ResourceState> {
        self.old.as_ref().map(|(_, old)| &**old)
    }

    /// Creates a step that carries an entry over as it is, under a URN.
    pub(crate) fn carry_over(entry: Entry, urn: Urn) -> Self {
        let state = ResourceState { urn: urn.clone(), ..(*entry.1).clone() };
        let internal = state.is_default_provider();
        let carry_over = Some(CarryOver::AsRecorded);
        Self { old: Some(entry), new: Some(Arc::new(state)), internal, carry_over, ..Self::new(StepOp::Same, urn) }
    }

    /// Returns whether a failed step is recorded nevertheless: after a partial failure, except of a Create that
    /// returned no id.
    pub(crate) fn is_failure_recorded(&self, error: &ProviderError) -> bool {
        let ProviderError::Partial { failure, .. } = error else { return false };
        !matches!(self.op, StepOp::Create | StepOp::CreateReplacement) || failure.id.is_some()
    }

    /// Returns the description of the step for events; `new` is the entry that the step makes or has made.
    pub(crate) fn info(&self, new: Option<Arc<ResourceState>>) -> StepInfo {
        StepInfo {
            op: self.op,
            result: None,
            urn: self.urn.clone(),
            source: self.source,
            old: self.old.as_ref().map(|(_, state)| with_secrets_of(&self.goal_inputs, state)),
            new,
            replace_keys: self.change.replace_keys.clone(),
            diffs: self.change.diffs.clone(),
            detailed_diff: self.change.detailed.clone(),
            internal: self.internal,
            may_exist: self.may_exist,
        }
    }
}
