//! From a Pulumi package schema (what GetSchema answers) to JSON Schema 2020-12, for editors that complete and check the
//! `config` of resources in a server.yaml.
//!
//! Enters: the text of a package schema. Leaves: a [`PackageSchemas`], one schema for each resource type, with the types
//! they share. Never here: files, plugins, the grammar of server.yaml around a `config`.

mod convert;
mod package;
mod package_schemas;

pub use package_schemas::{DEFINITIONS, PackageSchemas};

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
