//! Types for the `config` of the core types on Google Cloud.

use config::diagnostics::Diagnostic;
use config::tree::Node;
use config::types::{CoreConfig, Decoded, RequiredKey, TextHandle, TypeOrigin};
use schemars::JsonSchema;
use serde::Deserialize;

use super::unused::unused;

/// Account and project of the resources of a type on Google Cloud (docs/spec/simple-container.md#7.2).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GcpAccountConfig {
    /// Key of a service account, usually `${auth:NAME}`.
    #[schemars(extend("writeOnly" = true))]
    pub credentials: Option<TextHandle>,
    /// The project, usually `${auth:NAME.projectId}`.
    pub project_id: Option<TextHandle>,
}

/// Credentials of a type on Google Cloud.
pub(super) const CREDENTIALS: RequiredKey = (
    "credentials",
    "add `credentials: \"${auth:NAME}\"`, where NAME is a `gcp-service-account` in the stack's secrets.yaml",
);
/// Project of a type on Google Cloud, in which an API has to be on.
pub(super) const PROJECT: RequiredKey = ("projectId", "add `projectId: \"${auth:NAME.projectId}\"`");

/// `config` of `gcp-bucket` (docs/spec/simple-container.md#7.6).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(description = "A private bucket on Google Cloud Storage, and a service account of its own with a key.")]
pub struct GcpBucketConfig {
    /// The account.
    #[serde(rename = "$sc::Flattened")]
    #[schemars(flatten)]
    pub account: GcpAccountConfig,
    /// Name of the bucket without the environment suffix, which is added. Defaults to the name of the resource.
    pub name: String,
    /// Same as `name`. Overrides `name`.
    pub bucket_name: String,
    /// Location of the bucket, such as `EU`.
    pub location: Option<TextHandle>,
    /// Import the existing bucket with exactly this name instead of creating one.
    pub adopt: bool,
}

impl GcpBucketConfig {
    /// Returns the configured name of the bucket: `bucketName`, else `name`; `None` if both are empty.
    pub fn configured_name(&self) -> Option<&str> {
        [&self.bucket_name, &self.name].into_iter().map(String::as_str).find(|name| !name.is_empty())
    }
}

impl CoreConfig for GcpBucketConfig {
    const TYPE: &'static str = "gcp-bucket";
    const ORIGIN: TypeOrigin = TypeOrigin::SimpleContainer("GcpBucket");
    const PROVIDER: &'static str = "gcp";
    const OUTPUTS: &'static [&'static str] = &["bucket", "location", "access-key", "secret-key", "endpoint"];

    const REQUIRED: &'static [RequiredKey] =
        &[CREDENTIALS, ("location", "add the location of the bucket, such as `location: EU`")];

    fn required_by(decoded: &Decoded<Self>) -> Vec<RequiredKey> {
        let config = &decoded.config;
        let is_nameless = config.adopt && config.configured_name().is_none();
        is_nameless
            .then_some(("bucketName", "add the name of the existing bucket: `adopt` imports it"))
            .into_iter()
            .collect()
    }

    fn validate(decoded: &Decoded<Self>, node: &Node, diagnostics: &mut Vec<Diagnostic>) {
        let GcpBucketConfig { name, bucket_name, .. } = &decoded.config;
        if !bucket_name.is_empty() && bucket_name != name {
            diagnostics.extend(unused(node, &["name"], ": `bucketName` overrides it"));
        }
    }
}

/// Returns a warning of `project`, which has no effect, if it names another project than `projectId`.
pub(super) fn unused_project<T>(
    decoded: &Decoded<T>,
    project: Option<TextHandle>,
    account: &GcpAccountConfig,
    node: &Node,
) -> Vec<Diagnostic> {
    let known = |handle| decoded.non_empty_text(handle).and_then(|text| text.known());
    match (known(project), known(account.project_id)) {
        (Some(project), Some(id)) if project != id => {
            unused(node, &["project"], ": `projectId` names the project").collect()
        }
        _ => Vec::new(),
    }
}
