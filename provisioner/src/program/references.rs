//! Values of references to registered resources and to results of functions.

use std::collections::BTreeMap;
use std::sync::Arc;

use bridge::message_text::MessageText;
use pulumi_proto::property::PropertyValue;
use pulumi_proto::urn::Urn;

use super::functions::FunctionResult;
use super::types::ResolvedType;
use crate::registry::recipe::{RecipeResult, ResolvedValue, without_unknowns};
use bridge::error::closest;
use config::diagnostics::{Code, Diagnostic};
use config::output_part::{OutputPart, output_at};
use config::tree::{InterpolatedString, Node, Reference, ReferenceKind, ReferencedInstances};
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

    /// Returns whether the resource exists with all its outputs. In a preview, one that would be created or changed does not.
    fn is_settled(&self, mode: ResolveMode) -> bool {
        match self {
            Self::Plugin(registered, _) => {
                registered.result != RegistrationResult::Skipped
                    && (mode == ResolveMode::Apply || registered.has_all_outputs)
            }
            Self::Core(provisioned) => mode == ResolveMode::Apply || provisioned.has_all_outputs,
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

/// Resources and functions that a registration references, by environment and key.
#[derive(Clone, Debug)]
pub(super) struct ReferencedResources {
    mode: ResolveMode,
    resources: BTreeMap<(String, String), Arc<ReferencedResource>>,
    /// Functions; those of all environments have none.
    functions: BTreeMap<(Option<String>, String), Arc<FunctionResult>>,
}

impl ReferencedResources {
    pub(super) fn new(mode: ResolveMode) -> Self {
        Self { mode, resources: BTreeMap::new(), functions: BTreeMap::new() }
    }

    pub(super) fn insert(&mut self, environment: &str, key: &str, resource: Arc<ReferencedResource>) {
        self.resources.insert((environment.to_owned(), key.to_owned()), resource);
    }

    pub(super) fn insert_function(&mut self, environment: Option<&str>, name: &str, result: Arc<FunctionResult>) {
        self.functions.insert((environment.map(str::to_owned), name.to_owned()), result);
    }

    /// Returns whether all resources exist with all their outputs.
    pub(super) fn is_settled(&self) -> bool {
        self.resources.values().all(|resource| resource.is_settled(self.mode))
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
        let ResolvedValue { value, dependencies } = self.read_with(read, environment)?;
        Ok(ResolvedValue {
            value: if self.mode == ResolveMode::Apply { without_unknowns(value) } else { value },
            dependencies,
        })
    }

    /// Returns the value of a tree with its dependencies, in which unknown parts stay, also outside of previews.
    pub(super) fn evaluate_as_is(
        &self,
        node: &Node,
        environment: Option<&str>,
    ) -> Result<ResolvedValue, Box<Diagnostic>> {
        self.read_with(|lookup| values::evaluate(node, lookup), environment)
    }

    fn read_with(
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
        Ok(ResolvedValue { value, dependencies })
    }

    /// Returns the value of a reference: that of a resource, or a list with those of all that a `forEach` stands for.
    fn resolve_reference(
        &self,
        reference: &Reference,
        environment: Option<&str>,
    ) -> Result<ResolvedValue, Box<Diagnostic>> {
        if reference.kind == ReferenceKind::Function {
            return self.resolve_function(reference);
        }
        let keys = match &reference.instances {
            ReferencedInstances::All(keys) => keys,
            ReferencedInstances::Undecided => {
                return Ok(ResolvedValue { value: PropertyValue::UNKNOWN, dependencies: Vec::new() });
            }
            ReferencedInstances::None | ReferencedInstances::One(_) => {
                return self.resolve_single(reference, environment);
            }
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

    /// Returns the result of a function, or a part of it. A part that the schema has and the plugin did not return is null.
    fn resolve_function(&self, reference: &Reference) -> Result<ResolvedValue, Box<Diagnostic>> {
        let default = reference.default.as_deref();
        let place = (reference.environment.clone(), reference.resource.clone());
        let Some(result) = self.functions.get(&place) else {
            // A function that is switched off.
            if let Some(default) = default {
                return Ok(ResolvedValue { value: default.into(), dependencies: Vec::new() });
            }
            // Unreachable, as below.
            let summary = MessageText::new(format_args!("function {:?} is not called", reference.resource));
            return Err(Diagnostic::error(Code("unknown-function"), reference.span, summary).into());
        };
        let output = match output_at(Some(&result.value), &reference.path) {
            OutputPart::Missing { is_secret, steps }
                if result.resolved.has_missing_output(&reference.path, reference.path.len() - steps) =>
            {
                let null = OutputPart::Value(PropertyValue::Null);
                if is_secret { null.secret() } else { null }
            }
            output => output,
        };
        match output.or_default(default) {
            Some(value) => Ok(ResolvedValue { value, dependencies: result.dependencies.clone() }),
            None => {
                let summary = MessageText::new(format_args!(
                    "function {:?} has no result {:?}",
                    reference.resource,
                    reference.path_text()
                ));
                Err(with_names(unknown_output(reference, summary), reference, &result_names(&result.value), "results"))
            }
        }
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
    fn plugin_output(&self, registered: &Registered, resolved: &ResolvedType, reference: &Reference) -> OutputPart {
        let (first, rest) = (reference.path[0].as_str(), &reference.path[1..]);
        let is_unknown = registered.result == RegistrationResult::Skipped
            || (self.mode == ResolveMode::Preview && !registered.has_all_outputs);
        let output = match (first, rest.is_empty()) {
            ("urn", true) => OutputPart::Value(registered.urn.as_str().into()),
            // A component has no id.
            ("id", true) if !is_unknown => {
                OutputPart::Value(registered.id.as_deref().map_or(PropertyValue::Null, PropertyValue::from))
            }
            ("id", true) => {
                OutputPart::Value(registered.id.as_deref().map_or(PropertyValue::UNKNOWN, PropertyValue::from))
            }
            _ => output_at(registered.outputs.get(first), rest),
        };
        match output {
            output if is_unknown => output.or_unknown(),
            OutputPart::Missing { is_secret, steps }
                if resolved.has_missing_output(&reference.path, reference.path.len() - steps) =>
            {
                let null = OutputPart::Value(PropertyValue::Null);
                if is_secret { null.secret() } else { null }
            }
            output => output,
        }
    }

    /// Returns the output of a core resource with its dependencies.
    fn core_output(&self, provisioned: &RecipeResult, reference: &Reference) -> (OutputPart, Vec<Urn>) {
        let (output, dependencies) = match provisioned.outputs.get(reference.path[0].as_str()) {
            Some(resolved) => (output_at(Some(&resolved.value), &reference.path[1..]), resolved.dependencies.clone()),
            None => {
                let missing = OutputPart::Missing { is_secret: false, steps: reference.path.len() };
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
    let path = reference.path_text();
    let summary = MessageText::new(format_args!("resource {:?} has no output {path:?}", reference.resource));
    with_names(unknown_output(reference, summary), reference, &candidates, "outputs")
}

fn unknown_output(reference: &Reference, summary: MessageText) -> Diagnostic {
    Diagnostic::error(Code("unknown-output"), reference.span, summary)
}

/// Returns the names of the results of a function.
fn result_names(value: &PropertyValue) -> Vec<&str> {
    match value {
        PropertyValue::Secret(secret) => result_names(secret.expose()),
        PropertyValue::Map(map) => map.keys().map(String::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Adds the names that exist, or the one that is meant.
fn with_names(diagnostic: Diagnostic, reference: &Reference, names: &[&str], what: &str) -> Box<Diagnostic> {
    let first = reference.path.first().map(String::as_str).unwrap_or_default();
    match closest(first, names.iter().copied()) {
        Some(meant) => diagnostic.help(format_args!("did you mean `{meant}`?")),
        None if names.is_empty() || names.contains(&first) => diagnostic,
        None => diagnostic.help(format_args!("its {what} are {}", names.join(", "))),
    }
    .into()
}
