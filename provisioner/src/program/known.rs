//! What registered resources have become, and what references make of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use pulumi_proto::property::PropertyValue;
use pulumi_proto::urn::Urn;

use crate::registry::provision::{Provisioned, Resolved, without_unknowns};
use config::diagnostics::{Code, Diagnostic, closest};
use config::tree::{Node, Reference, Template};
use config::values;
use engine::{Registered, RegistrationResult};

/// A resource that others may refer to now.
#[derive(Clone, Debug)]
pub(super) enum Done {
    /// One registration.
    Plugin(Registered),
    /// Those of a core type.
    Core(Provisioned),
}

impl Done {
    /// What depends on it depends on these.
    pub(super) fn urns(&self) -> Vec<Urn> {
        match self {
            Self::Plugin(registered) => vec![registered.urn.clone()],
            Self::Core(provisioned) => provisioned.registered.clone(),
        }
    }
}

/// Whether values may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// A preview: what is missing is not computed yet.
    Preview,
    /// For real: what is missing does not exist.
    Real,
}

/// The resources that a registration refers to, by environment and key.
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

    /// The value of a tree with the resources it came from. References without an environment are of the given one, or
    /// of the only one that has the key.
    pub(super) fn tree(&self, node: &Node, environment: Option<&str>) -> Result<Resolved, Box<Diagnostic>> {
        self.collect(|lookup| values::value(node, lookup), environment)
    }

    /// The same for one text.
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
            // The graph was checked when the stack was read, and whoever asks waited for what it names.
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

/// The part of a value that a path of names and indices leads to. Secrecy on the way is carried along; what is inside of
/// an unknown is unknown.
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
