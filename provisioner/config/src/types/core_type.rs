//! Core types: the ones that a stack uses without a plugin prefix.

use schemars::{JsonSchema, Schema, schema_for};
use serde::de::DeserializeOwned;

use super::decode::{Decoded, decode};
use crate::diagnostics::Diagnostic;
use crate::tree::Node;

/// The typed `config` of a core type.
///
/// Fields that may hold secrets or references are [`TextHandle`](super::TextHandle)s.
pub trait CoreConfig: DeserializeOwned + JsonSchema {
    /// The `type` in server.yaml.
    const TYPE: &'static str;
    /// The outputs that `${resource:KEY.…}` can name (simple-container §8.2).
    const OUTPUTS: &'static [&'static str];

    /// Reports mistakes beyond the kinds of the fields; none by default.
    fn validate(_decoded: &Decoded<Self>, _node: &Node, _diagnostics: &mut Vec<Diagnostic>) {}
}

/// A core type as an entry of a [`TypeTable`](super::TypeTable).
#[derive(Clone, Copy, Debug)]
pub struct CoreType {
    name: &'static str,
    outputs: &'static [&'static str],
    schema: fn() -> Schema,
    check: fn(&Node, &mut Vec<Diagnostic>),
}

impl CoreType {
    /// Returns the entry for a typed `config`.
    pub fn of<C: CoreConfig>() -> Self {
        Self {
            name: C::TYPE,
            outputs: C::OUTPUTS,
            schema: || schema_for!(C),
            check: |node, diagnostics| {
                if let Some(decoded) = decode::<C>(node, diagnostics) {
                    C::validate(&decoded, node, diagnostics);
                }
            },
        }
    }

    /// The `type` in server.yaml.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The outputs that `${resource:KEY.…}` can name.
    pub fn outputs(&self) -> &'static [&'static str] {
        self.outputs
    }

    /// The JSON Schema of its `config`.
    pub fn schema(&self) -> Schema {
        (self.schema)()
    }

    /// Checks a resolved `config` and collects its mistakes.
    pub fn check(&self, config: &Node, diagnostics: &mut Vec<Diagnostic>) {
        (self.check)(config, diagnostics);
    }
}
