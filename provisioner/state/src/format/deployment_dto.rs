//! Stored form of a checkpoint and of an exported deployment.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::encryption::Encryption;
use super::go_json::{self, Escaping};
use super::resource_dto::ResourceDto;
use crate::resource::ResourceState;
use crate::snapshot::{Manifest, PendingOperation, SecretsDescription, Snapshot};

/// File of a checkpoint.
#[derive(Serialize)]
pub(super) struct CheckpointFileDto<'s, 'e> {
    pub(super) version: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) features: Vec<&'static str>,
    pub(super) checkpoint: CheckpointDto<'s, 'e>,
}

/// Content of a checkpoint without its version.
#[derive(Serialize)]
pub(super) struct CheckpointDto<'s, 'e> {
    pub(super) stack: &'s str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) latest: Option<DeploymentDto<'s, 'e>>,
}

/// Output of `pulumi stack export`.
#[derive(Serialize)]
pub(super) struct ExportDto<F, D> {
    pub(super) version: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) features: Vec<F>,
    pub(super) deployment: Option<D>,
}

/// Deployment, with its members in Pulumi's order.
#[derive(Serialize)]
pub(super) struct DeploymentDto<'s, 'e> {
    manifest: ManifestDto<'s>,
    #[serde(skip_serializing_if = "Option::is_none")]
    secrets_providers: Option<SecretsDto<'s>>,
    #[serde(skip_serializing_if = "ResourcesDto::is_empty")]
    resources: ResourcesDto<'s, 'e>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pending_operations: Vec<OperationDto<'s, 'e>>,
    metadata: &'s serde_json::Map<String, serde_json::Value>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    snippets: &'s [serde_json::Value],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    extensions: &'s BTreeMap<String, serde_json::Value>,
}

impl<'s, 'e> DeploymentDto<'s, 'e> {
    pub(super) fn new(snapshot: &'s Snapshot, encryption: &'s Encryption<'e>) -> Self {
        let operation = |operation: &'s PendingOperation| OperationDto {
            resource: ResourceDto::new(&operation.resource, encryption),
            kind: operation.kind.as_str(),
        };
        Self {
            manifest: ManifestDto::from(&snapshot.manifest),
            secrets_providers: snapshot.secrets.as_ref().map(SecretsDto::from),
            resources: ResourcesDto { resources: &snapshot.resources, encryption },
            pending_operations: snapshot.pending_operations.iter().map(operation).collect(),
            metadata: &snapshot.rest.metadata,
            snippets: &snapshot.rest.snippets,
            extensions: &snapshot.rest.extensions,
        }
    }
}

struct ResourcesDto<'s, 'e> {
    resources: &'s [Arc<ResourceState>],
    encryption: &'s Encryption<'e>,
}

impl ResourcesDto<'_, '_> {
    fn is_empty(&self) -> bool {
        self.resources.is_empty()
    }
}

impl Serialize for ResourcesDto<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.resources.iter().map(|resource| ResourceDto::new(resource, self.encryption)))
    }
}

#[derive(Serialize)]
struct ManifestDto<'s> {
    time: &'s str,
    magic: String,
    version: &'s str,
}

impl<'s> From<&'s Manifest> for ManifestDto<'s> {
    fn from(manifest: &'s Manifest) -> Self {
        let version = manifest.version.as_deref();
        Self {
            time: manifest.time.as_deref().unwrap_or_default(),
            magic: magic(version).unwrap_or_default(),
            version: version.unwrap_or_default(),
        }
    }
}

#[derive(Serialize)]
struct SecretsDto<'s> {
    #[serde(rename = "type")]
    kind: &'s str,
    /// State of the manager. Pulumi writes it with the manager's own encoder, which escapes for HTML.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<Box<RawValue>>,
}

impl<'s> From<&'s SecretsDescription> for SecretsDto<'s> {
    fn from(secrets: &'s SecretsDescription) -> Self {
        let state = Some(&secrets.state).filter(|state| !state.is_null());
        Self { kind: &secrets.kind, state: state.map(|state| go_json::to_raw(state, Escaping::Html)) }
    }
}

#[derive(Serialize)]
struct OperationDto<'s, 'e> {
    resource: ResourceDto<'s, 'e>,
    #[serde(rename = "type")]
    kind: &'static str,
}

/// Returns the checksum (`magic`) of a manifest: the SHA-256 of its version.
pub(super) fn magic(version: Option<&str>) -> Option<String> {
    version.map(|version| hex::encode(Sha256::digest(version)))
}
