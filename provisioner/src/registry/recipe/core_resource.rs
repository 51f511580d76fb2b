//! Resource of a core type, ready to be registered, and the result of its registrations.

use std::collections::BTreeMap;

use pulumi_proto::property::PropertyMap;
use pulumi_proto::urn::Urn;

use super::effects::Effects;
use super::resolved::ResolvedValue;
use super::resource_names::ResourceNames;
use super::shared_registrations::SharedRegistrations;
use config::Options;
use config::diagnostics::Diagnostic;
use config::tree::{InterpolatedString, Node};
use engine::events::SourceRef;
use engine::{Halted, Registrar};

/// Resource of a core type, ready to be registered.
#[derive(Clone, Copy)]
pub struct CoreResource<'r> {
    /// Names of the resource and of what it belongs to.
    pub place: ResourceNames<'r>,
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
    /// Registrations that several recipes of the run share.
    pub shared: &'r SharedRegistrations,
    /// Effects that are no resources.
    pub effects: &'r dyn Effects,
    /// Function that resolves the references in a text.
    pub resolve_text: &'r (dyn Fn(&InterpolatedString) -> Result<ResolvedValue, Box<Diagnostic>> + Send + Sync),
}

/// Result of the registrations of a core resource.
#[derive(Clone, Debug, Default)]
pub struct RecipeResult {
    /// Registered resources except providers. Resources that depend on the core resource depend on these.
    pub registered: Vec<Urn>,
    /// Values that `${resource:KEY.…}` can reference, by name (docs/spec/simple-container.md#8.2).
    pub outputs: BTreeMap<String, ResolvedValue>,
    /// Outputs of the stack that the core resource exports.
    pub stack_outputs: PropertyMap,
    /// True if all resources exist with all their outputs. In a preview, those that would be created or changed do not.
    pub has_all_outputs: bool,
}

/// Error that prevents some or all registrations of a core resource.
#[derive(Debug, thiserror::Error)]
pub enum RecipeError {
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

impl From<Box<Diagnostic>> for RecipeError {
    fn from(diagnostic: Box<Diagnostic>) -> Self {
        Self::Diagnostic(diagnostic)
    }
}
