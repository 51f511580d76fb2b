//! Values of references to registered resources.

use std::collections::BTreeMap;
use std::sync::Arc;

use pulumi_proto::property::PropertyValue;
use pulumi_proto::urn::Urn;

use crate::registry::provision::{ProvisionResult, ResolvedValue, without_unknowns};
use config::diagnostics::{Code, Diagnostic, closest};
use config::tree::{InterpolatedString, Node, Reference};
use config::values;
use engine::{Registered, RegistrationResult};

/// Registered resource that other resources reference.
#[derive(Clone, Debug)]
pub(super) enum ReferencedResource {
    /// Plugin resource.
    Plugin(Registered),
    /// Resources of a core type.
    Core(ProvisionResult),
}

impl ReferencedResource {
    /// Returns the URNs that become dependencies of a dependent resource.
    pub(super) fn urns(&self) -> Vec<Urn> {
        match self {
            Self::Plugin(registered) => vec![registered.urn.clone()],
            Self::Core(provisioned) => provisioned.registered.clone(),
        }
    }
}

/// Treatment of missing values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Preview: a missing output is unknown, because it is not computed yet.
    Preview,
    /// Not a preview: a missing output is an error.
    Apply,
}

/// Resources that a registration references, by environment and key.
#[derive(Clone, Debug)]
pub(super) struct ReferencedResources {
    mode: Mode,
    resources: BTreeMap<(String, String), Arc<ReferencedResource>>,
}

impl ReferencedResources {
    pub(super) fn new(mode: Mode) -> Self {
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
            value: if self.mode == Mode::Apply { without_unknowns(value) } else { value },
            dependencies,
        })
    }

    fn resolve_reference(
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
            // Unreachable: `config` checks references when it reads the stack, and a registration starts after its
            // dependencies.
            let summary = format!("resource {:?} is not registered", reference.resource);
            return Err(Diagnostic::error(Code("unknown-resource"), reference.span, summary).into());
        };
        match &**resource {
            ReferencedResource::Plugin(registered) => {
                let value = self.resolve_output(registered, reference)?;
                Ok(ResolvedValue { value, dependencies: vec![registered.urn.clone()] })
            }
            ReferencedResource::Core(provisioned) => match provisioned.outputs.get(reference.path[0].as_str()) {
                Some(resolved) => {
                    let value = match value_at(&resolved.value, &reference.path[1..]) {
                        Some(value) => value,
                        None => self.missing_output(reference, &[])?,
                    };
                    Ok(ResolvedValue { value, dependencies: resolved.dependencies.clone() })
                }
                None => {
                    let value =
                        self.missing_output(reference, &provisioned.outputs.keys().copied().collect::<Vec<_>>())?;
                    Ok(ResolvedValue { value, dependencies: provisioned.registered.clone() })
                }
            },
        }
    }

    fn resolve_output(&self, registered: &Registered, reference: &Reference) -> Result<PropertyValue, Box<Diagnostic>> {
        let (first, rest) = (reference.path[0].as_str(), &reference.path[1..]);
        let value = match (first, rest.is_empty()) {
            ("urn", true) => return Ok(registered.urn.as_str().into()),
            ("id", true) => return Ok(registered.id.as_deref().map_or(PropertyValue::UNKNOWN, PropertyValue::from)),
            _ => registered.outputs.get(first).and_then(|value| value_at(value, rest)),
        };
        match value {
            Some(value) => Ok(value),
            None if registered.result == RegistrationResult::Skipped => Ok(PropertyValue::UNKNOWN),
            None => self.missing_output(reference, &registered.outputs.keys().map(String::as_str).collect::<Vec<_>>()),
        }
    }

    fn missing_output(&self, reference: &Reference, candidates: &[&str]) -> Result<PropertyValue, Box<Diagnostic>> {
        if self.mode == Mode::Preview {
            return Ok(PropertyValue::UNKNOWN);
        }
        let (path, first) = (reference.path.join("."), reference.path[0].as_str());
        let summary = format!("resource {:?} has no output {path:?}", reference.resource);
        let diagnostic = Diagnostic::error(Code("unknown-output"), reference.span, summary);
        Err(match closest(first, candidates.iter().copied()) {
            Some(meant) => diagnostic.help(format!("did you mean `{meant}`?")),
            None if candidates.is_empty() || candidates.contains(&first) => diagnostic,
            None => diagnostic.help(format!("its outputs are {}", candidates.join(", "))),
        }
        .into())
    }
}

/// Returns the part of a value at a path of names and indices. A part of a secret is secret; a part of an unknown is
/// unknown.
fn value_at(value: &PropertyValue, path: &[String]) -> Option<PropertyValue> {
    match value {
        PropertyValue::Secret(secret) => {
            let inner = value_at(secret.expose(), path)?;
            Some(if matches!(inner, PropertyValue::Unknown(_)) { inner } else { PropertyValue::secret(inner) })
        }
        PropertyValue::Output(output) => match (&output.value, output.secret) {
            (None, _) => Some(PropertyValue::UNKNOWN),
            (Some(value), false) => value_at(value, path),
            (Some(value), true) => value_at(value, path).map(PropertyValue::secret),
        },
        PropertyValue::Unknown(_) => Some(PropertyValue::UNKNOWN),
        value => match (path.split_first(), value) {
            (None, value) => Some(value.clone()),
            (Some((key, rest)), PropertyValue::Map(map)) => value_at(map.get(key)?, rest),
            (Some((index, rest)), PropertyValue::List(items)) => {
                value_at(items.get(index.parse::<usize>().ok()?)?, rest)
            }
            (Some(_), _) => None,
        },
    }
}
