//! What a step is, and why one fails: values only.

use std::sync::Arc;

use bridge::host::HostError;
use bridge::provider::{Provider, ProviderError};
use pulumi_proto::property::PropertyMap;
use pulumi_proto::urn::Urn;
use tokio::sync::watch;

use crate::events::{SourceRef, StepInfo, StepOp};
use crate::state::{ResourceState, StateError};

use super::decide::change::Change;
use super::decide::condemn::Entry;
use super::decide::deletes::Undeletable;
use super::providers::Instance;

/// Something to be done to one entry.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) op: StepOp,
    pub(super) urn: Urn,
    /// The entry as it is.
    pub(super) old: Option<Entry>,
    /// The entry as it is to become.
    pub(super) new: Option<Arc<ResourceState>>,
    pub(super) change: Change,
    /// Who does it: the provider of a resource, the new instance of a provider resource; nobody for a component.
    pub(super) actor: Actor,
    pub(super) internal: bool,
    pub(super) source: Option<SourceRef>,
    /// Part of a replacement whose old one goes first. Of a delete: the entry stays as a promise of the new one. Of a
    /// create: the promise goes when the new one comes.
    pub(super) delete_first: bool,
    /// The entry is carried over as it is: what it refers to may be at work in another chain.
    pub(super) carried: bool,
    /// Of what is carried over: what the program asks of it, where it is about to be deleted.
    pub(super) doomed_as: Option<Arc<ResourceState>>,
    /// Of an import: inputs of which those that are secret are secret in what is read, too.
    pub(super) known_inputs: Arc<PropertyMap>,
    /// Told once the entry is gone.
    pub(super) gone: Option<watch::Sender<bool>>,
    /// Entries that other chains delete and that must be gone before.
    pub(super) after: Vec<watch::Receiver<bool>>,
}

/// Who carries a step out.
#[derive(Clone, Debug)]
pub(super) enum Actor {
    /// Nobody is asked.
    Nobody,
    /// The configured provider of a resource.
    Instance(Arc<Instance>),
    /// The new instance of a provider resource, not configured yet.
    Parked(Arc<dyn Provider>),
    /// The provider that is needed could not be started.
    Missing(HostError),
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum StepError {
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
    pub(super) fn new(op: StepOp, urn: Urn) -> Self {
        Self {
            op,
            urn,
            old: None,
            new: None,
            change: Change::default(),
            actor: Actor::Nobody,
            internal: false,
            source: None,
            delete_first: false,
            carried: false,
            doomed_as: None,
            known_inputs: Arc::default(),
            gone: None,
            after: Vec::new(),
        }
    }

    /// Carries an entry over as it is, under a URN.
    pub(super) fn carry(entry: Entry, urn: Urn) -> Self {
        let state = ResourceState { urn: urn.clone(), ..(*entry.1).clone() };
        let internal = state.is_default_provider();
        Self { old: Some(entry), new: Some(Arc::new(state)), internal, carried: true, ..Self::new(StepOp::Same, urn) }
    }

    /// Whether what failed is recorded all the same: a Create that gave no id left nothing that could be.
    pub(super) fn leaves_something(&self, error: &ProviderError) -> bool {
        let ProviderError::Partial { failure, .. } = error else { return false };
        !matches!(self.op, StepOp::Create | StepOp::CreateReplacement) || !failure.id.is_empty()
    }

    /// What is told of it; `new` is the entry it makes or made.
    pub(super) fn info(&self, new: Option<Arc<ResourceState>>) -> StepInfo {
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
