//! Exports a checkpoint without reading its resources.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::deployment_dto::ExportDto;
use super::error::FormatError;
use super::go_json::{self, Escaping};
use super::indent::indent_json;
use super::read::StoredText;

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
/// [`FormatError`] if the text is not a checkpoint, or has an unsupported version or feature.
pub(crate) fn export_verbatim(text: &str) -> Result<String, FormatError> {
    StoredText::parse(text)?;
    let file: StoredFile<'_> = serde_json::from_str(text).map_err(FormatError::Malformed)?;
    let latest = file.checkpoint.and_then(|checkpoint| checkpoint.latest);
    let (version, features) =
        if file.version == Some(4) { (4, file.features.unwrap_or_default()) } else { (3, Vec::new()) };
    let export = ExportDto { version, features, deployment: latest };
    Ok(indent_json(&go_json::to_string(&export, Escaping::Plain).map_err(FormatError::Malformed)?))
}
