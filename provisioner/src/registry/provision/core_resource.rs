//! One resource of a core type: what it registers with, and what it becomes.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::{ProviderReference, TypeToken, Urn};

use super::inputs::{Inputs, Resolved, without_unknowns};
use config::Options;
use config::diagnostics::Diagnostic;
use config::tree::{Node, Template};
use config::types::{CoreConfig, Decoded, TextHandle, decode};
use engine::events::SourceRef;
use engine::{Goal, Halted, Registered, Registrar, RegistrationResult};

/// What a core type registers.
#[async_trait]
pub trait Provision: Send + Sync {
    /// The package of what it registers, and the version that its inputs are written for.
    fn package(&self) -> Package;

    /// Registers everything that the resource stands for.
    ///
    /// # Errors
    /// Why what is not registered yet will not be.
    async fn provision(&self, resource: CoreResource<'_>) -> Result<Provisioned, ProvisionError>;
}

/// A Pulumi package. A plugin of the stack has to serve it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Package {
    /// Its name.
    pub name: &'static str,
    /// Its version, a semantic one.
    pub version: &'static str,
}

/// One resource of a core type, ready to be registered.
#[derive(Clone, Copy)]
pub struct CoreResource<'r> {
    /// Name of the stack.
    pub stack: &'r str,
    /// Its project.
    pub project: &'r str,
    /// The environment.
    pub environment: &'r str,
    /// `name`, else the key.
    pub name: &'r str,
    /// The root stack resource, parent of all.
    pub root: &'r Urn,
    /// `config`, resolved up to references.
    pub config: &'r Node,
    /// `options`, of which the common ones are set.
    pub options: &'r Options,
    /// What `options.dependsOn` names.
    pub depends_on: &'r [Urn],
    /// Where it was written.
    pub source: SourceRef,
    /// Takes its registrations.
    pub registrar: &'r dyn Registrar,
    /// Fills in the references of a text.
    pub texts: &'r (dyn Fn(&Template) -> Result<Resolved, Box<Diagnostic>> + Send + Sync),
}

/// What a core type has become.
#[derive(Clone, Debug, Default)]
pub struct Provisioned {
    /// Everything it registered, but its provider: what `dependsOn` of others means.
    pub registered: Vec<Urn>,
    /// What `${resource:KEY.…}` can ask, by name (simple-container §8.2).
    pub values: BTreeMap<&'static str, Resolved>,
    /// Outputs of the stack.
    pub exports: PropertyMap,
}

/// Why a core type was not registered, or only in part.
#[derive(Debug, thiserror::Error)]
pub enum ProvisionError {
    /// The deployment has stopped.
    #[error(transparent)]
    Halted(#[from] Halted),
    /// A registration failed, and the rest hangs on it; the run goes on without.
    #[error("a registration failed")]
    Failed,
    /// The user made a mistake that shows only now.
    #[error("{}", .0.summary)]
    Mistake(Box<Diagnostic>),
}

impl From<Box<Diagnostic>> for ProvisionError {
    fn from(diagnostic: Box<Diagnostic>) -> Self {
        Self::Mistake(diagnostic)
    }
}

impl CoreResource<'_> {
    /// The typed `config`.
    ///
    /// # Errors
    /// A mistake; those were told when the file was read, so there is none left.
    pub fn decode<C: CoreConfig>(&self) -> Result<Decoded<C>, ProvisionError> {
        let mut diagnostics = Vec::new();
        decode(self.config, &mut diagnostics).ok_or_else(|| match diagnostics.pop() {
            Some(diagnostic) => ProvisionError::Mistake(diagnostic.into()),
            None => ProvisionError::Failed,
        })
    }

    /// A text of the `config` with its references filled in.
    ///
    /// # Errors
    /// A reference names what is not there.
    pub fn text<C>(&self, config: &Decoded<C>, handle: TextHandle) -> Result<Resolved, ProvisionError> {
        Ok((self.texts)(config.text(handle).0)?)
    }

    /// The name of what is registered: `<base>--<environment>`.
    pub fn qualified(&self, base: &str) -> String {
        format!("{base}--{}", self.environment)
    }

    /// Registers the provider of everything else that the resource stands for (simple-container §7.2). The options do
    /// not apply to it.
    ///
    /// # Errors
    /// As [`CoreResource::register`].
    pub async fn register_provider<C: CoreConfig>(
        &self,
        package: Package,
        inputs: Inputs,
    ) -> Result<CoreProvider<'_>, ProvisionError> {
        let resource = format!("{}--{}--{}", self.stack, C::TYPE, self.qualified(self.name));
        let name = self.qualified(&format!("{resource}--provider"));
        let mut goal = self.settle(inputs.into_goal(TypeToken::provider(package.name), &name, &[]));
        goal.version = Some(package.version.to_owned());
        let reference = self.register(goal).await?.as_provider_reference();
        Ok(CoreProvider { resource: self, package, reference })
    }

    /// What all goals have in common.
    fn settle(&self, mut goal: Goal) -> Goal {
        if !self.registrar.is_preview() {
            let inputs = std::mem::take(Arc::make_mut(&mut goal.inputs)).into_iter();
            let inputs = inputs.map(|(name, value)| (name, without_unknowns(value)));
            goal.inputs = Arc::new(inputs.filter(|(_, value)| *value != PropertyValue::Null).collect());
        }
        goal.parent = Some(self.root.clone());
        goal.source = Some(self.source);
        goal
    }

    /// Registers; a failed registration is an error here, so that what hangs on it is left out.
    ///
    /// # Errors
    /// The deployment has stopped, or the registration failed.
    pub async fn register(&self, goal: Goal) -> Result<Registered, ProvisionError> {
        let registered = self.registrar.register(goal).await?;
        match registered.result {
            RegistrationResult::Succeeded | RegistrationResult::Skipped => Ok(registered),
            RegistrationResult::Failed => Err(ProvisionError::Failed),
        }
    }
}

/// The provider of a core resource, registered.
#[derive(Clone)]
pub struct CoreProvider<'r> {
    resource: &'r CoreResource<'r>,
    package: Package,
    reference: ProviderReference,
}

impl CoreProvider<'_> {
    /// A goal that it serves, with the parent, the dependencies and the options that apply to each resource of a core
    /// type; depends on these, too.
    pub fn goal(&self, type_token: &str, name: &str, inputs: Inputs, depends_on: &[&Registered]) -> Goal {
        let resource = self.resource;
        let after = depends_on.iter().map(|registered| &registered.urn).chain(resource.depends_on);
        let after: Vec<Urn> = after.cloned().collect();
        let mut goal = resource.settle(inputs.into_goal(TypeToken::new(type_token), name, &after));
        goal.provider = Some(self.reference.clone());
        goal.version = Some(self.package.version.to_owned());
        goal.protect = resource.options.protect;
        goal.retain_on_delete = resource.options.retain_on_delete;
        goal.custom_timeouts = resource.options.custom_timeouts;
        goal
    }
}

/// Both, or what keeps the resource from being there: a failed registration counts least, as the run goes on after it.
pub(super) fn both<A, B>(a: Result<A, ProvisionError>, b: Result<B, ProvisionError>) -> Result<(A, B), ProvisionError> {
    match (a, b) {
        (Ok(a), Ok(b)) => Ok((a, b)),
        (Err(ProvisionError::Failed), Err(error)) | (Err(error), _) | (_, Err(error)) => Err(error),
    }
}

/// An output of a registered resource, with where it comes from.
pub fn output(registered: &Registered, property: &str) -> Resolved {
    let value = registered.outputs.get(property).cloned().unwrap_or(PropertyValue::UNKNOWN);
    Resolved { value, dependencies: vec![registered.urn.clone()] }
}

/// The id of a registered resource, with where it comes from.
pub fn id(registered: &Registered) -> Resolved {
    let value = registered.id.as_deref().map_or(PropertyValue::UNKNOWN, PropertyValue::from);
    Resolved { value, dependencies: vec![registered.urn.clone()] }
}
