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

/// Resources that a program will register.
#[derive(Clone, Debug, Default)]
pub struct Announcement {
    /// Goals with the types, names, parents, aliases, `protect`, `retainOnDelete`, ids to import and [`Goal::remote`] of the
    /// resources. Inputs may be missing.
    pub goals: Vec<Goal>,
    /// Packages of which the program may register resources that the goals do not have.
    pub incomplete_packages: BTreeSet<String>,
}

/// Requests of a program to a deployment. Each call returns once its outcome is decided and recorded.
///
/// The program registers a resource once all its references are known, and may register many at once. Targets,
/// previews, continue-on-error and the meaning of destroy are up to the deployment.
#[async_trait]
pub trait Registrar: Send + Sync {
    /// Returns whether the run is a preview: unknown inputs are allowed, and outputs may be unknown.
    fn is_preview(&self) -> bool;

    /// Returns whether registrations change resources: false in a preview, a refresh and a destroy.
    fn changes_resources(&self) -> bool;

    /// Returns the number of resources that the deployment registers at the same time. The others wait for a slot, so a program
    /// gains nothing from registering many more at once.
    fn parallel(&self) -> usize;

    /// Returns the types of the packages of these plugins, from their schemas, by plugin. Components among the types
    /// must be registered with [`Goal::remote`].
    ///
    /// # Errors
    /// [`Halted`] ends the program, as with [`Registrar::register`].
    async fn package_types(&self, plugins: BTreeSet<String>) -> Result<BTreeMap<String, PackageTypes>, Halted>;

    /// Announces the resources that the program will register. A resource may have to be deleted before its registration,
    /// together with one that it depends on, and one that the program no longer has before its end.
    fn announce(&self, _announcement: Announcement) {}

    /// Registers a resource.
    ///
    /// # Errors
    /// [`Halted`] ends the program: it must begin no further registrations.
    async fn register(&self, goal: Goal) -> Result<Registered, Halted>;

    /// Registers the outputs of a component, or of the stack.
    async fn register_outputs(&self, urn: &Urn, outputs: PropertyMap) -> Result<(), Halted>;

    /// Reads a resource that the stack does not own.
    async fn read(&self, goal: ReadGoal) -> Result<Registered, Halted>;

    /// Calls a function of a provider.
    async fn invoke(&self, goal: InvokeGoal) -> Result<PropertyMap, Halted>;
}

/// Reason that the deployment accepts no more registrations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the deployment has stopped")]
pub enum Halted {
    /// The deployment has failed. The error has been reported as an event.
    Failed(ErrorReported),
    /// The user stopped the deployment, or it has ended.
    Stopped,
}

impl From<ErrorReported> for Halted {
    fn from(error: ErrorReported) -> Self {
        Self::Failed(error)
    }
}

/// Result of a registration or a read.
#[derive(Clone, Debug)]
pub struct Registered {
    /// URN of the resource.
    pub urn: Urn,
    /// Id of the resource; `None` for an unknown id (in a preview) and for a component.
    pub id: Option<ResourceId>,
    /// Outputs of the resource.
    pub outputs: Arc<PropertyMap>,
    /// True if `outputs` has every output. False in a preview of a resource that would be created or changed, where
    /// missing outputs are unknown.
    pub has_all_outputs: bool,
    /// Resources that each output depends on, by output name; only for components that their plugin constructed.
    pub dependencies: BTreeMap<String, Vec<Urn>>,
    /// Outcome of the registration.
    pub result: RegistrationResult,
}

impl Registered {
    /// Creates a result without id and outputs.
    pub fn without_outputs(urn: Urn, result: RegistrationResult) -> Self {
        let (outputs, dependencies) = (Arc::default(), BTreeMap::new());
        Self { urn, id: None, outputs, has_all_outputs: false, dependencies, result }
    }

    /// Creates the result of a resource that exists, or would exist, with the id and the outputs of its entry.
    pub(crate) fn as_recorded(urn: Urn, state: &ResourceState) -> Self {
        Self {
            id: ReferenceId::from(state.id.as_ref()).known().cloned(),
            outputs: Arc::clone(&state.outputs),
            has_all_outputs: true,
            ..Self::without_outputs(urn, RegistrationResult::Succeeded)
        }
    }

    /// Returns the provider reference of a provider resource. An unknown id becomes the sentinel of unknown values.
    pub fn as_provider_reference(&self) -> ProviderReference {
        ProviderReference::new(self.urn.clone(), self.id.as_ref())
    }
}

/// Outcome of a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegistrationResult {
    /// The steps were carried out, or would be in a preview.
    Succeeded,
    /// The registration failed. The run goes on with resources that do not depend on it.
    Failed,
    /// The registration had no effect: the resource is out of scope, the operation does not create it, or a dependency
    /// failed or was skipped. All outputs are unknown.
    Skipped,
}
