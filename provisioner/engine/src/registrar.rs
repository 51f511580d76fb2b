//! The interface through which a program drives a deployment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use bridge::host::PackageTypes;
use pulumi_proto::property::PropertyMap;
use pulumi_proto::resource_id::{ReferenceId, ResourceId};
use pulumi_proto::urn::{ProviderReference, Urn};

use state::ResourceState;

use crate::goal::{Goal, InvokeGoal, ReadGoal};
use crate::reporter::ErrorReported;

/// What a program may ask of a deployment. Every call returns once its outcome is decided and recorded.
///
/// The program registers a resource when all that it refers to is known, and many at once; scope (targets, previews,
/// continue-on-error, what destroy means) belongs to the deployment alone.
#[async_trait]
pub trait Registrar: Send + Sync {
    /// Whether this is a preview: unknown inputs are allowed, and outputs may be unknown.
    fn is_preview(&self) -> bool;

    /// What the schemas of these plugins say of the types of their packages, by plugin; components are to be registered as
    /// [`Goal::remote`]. An error ends the program, as with [`Registrar::register`].
    async fn type_facts(&self, plugins: BTreeSet<String>) -> Result<BTreeMap<String, PackageTypes>, Halted>;

    /// Registers a resource. An error ends the program: register nothing more that is not under way.
    async fn register(&self, goal: Goal) -> Result<Registered, Halted>;

    /// Says what the outputs of a component, or of the stack, are.
    async fn register_outputs(&self, urn: &Urn, outputs: PropertyMap) -> Result<(), Halted>;

    /// Reads a resource that the stack does not own.
    async fn read(&self, goal: ReadGoal) -> Result<Registered, Halted>;

    /// Calls a function of a provider.
    async fn invoke(&self, goal: InvokeGoal) -> Result<PropertyMap, Halted>;
}

/// Why the deployment takes no more registrations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the deployment has stopped")]
pub enum Halted {
    /// It has failed. The error has been reported as an event.
    Failed(ErrorReported),
    /// The user stopped it, or it has ended.
    Stopped,
}

impl From<ErrorReported> for Halted {
    fn from(error: ErrorReported) -> Self {
        Self::Failed(error)
    }
}

/// What became of a registration.
#[derive(Clone, Debug)]
pub struct Registered {
    /// The resource's URN.
    pub urn: Urn,
    /// Its id; `None`: unknown (a preview), or a component.
    pub id: Option<ResourceId>,
    /// Its outputs. In a preview, what is missing from them is unknown.
    pub outputs: Arc<PropertyMap>,
    /// Output name to the resources that it depends on; only of components that their plugin constructed.
    pub dependencies: BTreeMap<String, Vec<Urn>>,
    /// How it went.
    pub result: RegistrationResult,
}

impl Registered {
    /// One of which nothing is known.
    pub fn without_outputs(urn: Urn, result: RegistrationResult) -> Self {
        Self { urn, id: None, outputs: Arc::default(), dependencies: BTreeMap::new(), result }
    }

    /// One that is there, or would be, as its entry says.
    pub(crate) fn as_recorded(urn: Urn, state: &ResourceState) -> Self {
        Self {
            id: ReferenceId::from(state.id.as_ref()).known().cloned(),
            outputs: Arc::clone(&state.outputs),
            ..Self::without_outputs(urn, RegistrationResult::Succeeded)
        }
    }

    /// The reference to this resource, where it is a provider resource; an unknown id becomes the sentinel.
    pub fn as_provider_reference(&self) -> ProviderReference {
        ProviderReference::new(self.urn.clone(), self.id.as_ref())
    }
}

/// How a registration went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegistrationResult {
    /// Done (or, in a preview, would be done).
    Succeeded,
    /// Failed, and the run goes on with what does not hang on it.
    Failed,
    /// Not attempted: out of scope, or something it hangs on failed. All its outputs are unknown.
    Skipped,
}
