//! Writes a snapshot as the text of a checkpoint or of an export.

use super::deployment_dto::{CheckpointDto, CheckpointFileDto, DeploymentDto, ExportDto};
use super::encryption::{Encryption, SecretEncryption};
use super::features;
use super::go_json::{self, Escaping};
use super::indent::indent_json;
use crate::secrets::SecretsError;
use crate::snapshot::Snapshot;

/// Typical size of a stored resource in bytes.
const BYTES_PER_RESOURCE: usize = 2048;

/// Writes a checkpoint. `earlier_length` is the length of the text that it replaces, 0 if it is not known: a buffer that grows
/// takes three times the text while it is copied.
///
/// # Errors
/// [`SecretsError`] if a secret cannot be encrypted.
pub(crate) fn write_checkpoint(
    stack: &str,
    snapshot: Option<&Snapshot>,
    mode: SecretEncryption<'_>,
    earlier_length: usize,
) -> Result<String, SecretsError> {
    let encryption = Encryption::new(mode);
    let (version, features) = version(snapshot);
    let latest = snapshot.map(|snapshot| DeploymentDto::new(snapshot, &encryption));
    let file = CheckpointFileDto { version, features, checkpoint: CheckpointDto { stack, latest } };
    let resources = snapshot.map_or(0, |snapshot| snapshot.resources.len());
    // Memory that is not written to is not used.
    let mut out = Vec::with_capacity((resources * BYTES_PER_RESOURCE).max(earlier_length + earlier_length / 8));
    go_json::append(&mut out, &file, Escaping::Plain).map_err(|error| encryption.take_cause(error))?;
    Ok(go_json::into_string(out))
}

/// Writes a snapshot in the format of `pulumi stack export` and `pulumi stack import`.
///
/// # Errors
/// [`SecretsError`] if a secret cannot be encrypted.
pub(crate) fn write_export(snapshot: Option<&Snapshot>, mode: SecretEncryption<'_>) -> Result<String, SecretsError> {
    let encryption = Encryption::new(mode);
    let (version, features) = version(snapshot);
    let deployment = snapshot.map(|snapshot| DeploymentDto::new(snapshot, &encryption));
    let export = ExportDto { version, features, deployment };
    let text = go_json::to_string(&export, Escaping::Plain).map_err(|error| encryption.take_cause(error))?;
    Ok(indent_json(&text))
}

/// Returns the format version that a snapshot needs, and the names of its features.
fn version(snapshot: Option<&Snapshot>) -> (u32, Vec<&'static str>) {
    let features = snapshot.map(features::used_by).unwrap_or_default();
    let version = if features.is_empty() { 3 } else { 4 };
    (version, features.into_iter().map(features::Feature::name).collect())
}
