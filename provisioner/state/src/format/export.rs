//! A checkpoint as an export, without looking into it.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::deployment_dto::ExportDto;
use super::error::FormatError;
use super::go_json::{self, Escaping};
use super::indent::indented;
use super::read::holds_deployment;

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

/// Writes the deployment of a checkpoint as it is stored, as an export.
///
/// # Errors
/// [`FormatError`] if the text is no checkpoint, or of a version that we do not read.
pub(crate) fn reexport(text: &str) -> Result<String, FormatError> {
    let file: StoredFile<'_> = serde_json::from_str(text).map_err(FormatError::Malformed)?;
    let features = file.features.unwrap_or_default();
    let version = file.version.unwrap_or_default();
    let holds_deployment = holds_deployment(text, version, &features)?;
    let latest = file.checkpoint.filter(|_| holds_deployment).and_then(|checkpoint| checkpoint.latest);
    let (version, features) = if version == 4 { (4, features) } else { (3, Vec::new()) };
    let export = ExportDto { version, features, deployment: latest };
    Ok(indented(&go_json::to_string(&export, Escaping::Plain).map_err(FormatError::Malformed)?))
}
