//! From a Pulumi package schema (what GetSchema answers) to JSON Schema 2020-12, for editors that complete and check the
//! `config` of resources in a server.yaml.
//!
//! Enters: the text of a package schema. Leaves: a [`PackageSchemas`], one schema for each resource type, with the types
//! they share. Never here: files, plugins, the grammar of server.yaml around a `config`.

mod convert;
mod package;

use std::collections::BTreeMap;

use serde_json::Value;

/// Where the shared types stand in a schema: `#/$defs/<key>`.
pub const DEFINITIONS: &str = "$defs";

/// The schemas of a package.
#[derive(Clone, Debug, PartialEq)]
pub struct PackageSchemas {
    /// Name of the package.
    pub name: String,
    /// Its version; empty where it does not say.
    pub version: String,
    /// Resource type to the schema of its inputs. References lead to [`PackageSchemas::definitions`].
    pub resources: BTreeMap<String, Value>,
    /// The schema of the provider's configuration.
    pub configuration: Value,
    /// The types that schemas refer to, by what stands behind `#/$defs/` (not escaped as a JSON pointer).
    pub definitions: BTreeMap<String, Value>,
}

/// A text that is no package schema.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// The text is not JSON, or lacks what every package schema has.
    #[error("not a Pulumi package schema")]
    NotASchema(#[source] serde_json::Error),
}

/// Converts a package schema.
///
/// What server.yaml writes as `${…}` may stand wherever a value may. Only types that a resource or the configuration
/// refers to are taken along.
///
/// # Errors
/// [`SchemaError`] if the text is no package schema. What a schema says in ways that are not known is left open rather than
/// refused: a property without a known type may be anything.
pub fn convert_package(text: &str) -> Result<PackageSchemas, SchemaError> {
    let package: package::Package<'_> = serde_json::from_str(text).map_err(SchemaError::NotASchema)?;
    Ok(convert::package(&package))
}
