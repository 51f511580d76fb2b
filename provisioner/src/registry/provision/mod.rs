//! What each core type registers, and what `${resource:…}` can then ask of it.
//!
//! Enters: one resource of a stack, its `config` resolved up to references and everything it refers to registered.
//! Leaves: registrations, through the same [`Registrar`] as those of plugin resources; the values that others can refer
//! to; exports of the stack. Never here: the reading of a `config` ([`super::types`]), the order of resources.

mod inputs;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::{ProviderReference, TypeToken, Urn};

pub use inputs::{Inputs, Resolved};

use super::types::CoreConfig;
use crate::config::Options;
use crate::config::diagnostics::Diagnostic;
use crate::config::placeholder::Template;
use crate::config::yaml::Node;
use crate::config::yaml::de::{Decoded, TextHandle, decode};
use crate::deployment::{Goal, Refused, Registered, Registrar, RegistrationResult};
use crate::events::SourceRef;
use crate::state::CustomTimeouts;

/// What a core type registers.
#[async_trait]
pub trait Provision: Send + Sync {
    /// Registers everything that the resource stands for.
    ///
    /// # Errors
    /// Why what is not registered yet will not be.
    async fn provision(&self, resource: CoreResource<'_>) -> Result<Provisioned, ProvisionError>;
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
    Refused(#[from] Refused),
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

    /// A goal with the parent, the dependencies and the options that apply to each resource of a core type.
    pub fn goal(&self, type_token: &str, name: &str, inputs: Inputs, provider: Option<ProviderReference>) -> Goal {
        let mut goal = inputs.into_goal(TypeToken::new(type_token), name, self.depends_on);
        goal.parent = Some(self.root.clone());
        goal.provider = provider;
        goal.protect = self.options.protect;
        goal.retain_on_delete = self.options.retain_on_delete;
        goal.custom_timeouts = timeouts(self.options);
        goal.source = Some(self.source);
        goal
    }

    /// A goal for the provider resource of a core type, of a version of its package: the options do not apply to it.
    pub fn provider_goal(&self, package: &str, version: &str, name: &str, inputs: Inputs) -> Goal {
        let mut goal = inputs.into_goal(TypeToken::provider(package), name, &[]);
        goal.version = version.to_owned();
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

/// `customTimeouts` in the engine's form.
pub(crate) fn timeouts(options: &Options) -> CustomTimeouts {
    let seconds = |timeout: Option<std::time::Duration>| timeout.map_or(0.0, |timeout| timeout.as_secs_f64());
    let timeouts = options.custom_timeouts;
    CustomTimeouts {
        create: seconds(timeouts.create),
        update: seconds(timeouts.update),
        delete: seconds(timeouts.delete),
        read: seconds(timeouts.read),
    }
}

/// What each core type registers, by name.
#[derive(Clone, Default)]
pub struct ProvisionTable(BTreeMap<&'static str, Arc<dyn Provision>>);

impl ProvisionTable {
    /// The types of the product: the same names as [`super::types::TypeTable::product`].
    pub fn product() -> Self {
        Self::default()
    }

    /// A table of these types.
    pub fn new(types: impl IntoIterator<Item = (&'static str, Arc<dyn Provision>)>) -> Self {
        Self(types.into_iter().collect())
    }

    /// A type by name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Provision>> {
        self.0.get(name)
    }

    /// The names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.0.keys().copied()
    }
}

impl fmt::Debug for ProvisionTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// An output of a registered resource, with where it comes from.
pub fn output(registered: &Registered, property: &str) -> Resolved {
    let value = registered.outputs.get(property).cloned().unwrap_or(PropertyValue::UNKNOWN);
    Resolved { value, dependencies: vec![registered.urn.clone()] }
}

#[cfg(test)]
mod tests {
    use super::super::types::TypeTable;
    use super::*;

    #[test]
    fn both_halves_of_the_map_have_the_same_names() {
        let types: Vec<_> = TypeTable::product().names().collect();
        assert_eq!(ProvisionTable::product().names().collect::<Vec<_>>(), types);
    }
}
