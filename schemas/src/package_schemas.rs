//! The result of a conversion.
//!
//! Never here: how it is made, which is in [`crate::convert`].

use std::collections::BTreeMap;

use serde_json::Value;

/// The keyword that holds the shared types of a schema: `#/$defs/<key>`.
pub const DEFINITIONS: &str = "$defs";

/// The schemas of a package.
#[derive(Clone, Debug, PartialEq)]
pub struct PackageSchemas {
    /// The name of the package.
    pub name: String,
    /// The version of the package; empty if the package schema has none.
    pub version: String,
    /// The schema of the inputs of each resource type, by type token. References point into
    /// [`PackageSchemas::definitions`].
    pub resources: BTreeMap<String, Value>,
    /// The schema of the provider's configuration.
    pub configuration: Value,
    /// The types that the schemas refer to, by the part of the reference after `#/$defs/`, not escaped as a JSON pointer.
    pub definitions: BTreeMap<String, Value>,
}
