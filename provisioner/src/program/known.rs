//! Registered resources, and the values of references to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use pulumi_proto::property::PropertyValue;
use pulumi_proto::urn::Urn;

use crate::registry::provision::{Provisioned, Resolved, without_unknowns};
use config::diagnostics::{Code, Diagnostic, closest};
use config::tree::{Node, Reference, Template};
use config::values;
use engine::{Registered, RegistrationResult};

/// Registered resource that references can resolve to.
#[derive(Clone, Debug)]
pub(super) enum Done {
    /// Registration of a plugin resource.
    Plugin(Registered),
    /// Registrations of a core type.
    Core(Provisioned),
}

impl Done {
    /// Returns the URNs that a dependent resource depends on.
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
    /// Preview: a missing output is not computed yet, so it is unknown.
    Preview,
    /// Real run: a missing output does not exist, which is an error.
    Real,
}

/// Resources that a registration refers to, by environment and key.
#[derive(Clone, Debug)]
pub(super) struct Known {
    mode: Mode,
    done: BTreeMap<(String, String), Arc<Done>>,
}

impl Known {
    pub(super) fn new(mode: Mode) -> Self {
        Self { mode, done: BTreeMap::new() }
    }

    pub(super) fn insert(&mut self, environment: &str, key: &str, done: Arc<Done>) {
        self.done.insert((environment.to_owned(), key.to_owned()), done);
    }

    pub(super) fn get(&self, environment: &str, key: &str) -> Option<&Arc<Done>> {
        self.done.get(&(environment.to_owned(), key.to_owned()))
    }

    /// Returns the value of a tree and the resources that it comes from. References without an environment mean the
    /// given one, or the only one that has the key.
    pub(super) fn tree(&self, node: &Node, environment: Option<&str>) -> Result<Resolved, Box<Diagnostic>> {
        self.collect(|lookup| values::value(node, lookup), environment)
    }

    /// Returns the value of a text and the resources that it comes from.
    pub(super) fn text(&self, template: &Template, environment: &str) -> Result<Resolved, Box<Diagnostic>> {
        self.collect(|lookup| values::text(template, lookup), Some(environment))
    }

    fn collect(
        &self,
        read: impl FnOnce(&mut values::Lookup<'_>) -> Result<PropertyValue, Box<Diagnostic>>,
        environment: Option<&str>,
    ) -> Result<Resolved, Box<Diagnostic>> {
        let mut dependencies: Vec<Urn> = Vec::new();
        let value = read(&mut |reference| {
            let resolved = self.reference(reference, environment)?;
            dependencies.extend(resolved.dependencies);
            Ok(resolved.value)
        })?;
        Ok(Resolved { value: if self.mode == Mode::Real { without_unknowns(value) } else { value }, dependencies })
    }

    fn reference(&self, reference: &Reference, environment: Option<&str>) -> Result<Resolved, Box<Diagnostic>> {
        let done = match reference.environment.as_deref().or(environment) {
            Some(environment) => self.get(environment, &reference.resource),
            None => self.done.iter().find(|((_, key), _)| *key == reference.resource).map(|(_, done)| done),
        };
        let Some(done) = done else {
            // `config` checks references when it reads the stack, and a registration starts after all resources that it
            // refers to.
            let summary = format!("resource {:?} is not registered", reference.resource);
            return Err(Diagnostic::error(Code("unknown-resource"), reference.span, summary).into());
        };
        match &**done {
            Done::Plugin(registered) => {
                let value = self.output(registered, reference)?;
                Ok(Resolved { value, dependencies: vec![registered.urn.clone()] })
            }
            Done::Core(provisioned) => match provisioned.values.get(reference.path[0].as_str()) {
                Some(resolved) => {
                    let value = match walk(&resolved.value, &reference.path[1..]) {
                        Some(value) => value,
                        None => self.missing(reference, &[])?,
                    };
                    Ok(Resolved { value, dependencies: resolved.dependencies.clone() })
                }
                None => {
                    let value = self.missing(reference, &provisioned.values.keys().copied().collect::<Vec<_>>())?;
                    Ok(Resolved { value, dependencies: provisioned.registered.clone() })
                }
            },
        }
    }

    fn output(&self, registered: &Registered, reference: &Reference) -> Result<PropertyValue, Box<Diagnostic>> {
        let (first, rest) = (reference.path[0].as_str(), &reference.path[1..]);
        let value = match (first, rest.is_empty()) {
            ("urn", true) => return Ok(registered.urn.as_str().into()),
            ("id", true) => return Ok(registered.id.as_deref().map_or(PropertyValue::UNKNOWN, PropertyValue::from)),
            _ => registered.outputs.get(first).and_then(|value| walk(value, rest)),
        };
        match value {
            Some(value) => Ok(value),
            None if registered.result == RegistrationResult::Skipped => Ok(PropertyValue::UNKNOWN),
            None => self.missing(reference, &registered.outputs.keys().map(String::as_str).collect::<Vec<_>>()),
        }
    }

    fn missing(&self, reference: &Reference, candidates: &[&str]) -> Result<PropertyValue, Box<Diagnostic>> {
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

/// Returns the part of a value that a path of names and indices leads to. The part of a secret is secret, and the part
/// of an unknown is unknown.
fn walk(value: &PropertyValue, path: &[String]) -> Option<PropertyValue> {
    match value {
        PropertyValue::Secret(secret) => {
            let inner = walk(secret.expose(), path)?;
            Some(if matches!(inner, PropertyValue::Unknown(_)) { inner } else { PropertyValue::secret(inner) })
        }
        PropertyValue::Output(output) => match (&output.value, output.secret) {
            (None, _) => Some(PropertyValue::UNKNOWN),
            (Some(value), false) => walk(value, path),
            (Some(value), true) => walk(value, path).map(PropertyValue::secret),
        },
        PropertyValue::Unknown(_) => Some(PropertyValue::UNKNOWN),
        value => match (path.split_first(), value) {
            (None, value) => Some(value.clone()),
            (Some((key, rest)), PropertyValue::Map(map)) => walk(map.get(key)?, rest),
            (Some((index, rest)), PropertyValue::List(items)) => walk(items.get(index.parse::<usize>().ok()?)?, rest),
            (Some(_), _) => None,
        },
    }
}
