//! How the `config` of each core type reads.
//!
//! Enters: a resolved `config`. Leaves: a typed one, or its mistakes; its JSON Schema; the names of what
//! `${resource:…}` can ask of it. Never here: the engine, or what a type registers ([`super::provision`]).

mod aws;
mod gcp;
mod templates;

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, schema_for};
use serde::de::DeserializeOwned;

use crate::config::diagnostics::Diagnostic;
use crate::config::yaml::Node;
use crate::config::yaml::de::{Decoded, decode};

pub use aws::{AwsAccount, CorsConfig, S3BucketConfig};
pub use gcp::GcpBucketConfig;
pub use templates::{TemplateConfigName, TemplateFields, TemplateType, TemplateValue};

/// The typed `config` of a core type.
///
/// Fields that may hold secrets or references are [`crate::config::yaml::de::TextHandle`]s.
pub trait CoreConfig: DeserializeOwned + JsonSchema {
    /// The `type` in server.yaml.
    const TYPE: &'static str;
    /// What `${resource:KEY.…}` can ask of it (simple-container §8.2).
    const OUTPUTS: &'static [&'static str];

    /// Says what is wrong beyond the kinds of the fields; nothing by default.
    fn validate(_decoded: &Decoded<Self>, _node: &Node, _diagnostics: &mut Vec<Diagnostic>) {}
}

/// One core type, as far as `config` has to know it.
#[derive(Clone, Copy, Debug)]
pub struct CoreType {
    name: &'static str,
    outputs: &'static [&'static str],
    schema: fn() -> Schema,
    check: fn(&Node, &mut Vec<Diagnostic>),
}

impl CoreType {
    /// The entry for a typed `config`.
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

    /// What `${resource:KEY.…}` can ask of it.
    pub fn outputs(&self) -> &'static [&'static str] {
        self.outputs
    }

    /// The JSON Schema of its `config`.
    pub fn schema(&self) -> Schema {
        (self.schema)()
    }

    /// Collects what is wrong with a `config`.
    pub fn check(&self, config: &Node, diagnostics: &mut Vec<Diagnostic>) {
        (self.check)(config, diagnostics);
    }
}

/// All core types by name.
#[derive(Clone, Debug, Default)]
pub struct TypeTable(BTreeMap<&'static str, CoreType>);

impl TypeTable {
    /// The types of the product.
    pub fn product() -> Self {
        Self::new([CoreType::of::<S3BucketConfig>(), CoreType::of::<GcpBucketConfig>()])
    }

    /// A table of these types.
    pub fn new(types: impl IntoIterator<Item = CoreType>) -> Self {
        Self(types.into_iter().map(|core| (core.name, core)).collect())
    }

    /// A type by name.
    pub fn get(&self, name: &str) -> Option<&CoreType> {
        self.0.get(name)
    }

    /// All types, by name.
    pub fn iter(&self) -> impl Iterator<Item = &CoreType> {
        self.0.values()
    }

    /// The names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.0.keys().copied()
    }
}
