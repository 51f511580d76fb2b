//! Exports a checkpoint without reading its resources.

use bridge::json::nesting;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::deployment_dto::ExportDto;
use super::error::FormatError;
use super::go_json::{self, Escaping};
use super::indent::indent_json;
use super::read::StoredText;
use super::read_value::MAX_TEXT_NESTING;

#[derive(Deserialize)]
struct StoredFile<'a> {
    version: Option<u32>,
    features: Option<Vec<String>>,
    #[serde(borrow)]
    checkpoint: Option<StoredCheckpoint<'a>>,
}

#[derive(Deserialize)]
struct StoredCheckpoint<'a> {
    #[serde(alias = "Latest", borrow)]
    latest: Option<&'a RawValue>,
}

/// Writes the stored deployment of a checkpoint verbatim as an export.
///
/// # Errors
/// [`FormatError`] if the text is not a checkpoint, has an unsupported version or feature, or is nested deeper than a state
/// that can be read: the indentation of such a text takes memory that grows with the square of its nesting.
pub(crate) fn export_verbatim(text: &str) -> Result<String, FormatError> {
    StoredText::parse(text)?;
    let file: StoredFile<'_> = serde_json::from_str(text).map_err(FormatError::Malformed)?;
    let latest = file.checkpoint.and_then(|checkpoint| checkpoint.latest);
    if latest.is_some_and(|latest| nesting(latest.get().as_bytes()) > MAX_TEXT_NESTING) {
        return Err(FormatError::TooDeep);
    }
    let (version, features) =
        if file.version == Some(4) { (4, file.features.unwrap_or_default()) } else { (3, Vec::new()) };
    let export = ExportDto { version, features, deployment: latest };
    Ok(indent_json(&go_json::to_string(&export, Escaping::Plain).map_err(FormatError::Malformed)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_that_is_nested_too_deep_to_be_read_is_not_exported() {
        let export = |depth| {
            let value = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            export_verbatim(&format!(
                r#"{{"version":3,"checkpoint":{{"stack":"dev","latest":{{"manifest":{{}},"resources":[{value}]}}}}}}"#
            ))
        };
        assert!(export(500).is_ok());
        assert!(matches!(export(20_000), Err(FormatError::TooDeep)));
    }
}
