//! Core types: resource types that a stack uses without a plugin prefix.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use schemars::{JsonSchema, Schema, schema_for};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use super::decode::{Decoded, decode};
use super::{accounts, limits};
use crate::diagnostics::{Code, Diagnostic};
use crate::tree::{Entry, Node, Value};

const MISSING: Code = Code("missing-key");

/// Key that must have a value, and a hint for a `config` that lacks it.
pub type RequiredKey = (&'static str, &'static str);

/// Origin of a core type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeOrigin {
    /// Simple Container has the type. The text is the name of the Go struct of its `config` (docs/spec/simple-container.md#7.1).
    SimpleContainer(&'static str),
    /// Only `sc` has the type.
    Own,
}

/// The typed `config` of a core type.
///
/// Fields that may hold secrets or references are [`TextHandle`](super::TextHandle)s.
pub trait CoreConfig: DeserializeOwned + JsonSchema + 'static {
    /// Value of `type` in server.yaml.
    const TYPE: &'static str;
    /// Origin of the type.
    const ORIGIN: TypeOrigin;
    /// Provider that has the type in the files of schemas, such as `aws`.
    const PROVIDER: &'static str;
    /// Outputs that `${resource:KEY.…}` can reference (docs/spec/simple-container.md#8.2).
    const OUTPUTS: &'static [&'static str] = &[];
    /// Required keys.
    const REQUIRED: &'static [RequiredKey] = &[];
    /// Key of a domain, for which the stack must have a registrar.
    const DOMAIN: Option<&'static str> = None;

    /// Returns further required keys, which depend on others. Returns none by default.
    fn required_by(_decoded: &Decoded<Self>) -> Vec<RequiredKey> {
        Vec::new()
    }

    /// Reports errors that the types of the fields and the required keys do not exclude. Reports none by default.
    fn validate(_decoded: &Decoded<Self>, _node: &Node, _diagnostics: &mut Vec<Diagnostic>) {}
}

/// A core type as an entry of a [`TypeTable`](super::TypeTable).
#[derive(Clone, Copy, Debug)]
pub struct CoreType {
    name: &'static str,
    origin: TypeOrigin,
    provider: &'static str,
    outputs: &'static [&'static str],
    domain: Option<&'static str>,
    schema: fn() -> Schema,
    check: fn(&Node, &mut Vec<Diagnostic>),
}

impl CoreType {
    /// Returns the entry for a typed `config`.
    pub fn of<C: CoreConfig>() -> Self {
        Self {
            name: C::TYPE,
            origin: C::ORIGIN,
            provider: C::PROVIDER,
            outputs: C::OUTPUTS,
            domain: C::DOMAIN,
            schema: schema::<C>,
            check: |node, diagnostics| {
                if let Some(decoded) = decode::<C>(node, diagnostics) {
                    // Which further keys and values are right may depend on a value that is not known.
                    let is_known = !decoded.has_unknown_values;
                    let further = if is_known { C::required_by(&decoded) } else { Vec::new() };
                    let required = C::REQUIRED.iter().copied().chain(further);
                    diagnostics.extend(required.filter_map(|key| missing(node, key)));
                    limits::check(&known_schema::<C>(), node, diagnostics);
                    accounts::check(C::PROVIDER, node, diagnostics);
                    if is_known {
                        C::validate(&decoded, node, diagnostics);
                    }
                }
            },
        }
    }

    /// Returns the value of `type` in server.yaml.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The origin of the type.
    pub fn origin(&self) -> TypeOrigin {
        self.origin
    }

    /// Returns the provider that has the type in the files of schemas.
    pub fn provider(&self) -> &'static str {
        self.provider
    }

    /// Returns the outputs that `${resource:KEY.…}` can reference.
    pub fn outputs(&self) -> &'static [&'static str] {
        self.outputs
    }

    /// Returns the entry of a `config` with a domain, for which the stack must have a registrar.
    pub(crate) fn domain<'n>(&self, config: &'n Node) -> Option<&'n Entry> {
        let entry = config.as_mapping()?.entry(self.domain?)?;
        let is_empty = entry.value.as_scalar().is_some_and(|scalar| scalar.is_null() || scalar.text.is_empty());
        (!is_empty).then_some(entry)
    }

    /// Returns the JSON Schema of `config`.
    pub fn schema(&self) -> Schema {
        (self.schema)()
    }

    /// Checks a resolved `config` and collects its errors and warnings.
    pub fn check(&self, config: &Node, diagnostics: &mut Vec<Diagnostic>) {
        (self.check)(config, diagnostics);
    }
}

/// Returns the schema of a `config` as JSON. It is made once: a stack may have thousands of resources of a type.
fn known_schema<C: CoreConfig>() -> Arc<Json> {
    static KNOWN: Mutex<BTreeMap<TypeId, Arc<Json>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(known.entry(TypeId::of::<C>()).or_insert_with(|| Arc::new(schema::<C>().to_value())))
}

/// Returns the schema of a `config`: with its required keys, and without further keys in its nested objects. The description of
/// an own type says that Simple Container does not have it.
fn schema<C: CoreConfig>() -> Schema {
    let mut schema = schema_for!(C);
    if C::ORIGIN == TypeOrigin::Own {
        let description = schema.get("description").and_then(|text| text.as_str()).unwrap_or_default();
        schema.insert("description".to_owned(), format!("{description} Not in Simple Container.").trim_start().into());
    }
    if !C::REQUIRED.is_empty() {
        let keys: Vec<&str> = C::REQUIRED.iter().map(|(key, _)| *key).collect();
        schema.insert("required".to_owned(), keys.into());
    }
    let nested = schema.get_mut("$defs").and_then(|defs| defs.as_object_mut());
    for object in nested.into_iter().flatten().filter_map(|(_, nested)| nested.as_object_mut()) {
        if object.contains_key("properties") {
            object.insert("additionalProperties".to_owned(), false.into());
        }
    }
    schema
}

/// Returns the error for a required key without a value.
fn missing(config: &Node, (key, help): RequiredKey) -> Option<Diagnostic> {
    let value = config.get_path([key]);
    let has_value = value.is_some_and(|value| match &value.value {
        Value::Scalar(scalar) => !scalar.is_null() && !scalar.text.is_empty(),
        Value::Interpolated(string) => string.known().as_deref() != Some(""),
        Value::Sequence(_) | Value::Mapping(_) => true,
    });
    if has_value {
        return None;
    }
    Some(match value.filter(|value| !value.is_null()) {
        None => {
            let span = value.unwrap_or(config).span;
            Diagnostic::error(MISSING, span, format_args!("`{key}` is missing")).help(help)
        }
        Some(value) => {
            let error = Diagnostic::error(MISSING, value.span, format_args!("`{key}` is empty"));
            match &value.value {
                Value::Interpolated(_) => error.help(
                    "the placeholder in it stands for an empty text: complete the entry in the stack's secrets.yaml",
                ),
                _ => error.help(help),
            }
        }
    })
}
