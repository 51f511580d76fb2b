//! Result of a conversion.
//!
//! Excluded: the conversion, which is in [`crate::convert`].

use std::collections::BTreeMap;

use serde_json::Value;

/// Keyword of the shared types of a schema: `#/$defs/<key>`.
pub const DEFINITIONS: &str = "$defs";

/// Schemas of a package.
#[derive(Clone, Debug, PartialEq)]
pub struct PackageSchemas {
    /// Name of the package.
    pub name: String,
    /// Version of the package. Empty if the package schema has none.
    pub version: String,
    /// Schema of the inputs of each resource type, by type token. References point into
    /// [`PackageSchemas::definitions`].
    pub resources: BTreeMap<String, Value>,
    /// Former types (aliases) of each resource type that has some, by type token.
    pub former_types: BTreeMap<String, Vec<String>>,
    /// Schema of the provider's configuration.
    pub configuration: Value,
    /// Types to which the schemas refer, by the part of the reference after `#/$defs/`, without JSON pointer escapes.
    pub definitions: BTreeMap<String, Value>,
}
