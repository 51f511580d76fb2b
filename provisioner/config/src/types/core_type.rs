//! Core types: resource types that a stack uses without a plugin prefix.

use schemars::{JsonSchema, Schema, schema_for};
use serde::de::DeserializeOwned;

use super::decode::{Decoded, decode};
use crate::diagnostics::Diagnostic;
use crate::tree::{Entry, Node};

/// The typed `config` of a core type.
///
/// Fields that may hold secrets or references are [`TextHandle`](super::TextHandle)s.
pub trait CoreConfig: DeserializeOwned + JsonSchema {
    /// Value of `type` in server.yaml.
    const TYPE: &'static str;
    /// Outputs that `${resource:KEY.…}` can reference (docs/spec/simple-container.md#8.2).
    const OUTPUTS: &'static [&'static str];
    /// Key of a domain, for which the stack must have a registrar.
    const DOMAIN: Option<&'static str> = None;

    /// Reports errors that the types of the fields do not exclude. Reports none by default.
    fn validate(_decoded: &Decoded<Self>, _node: &Node, _diagnostics: &mut Vec<Diagnostic>) {}
}

/// A core type as an entry of a [`TypeTable`](super::TypeTable).
#[derive(Clone, Copy, Debug)]
pub struct CoreType {
    name: &'static str,
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
            outputs: C::OUTPUTS,
            domain: C::DOMAIN,
            schema: || schema_for!(C),
            check: |node, diagnostics| {
                if let Some(decoded) = decode::<C>(node, diagnostics) {
                    C::validate(&decoded, node, diagnostics);
                }
            },
        }
    }

    /// Returns the value of `type` in server.yaml.
    pub fn name(&self) -> &'static str {
        self.name
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
