//! Resource of a core type: the interface for its registrations, and their results.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bridge::provider::{Alias, AliasParent};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::{ProviderReference, TypeToken, Urn};

use super::inputs::{Inputs, ResolvedValue, without_unknowns};
use crate::registry::sdk;
use config::Options;
use config::diagnostics::Diagnostic;
use config::tree::{InterpolatedString, Node};
use config::types::{CoreConfig, Decoded, TextHandle, decode};
use engine::events::SourceRef;
use engine::{Goal, Halted, Registered, Registrar, RegistrationResult};

/// Implementation of a core type: registers its resources.
#[async_trait]
pub trait Provision: Send + Sync {
    /// Returns the package of the registered resources, with the version that their inputs are written for.
    fn package(&self) -> Package;

    /// Registers all resources of a core resource.
    ///
    /// # Errors
    /// [`ProvisionError`] if some of them are not registered.
    async fn provision(&self, resource: CoreResource<'_>) -> Result<ProvisionResult, ProvisionError>;
}

/// Pulumi package, which a plugin of the stack has to serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Package {
    /// Name of the package.
    pub name: &'static str,
    /// Semantic version of the package.
    pub version: &'static str,
}

impl Package {
    /// Returns a package in the version of its SDK, which the registry describes.
    pub(super) fn of_sdk(name: &'static str) -> Self {
        Self { name, version: sdk::package(name).map_or("", |sdk| &sdk.version) }
    }
}

/// Resource of a core type, ready to be registered.
#[derive(Clone, Copy)]
pub struct CoreResource<'r> {
    /// Name of the stack.
    pub stack: &'r str,
    /// Name of the project.
    pub project: &'r str,
    /// Name of the environment.
    pub environment: &'r str,
    /// Name of the resource: `name`, else the key.
    pub name: &'r str,
    /// URN of the root stack resource, the parent of all others.
    pub root: &'r Urn,
    /// Value of `config`, resolved up to references.
    pub config: &'r Node,
    /// Options of the resource. Only the common options are set.
    pub options: &'r Options,
    /// URNs that `options.dependsOn` refers to.
    pub depends_on: &'r [Urn],
    /// Position of the resource in the file.
    pub source: SourceRef,
    /// Registrar that receives the registrations.
    pub registrar: &'r dyn Registrar,
    /// Function that resolves the references in a text.
    pub resolve_text: &'r (dyn Fn(&InterpolatedString) -> Result<ResolvedValue, Box<Diagnostic>> + Send + Sync),
}

/// Result of the registrations of a core resource.
#[derive(Clone, Debug, Default)]
pub struct ProvisionResult {
    /// Registered resources except the provider. Resources that depend on the core resource depend on these.
    pub registered: Vec<Urn>,
    /// Values that `${resource:KEY.…}` can reference, by name (docs/spec/simple-container.md#8.2).
    pub outputs: BTreeMap<&'static str, ResolvedValue>,
    /// Outputs of the stack that the core resource exports.
    pub stack_outputs: PropertyMap,
}

/// Error that prevents some or all registrations of a core resource.
#[derive(Debug, thiserror::Error)]
pub enum ProvisionError {
    /// The deployment accepts no more registrations.
    #[error(transparent)]
    Halted(#[from] Halted),
    /// A registration failed. Dependent registrations are skipped; the deployment continues with other resources.
    #[error("a registration failed")]
    Failed,
    /// The configuration has an error that is detected only while the program runs.
    #[error("{}", .0.summary)]
    Diagnostic(Box<Diagnostic>),
}

impl From<Box<Diagnostic>> for ProvisionError {
    fn from(diagnostic: Box<Diagnostic>) -> Self {
        Self::Diagnostic(diagnostic)
    }
}

impl CoreResource<'_> {
    /// Decodes `config` into its type.
    ///
    /// # Errors
    /// [`ProvisionError::Diagnostic`]. Errors are reported when the file is read, so none is expected here.
    pub fn decode<C: CoreConfig>(&self) -> Result<Decoded<C>, ProvisionError> {
        let mut diagnostics = Vec::new();
        decode(self.config, &mut diagnostics).ok_or_else(|| match diagnostics.pop() {
            Some(diagnostic) => ProvisionError::Diagnostic(diagnostic.into()),
            None => ProvisionError::Failed,
        })
    }

    /// Returns a text of the `config` with resolved references.
    ///
    /// # Errors
    /// [`ProvisionError::Diagnostic`] if a reference cannot be resolved.
    pub fn text<C>(&self, config: &Decoded<C>, handle: TextHandle) -> Result<ResolvedValue, ProvisionError> {
        Ok((self.resolve_text)(config.text(handle).0)?)
    }

    /// Returns the name of a registered resource: `<base>--<environment>`.
    pub fn qualified_name(&self, base: &str) -> String {
        format!("{base}--{}", self.environment)
    }

    /// Registers the provider of all other resources of the core resource (docs/spec/simple-container.md#7.2). The
    /// options of the core resource do not apply to the provider.
    ///
    /// # Errors
    /// Returns the errors of [`CoreResource::register`].
    pub async fn register_provider<C: CoreConfig>(
        &self,
        package: Package,
        inputs: Inputs,
    ) -> Result<CoreProvider<'_>, ProvisionError> {
        let resource = format!("{}--{}--{}", self.stack, C::TYPE, self.qualified_name(self.name));
        let name = self.qualified_name(&format!("{resource}--provider"));
        let mut goal = self.complete_goal(inputs.into_goal(TypeToken::provider(package.name), &name, &[]));
        goal.version = Some(package.version.to_owned());
        let reference = self.register(goal).await?.as_provider_reference();
        Ok(CoreProvider { resource: self, package, reference })
    }

    /// Completes a goal: sets parent and source, and removes unknown inputs unless this is a preview.
    fn complete_goal(&self, mut goal: Goal) -> Goal {
        if !self.registrar.is_preview() {
            let inputs = std::mem::take(Arc::make_mut(&mut goal.inputs)).into_iter();
            let inputs = inputs.map(|(name, value)| (name, without_unknowns(value)));
            goal.inputs = Arc::new(inputs.filter(|(_, value)| *value != PropertyValue::Null).collect());
        }
        goal.parent = Some(self.root.clone());
        goal.source = Some(self.source);
        goal
    }

    /// Registers a goal. A failed registration is an error, so that dependent registrations are skipped.
    ///
    /// # Errors
    /// [`ProvisionError::Halted`] if the deployment accepts no more registrations; [`ProvisionError::Failed`] if the
    /// registration failed.
    pub async fn register(&self, goal: Goal) -> Result<Registered, ProvisionError> {
        let registered = self.registrar.register(goal).await?;
        match registered.result {
            RegistrationResult::Succeeded | RegistrationResult::Skipped => Ok(registered),
            RegistrationResult::Failed => Err(ProvisionError::Failed),
        }
    }
}

/// Registered provider of a core resource.
#[derive(Clone)]
pub struct CoreProvider<'r> {
    resource: &'r CoreResource<'r>,
    package: Package,
    reference: ProviderReference,
}

impl CoreProvider<'_> {
    /// Returns a goal for a resource of this provider, with the core resource's parent, dependencies, the options that
    /// apply to each of its resources, and what the SDK of the package adds. The goal also depends on `depends_on`.
    pub fn goal(&self, type_token: &str, name: &str, inputs: Inputs, depends_on: &[&Registered]) -> Goal {
        let resource = self.resource;
        let dependencies = depends_on.iter().map(|registered| &registered.urn).chain(resource.depends_on);
        let dependencies: Vec<Urn> = dependencies.cloned().collect();
        let added = sdk::resource(type_token);
        let inputs = match added {
            Some(added) => inputs.completed(added),
            None => inputs,
        };
        let mut goal = resource.complete_goal(inputs.into_goal(TypeToken::new(type_token), name, &dependencies));
        if let Some(added) = added {
            goal.additional_secret_outputs = added.secret_outputs.clone();
            goal.aliases = added.aliases.iter().map(|former| renamed_type_alias(former)).collect();
        }
        goal.provider = Some(self.reference.clone());
        goal.version = Some(self.package.version.to_owned());
        goal.protect = resource.options.protect;
        goal.retain_on_delete = resource.options.retain_on_delete;
        goal.custom_timeouts = resource.options.custom_timeouts;
        goal
    }
}

/// Returns both values, or the more severe error. [`ProvisionError::Failed`] is the least severe, because the
/// deployment continues after it.
pub(super) fn combine<A, B>(
    a: Result<A, ProvisionError>,
    b: Result<B, ProvisionError>,
) -> Result<(A, B), ProvisionError> {
    match (a, b) {
        (Ok(a), Ok(b)) => Ok((a, b)),
        (Err(ProvisionError::Failed), Err(error)) | (Err(error), _) | (_, Err(error)) => Err(error),
    }
}

/// Returns an output of a registered resource, with the resource as its dependency. An output that does not exist is
/// null.
pub fn output(registered: &Registered, property: &str) -> ResolvedValue {
    let missing = if registered.has_all_outputs { PropertyValue::Null } else { PropertyValue::UNKNOWN };
    let value = registered.outputs.get(property).cloned().unwrap_or(missing);
    ResolvedValue { value, dependencies: vec![registered.urn.clone()] }
}

/// Returns the id of a registered resource, with the resource as its dependency.
pub fn id(registered: &Registered) -> ResolvedValue {
    let value = registered.id.as_deref().map_or(PropertyValue::UNKNOWN, PropertyValue::from);
    ResolvedValue { value, dependencies: vec![registered.urn.clone()] }
}

/// Returns the alias that an SDK sends for a renamed type.
fn renamed_type_alias(type_token: &str) -> Alias {
    Alias::Spec {
        name: None,
        type_token: Some(type_token.to_owned()),
        stack: None,
        project: None,
        parent: AliasParent::Same,
    }
}
