//! Types for the `config` of the core types on Google Cloud.

use config::diagnostics::{Code, Diagnostic};
use config::tree::Node;
use config::types::{CoreConfig, Decoded, TextHandle};
use schemars::JsonSchema;
use serde::Deserialize;

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

impl GcpAccountConfig {
    /// Returns an error if the credentials are missing.
    pub(super) fn check<T>(&self, decoded: &Decoded<T>, node: &Node) -> Option<Diagnostic> {
        let summary = "the credentials of a Google Cloud account are missing";
        let error = || {
            Diagnostic::error(Code("credentials"), node.span, summary).help(
                "add `credentials: \"${auth:NAME}\"`, where NAME is a `gcp-service-account` in the stack's secrets.yaml",
            )
        };
        decoded.non_empty_text(self.credentials).is_none().then(error)
    }

    /// Returns an error if the credentials are missing, or the project, in which an API has to be on.
    pub(super) fn check_with_project<T>(&self, decoded: &Decoded<T>, node: &Node) -> Vec<Diagnostic> {
        let project = missing_key(decoded.non_empty_text(self.project_id).is_none(), node, "projectId");
        let project = project.map(|error| error.help("add `projectId: \"${auth:NAME.projectId}\"`"));
        self.check(decoded, node).into_iter().chain(project).collect()
    }
}

/// Returns the error for a required key that is missing.
pub(super) fn missing_key(is_missing: bool, node: &Node, key: &str) -> Option<Diagnostic> {
    is_missing.then(|| Diagnostic::error(Code("missing-key"), node.span, format!("`{key}` is missing")))
}

/// Returns the error for a missing key that `adopt` needs, at the position of `adopt`.
pub(super) fn missing_key_of_adopted(is_missing: bool, node: &Node, key: &str) -> Option<Diagnostic> {
    let span = node.get_path(["adopt"]).map(|adopt| adopt.span);
    let error = || Diagnostic::error(Code("missing-key"), span, format!("`adopt` needs `{key}` of what exists"));
    is_missing.then(|| error().help(format!("add `{key}`")))
}

/// `config` of `gcp-bucket` (docs/spec/simple-container.md#7.6).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(description = "A private bucket on Google Cloud Storage, and a service account of its own with a key.")]
#[schemars(extend("required" = ["credentials", "location"]))]
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
    const OUTPUTS: &'static [&'static str] = &["bucket", "location", "access-key", "secret-key", "endpoint"];

    fn validate(decoded: &Decoded<Self>, node: &Node, diagnostics: &mut Vec<Diagnostic>) {
        let config = &decoded.config;
        diagnostics.extend(config.account.check(decoded, node));
        let location = missing_key(decoded.non_empty_text(config.location).is_none(), node, "location");
        diagnostics.extend(location.map(|error| error.help("add the location of the bucket, such as `location: EU`")));
        if config.adopt && config.configured_name().is_none() {
            let span = node.get_path(["adopt"]).map(|adopt| adopt.span);
            diagnostics.push(
                Diagnostic::error(Code("missing-key"), span, "`adopt` needs the name of the existing bucket")
                    .help("add `bucketName`"),
            );
        }
    }
}
