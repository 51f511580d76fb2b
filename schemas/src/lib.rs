//! Conversion of a Pulumi package schema (the response of GetSchema) to JSON Schema 2020-12, for editors that complete
//! and check the `config` of resources in a server.yaml.
//!
//! Input: the text of a package schema. Output: [`PackageSchemas`], one schema for each resource type, with their
//! shared types. Excluded: files, plugins, the grammar of server.yaml around a `config`.

mod convert;
mod package;

pub use package::{DEFINITIONS, PackageSchemas};

/// Error for a text that is not a package schema.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// The text is not JSON, or a required field is missing.
    #[error("not a Pulumi package schema")]
    NotASchema(#[source] serde_json::Error),
}

/// Converts a package schema.
///
/// A placeholder `${…}` may replace any value. Only types to which a resource or the configuration refers are
/// converted.
///
/// # Errors
/// [`SchemaError`] if the text is not a package schema. Unknown constructs are not errors: a property without a known
/// type accepts any value.
pub fn convert_package(text: &str) -> Result<PackageSchemas, SchemaError> {
    // The fields of a struct may also be elements of an array.
    if !text.trim_start().starts_with('{') {
        return Err(SchemaError::NotASchema(serde::de::Error::custom("it is not a JSON object")));
    }
    let package: package::Package<'_> = serde_json::from_str(text).map_err(SchemaError::NotASchema)?;
    Ok(convert::package(&package))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn array_is_no_schema() {
        for text in ["[]", r#"["p"]"#, "\n [\"p\"]", "null", "1", ""] {
            assert!(convert_package(text).is_err(), "{text}");
        }
        assert!(convert_package("\n {\"name\": \"p\"}").is_ok());
    }
}
