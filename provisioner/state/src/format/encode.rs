//! A snapshot to the text of a checkpoint.

use super::deployment_dto::{CheckpointDto, CheckpointFileDto, DeploymentDto, ExportDto};
use super::encryption::{Encryption, Sealing};
use super::features;
use super::go_json::{self, Escaping};
use super::indent::indented;
use crate::secrets::SecretsError;
use crate::snapshot::Snapshot;

/// The usual size of a resource in bytes.
const BYTES_PER_RESOURCE: usize = 2048;

/// Writes a checkpoint.
///
/// # Errors
/// [`SecretsError`] if a secret cannot be encrypted.
pub(crate) fn write_checkpoint(
    stack: &str,
    snapshot: Option<&Snapshot>,
    sealing: Sealing<'_>,
) -> Result<String, SecretsError> {
    let encryption = Encryption::new(sealing);
    let (version, features) = version(snapshot);
    let latest = snapshot.map(|snapshot| DeploymentDto::new(snapshot, &encryption));
    let file = CheckpointFileDto { version, features, checkpoint: CheckpointDto { stack, latest } };
    let resources = snapshot.map_or(0, |snapshot| snapshot.resources.len());
    let mut out = Vec::with_capacity(resources * BYTES_PER_RESOURCE);
    go_json::append(&mut out, &file, Escaping::Plain).map_err(|error| encryption.cause(error))?;
    Ok(go_json::into_string(out))
}

/// Writes what `pulumi stack export` shows and `pulumi stack import` takes.
///
/// # Errors
/// [`SecretsError`] if a secret cannot be encrypted.
pub(crate) fn write_export(snapshot: Option<&Snapshot>, sealing: Sealing<'_>) -> Result<String, SecretsError> {
    let encryption = Encryption::new(sealing);
    let (version, features) = version(snapshot);
    let deployment = snapshot.map(|snapshot| DeploymentDto::new(snapshot, &encryption));
    let export = ExportDto { version, features, deployment };
    let text = go_json::to_string(&export, Escaping::Plain).map_err(|error| encryption.cause(error))?;
    Ok(indented(&text))
}

/// Returns the version that a snapshot needs, with its features.
fn version(snapshot: Option<&Snapshot>) -> (u32, Vec<&'static str>) {
    let features = snapshot.map(features::of).unwrap_or_default();
    let version = if features.is_empty() { 3 } else { 4 };
    (version, features.into_iter().map(features::Feature::name).collect())
}
