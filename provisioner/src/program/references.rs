//! Values of references to registered resources.

use std::collections::BTreeMap;
use std::sync::Arc;

use bridge::message_text::MessageText;
use pulumi_proto::property::PropertyValue;
use pulumi_proto::urn::Urn;

use super::types::ResolvedType;
use crate::registry::recipe::{RecipeResult, ResolvedValue, without_unknowns};
use bridge::error::closest;
use config::diagnostics::{Code, Diagnostic};
use config::tree::{InterpolatedString, Node, Reference, ReferencedInstances};
use config::values;
use engine::{Registered, RegistrationResult};

/// Registered resource that other resources reference.
#[derive(Clone, Debug)]
pub(super) enum ReferencedResource {
    /// Plugin resource with its type.
    Plugin(Registered, Arc<ResolvedType>),
    /// Resources of a core type.
    Core(RecipeResult),
}

impl ReferencedResource {
    /// Returns the URNs that become dependencies of a dependent resource.
    pub(super) fn urns(&self) -> Vec<Urn> {
        match self {
            Self::Plugin(registered, _) => vec![registered.urn.clone()],
            Self::Core(provisioned) => provisioned.registered.clone(),
        }
    }
}

/// Treatment of missing values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResolveMode {
    /// Preview: a missing output is unknown if it may not be computed yet.
    Preview,
    /// Not a preview: a missing output does not exist.
    Apply,
}

/// Resources that a registration references, by environment and key.
#[derive(Clone, Debug)]
pub(super) struct ReferencedResources {
    mode: ResolveMode,
    resources: BTreeMap<(String, String), Arc<ReferencedResource>>,
}

impl ReferencedResources {
    pub(super) fn new(mode: ResolveMode) -> Self {
        Self { mode, resources: BTreeMap::new() }
    }

    pub(super) fn insert(&mut self, environment: &str, key: &str, resource: Arc<ReferencedResource>) {
        self.resources.insert((environment.to_owned(), key.to_owned()), resource);
    }

    pub(super) fn get(&self, environment: &str, key: &str) -> Option<&Arc<ReferencedResource>> {
        self.resources.get(&(environment.to_owned(), key.to_owned()))
    }

    /// Returns the value of a tree with its dependencies. References without an environment use the given one, or the
    /// only one that has the key.
    pub(super) fn evaluate(&self, node: &Node, environment: Option<&str>) -> Result<ResolvedValue, Box<Diagnostic>> {
        self.evaluate_with(|lookup| values::evaluate(node, lookup), environment)
    }

    /// Returns the value of a text with its dependencies.
    pub(super) fn evaluate_text(
        &self,
        string: &InterpolatedString,
        environment: &str,
    ) -> Result<ResolvedValue, Box<Diagnostic>> {
        self.evaluate_with(|lookup| values::evaluate_text(string, lookup), Some(environment))
    }

    fn evaluate_with(
        &self,
        read: impl FnOnce(&mut values::ReferenceLookup<'_>) -> Result<PropertyValue, Box<Diagnostic>>,
        environment: Option<&str>,
    ) -> Result<ResolvedValue, Box<Diagnostic>> {
        let mut dependencies: Vec<Urn> = Vec::new();
        let value = read(&mut |reference| {
            let resolved = self.resolve_reference(reference, environment)?;
            dependencies.extend(resolved.dependencies);
            Ok(resolved.value)
        })?;
        Ok(ResolvedValue {
            value: if self.mode == ResolveMode::Apply { without_unknowns(value) } else { value },
            dependencies,
        })
    }

    /// Returns the value of a reference: that of a resource, or a list with those of all that a `forEach` stands for.
    fn resolve_reference(
        &self,
        reference: &Reference,
        environment: Option<&str>,
    ) -> Result<ResolvedValue, Box<Diagnostic>> {
        let ReferencedInstances::All(keys) = &reference.instances else {
            return self.resolve_single(reference, environment);
        };
        let (mut values, mut dependencies) = (Vec::new(), Vec::new());
        for key in keys {
            let instances = ReferencedInstances::None;
            let single = Reference { resource: key.clone(), instances, ..reference.clone() };
            let resolved = self.resolve_single(&single, environment)?;
            values.push(resolved.value);
            dependencies.extend(resolved.dependencies);
        }
        Ok(ResolvedValue { value: PropertyValue::List(values), dependencies })
    }

    fn resolve_single(
        &self,
        reference: &Reference,
        environment: Option<&str>,
    ) -> Result<ResolvedValue, Box<Diagnostic>> {
        let resource = match reference.environment.as_deref().or(environment) {
            Some(environment) => self.get(environment, &reference.resource),
            None => {
                self.resources.iter().find(|((_, key), _)| *key == reference.resource).map(|(_, resource)| resource)
            }
        };
        let Some(resource) = resource else {
            // A resource that is switched off.
            if let Some(default) = reference.default.as_deref() {
                return Ok(ResolvedValue { value: default.into(), dependencies: Vec::new() });
            }
            // Unreachable: `config` checks references when it reads the stack, and a registration starts after its
            // dependencies.
            let summary = MessageText::new(format_args!("resource {:?} is not registered", reference.resource));
            return Err(Diagnostic::error(Code("unknown-resource"), reference.span, summary).into());
        };
        let (output, dependencies) = match &**resource {
            ReferencedResource::Plugin(registered, resolved) => {
                (self.plugin_output(registered, resolved, reference), vec![registered.urn.clone()])
            }
            ReferencedResource::Core(provisioned) => self.core_output(provisioned, reference),
        };
        match output.or_default(reference.default.as_deref()) {
            Some(value) => Ok(ResolvedValue { value, dependencies }),
            None => Err(missing_output_error(reference, resource)),
        }
    }

    /// Returns the output of a plugin resource. One that the schema has and the provider did not return is null.
    fn plugin_output(&self, registered: &Registered, resolved: &ResolvedType, reference: &Reference) -> Output {
        let (first, rest) = (reference.path[0].as_str(), &reference.path[1..]);
        let is_unknown = registered.result == RegistrationResult::Skipped
            || (self.mode == ResolveMode::Preview && !registered.has_all_outputs);
        let output = match (first, rest.is_empty()) {
            ("urn", true) => Output::Value(registered.urn.as_str().into()),
            // A component has no id.
            ("id", true) if !is_unknown => {
                Output::Value(registered.id.as_deref().map_or(PropertyValue::Null, PropertyValue::from))
            }
            ("id", true) => Output::Value(registered.id.as_deref().map_or(PropertyValue::UNKNOWN, PropertyValue::from)),
            _ => output_at(registered.outputs.get(first), rest),
        };
        match output {
            output if is_unknown => output.or_unknown(),
            Output::Missing { is_secret, steps }
                if resolved.has_missing_output(&reference.path, reference.path.len() - steps) =>
            {
                let null = Output::Value(PropertyValue::Null);
                if is_secret { null.secret() } else { null }
            }
            output => output,
        }
    }

    /// Returns the output of a core resource with its dependencies.
    fn core_output(&self, provisioned: &RecipeResult, reference: &Reference) -> (Output, Vec<Urn>) {
        let (output, dependencies) = match provisioned.outputs.get(reference.path[0].as_str()) {
            Some(resolved) => (output_at(Some(&resolved.value), &reference.path[1..]), resolved.dependencies.clone()),
            None => {
                let missing = Output::Missing { is_secret: false, steps: reference.path.len() };
                (missing, provisioned.registered.clone())
            }
        };
        (if self.mode == ResolveMode::Preview { output.or_unknown() } else { output }, dependencies)
    }
}

fn missing_output_error(reference: &Reference, resource: &ReferencedResource) -> Box<Diagnostic> {
    let candidates: Vec<&str> = match resource {
        ReferencedResource::Plugin(registered, _) => registered.outputs.keys().map(String::as_str).collect(),
        ReferencedResource::Core(provisioned) => provisioned.outputs.keys().map(String::as_str).collect(),
    };
    let (path, first) = (reference.path.join("."), reference.path[0].as_str());
    let summary = MessageText::new(format_args!("resource {:?} has no output {path:?}", reference.resource));
    let diagnostic = Diagnostic::error(Code("unknown-output"), reference.span, summary);
    match closest(first, candidates.iter().copied()) {
        Some(meant) => diagnostic.help(format_args!("did you mean `{meant}`?")),
        None if candidates.is_empty() || candidates.contains(&first) => diagnostic,
        None => diagnostic.help(format_args!("its outputs are {}", candidates.join(", "))),
    }
    .into()
}

/// An output of a resource, or a part of it.
enum Output {
    /// The value, which may be null or unknown.
    Value(PropertyValue),
    /// The output does not exist.
    Missing {
        /// True if the value in which it is missing is secret.
        is_secret: bool,
        /// Number of steps of the path from the first one without a value on.
        steps: usize,
    },
}

impl Output {
    /// Marks the output as secret. An unknown value is not marked.
    fn secret(self) -> Self {
        match self {
            Self::Value(PropertyValue::Unknown(_)) => self,
            Self::Value(value) => Self::Value(PropertyValue::secret(value)),
            Self::Missing { steps, .. } => Self::Missing { is_secret: true, steps },
        }
    }

    /// Replaces a missing output by an unknown value.
    fn or_unknown(self) -> Self {
        match self {
            Self::Value(_) => self,
            Self::Missing { .. } => Self::Value(PropertyValue::UNKNOWN),
        }
    }

    /// Returns the value, with the default in the place of a missing or null output. `None` if the output is missing and
    /// there is no default.
    fn or_default(self, default: Option<&str>) -> Option<PropertyValue> {
        match (self, default) {
            (Self::Value(value), Some(default)) => Some(null_or(value, default)),
            (Self::Value(value), None) => Some(value),
            (Self::Missing { is_secret: true, .. }, default) => Some(PropertyValue::secret(default?.into())),
            (Self::Missing { is_secret: false, .. }, default) => Some(default?.into()),
        }
    }
}

/// Returns the value, or the default if it is null. The default of a secret null is secret.
fn null_or(value: PropertyValue, default: &str) -> PropertyValue {
    match value {
        PropertyValue::Null => default.into(),
        PropertyValue::Secret(secret) => PropertyValue::secret(null_or(secret.into_exposed(), default)),
        value => value,
    }
}

/// Returns whether an output has a part at a path of names and indices. Parts of an unknown may exist.
pub(super) fn has_output(value: &PropertyValue, path: &[String]) -> bool {
    matches!(output_at(Some(value), path), Output::Value(_))
}

/// Returns the part of an output at a path of names and indices. A part of a secret is secret; a part of an unknown is
/// unknown.
fn output_at(value: Option<&PropertyValue>, path: &[String]) -> Output {
    match value {
        None => Output::Missing { is_secret: false, steps: path.len() + 1 },
        // A part of null is missing with it.
        Some(PropertyValue::Null) if !path.is_empty() => Output::Missing { is_secret: false, steps: path.len() + 1 },
        Some(PropertyValue::Secret(secret)) => output_at(Some(secret.expose()), path).secret(),
        Some(PropertyValue::Output(output)) => match (&output.value, output.secret) {
            (None, _) => Output::Value(PropertyValue::UNKNOWN),
            (Some(value), false) => output_at(Some(value), path),
            (Some(value), true) => output_at(Some(value), path).secret(),
        },
        Some(PropertyValue::Unknown(_)) => Output::Value(PropertyValue::UNKNOWN),
        Some(value) => match (path.split_first(), value) {
            (None, value) => Output::Value(value.clone()),
            (Some((key, rest)), PropertyValue::Map(map)) => output_at(map.get(key), rest),
            (Some((index, rest)), PropertyValue::List(items)) => {
                output_at(index.parse::<usize>().ok().and_then(|index| items.get(index)), rest)
            }
            (Some(_), _) => Output::Missing { is_secret: false, steps: path.len() },
        },
    }
}
