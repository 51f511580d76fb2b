//! What a step is, and why one fails: values only.

use std::sync::Arc;

use bridge::host::HostError;
use bridge::provider::{Provider, ProviderError};
use pulumi_proto::property::PropertyMap;
use pulumi_proto::urn::Urn;

use state::{ResourceState, StateError};

use crate::decisions::change::Change;
use crate::decisions::deletions::Undeletable;
use crate::deployment_state::{DeletionReport, DeletionWait};
use crate::entry::Entry;
use crate::events::{SourceRef, StepInfo, StepOp};
use crate::providers::Instance;

/// Something to be done to one entry.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) op: StepOp,
    pub(crate) urn: Urn,
    /// The entry as it is.
    pub(crate) old: Option<Entry>,
    /// The entry as it is to become.
    pub(crate) new: Option<Arc<ResourceState>>,
    pub(crate) change: Change,
    /// What carries it out.
    pub(crate) actor: Actor,
    pub(crate) internal: bool,
    pub(crate) source: Option<SourceRef>,
    /// Part of a replacement that deletes first. A delete leaves the entry with a pending replacement; a create removes that.
    pub(crate) delete_first: bool,
    /// How the entry is carried over; `None`: it is not.
    pub(crate) carry_over: Option<CarryOver>,
    /// Of an import: inputs of the program. Those that are secret are secret in what is read, too.
    pub(crate) known_inputs: Arc<PropertyMap>,
    /// Reports that the entry is gone.
    pub(crate) deletion_report: Option<DeletionReport>,
    /// Deletions by other registrations that must be done before.
    pub(crate) after: Vec<DeletionWait>,
}

/// How an entry is carried over. What it refers to may be at work for another registration.
#[derive(Clone, Debug)]
pub(crate) enum CarryOver {
    /// As it is recorded.
    AsRecorded,
    /// The operation is about to delete it: with these options of the program, all else as it is recorded.
    UntilDeleted(Arc<ResourceState>),
}

/// What carries a step out.
#[derive(Clone, Debug)]
pub(crate) enum Actor {
    /// The engine alone: no provider is called.
    Engine,
    /// The configured provider of a resource.
    Instance(Arc<Instance>),
    /// The new instance of a provider resource, not configured yet.
    Unconfigured(Arc<dyn Provider>),
    /// The provider that is needed could not be started.
    Missing(HostError),
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StepError {
    #[error(transparent)]
    Provider(#[from] ProviderError),
    #[error("the state could not be written")]
    State(#[from] StateError),
    #[error(transparent)]
    Host(HostError),
    #[error("{0}")]
    Refused(String),
    /// The entry stays. Of what is protected the run only fails at its end.
    #[error("{text}")]
    NotDeleted { why: Undeletable, text: String },
}

impl Step {
    /// Nothing but what it is about.
    pub(crate) fn new(op: StepOp, urn: Urn) -> Self {
        Self {
            op,
            urn,
            old: None,
            new: None,
            change: Change::default(),
            actor: Actor::Engine,
            internal: false,
            source: None,
            delete_first: false,
            carry_over: None,
            known_inputs: Arc::default(),
            deletion_report: None,
            after: Vec::new(),
        }
    }

    /// Carries an entry over as it is, under a URN.
    pub(crate) fn carry_over(entry: Entry, urn: Urn) -> Self {
        let state = ResourceState { urn: urn.clone(), ..(*entry.1).clone() };
        let internal = state.is_default_provider();
        let carry_over = Some(CarryOver::AsRecorded);
        Self { old: Some(entry), new: Some(Arc::new(state)), internal, carry_over, ..Self::new(StepOp::Same, urn) }
    }

    /// Whether a failed step is recorded all the same. A Create that returned no id leaves nothing to record.
    pub(crate) fn records_failure(&self, error: &ProviderError) -> bool {
        let ProviderError::Partial { failure, .. } = error else { return false };
        !matches!(self.op, StepOp::Create | StepOp::CreateReplacement) || failure.id.is_some()
    }

    /// What is told of it; `new` is the entry it makes or made.
    pub(crate) fn info(&self, new: Option<Arc<ResourceState>>) -> StepInfo {
        StepInfo {
            op: self.op,
            result: None,
            urn: self.urn.clone(),
            old: self.old.as_ref().map(|(_, state)| Arc::clone(state)),
            new,
            replace_keys: self.change.replace_keys.clone(),
            diffs: self.change.diffs.clone(),
            detailed_diff: self.change.detailed.clone(),
            internal: self.internal,
        }
    }
}
