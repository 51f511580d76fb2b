//! Type for the `config` of registries on Google Cloud.

use config::diagnostics::{Code, Diagnostic};
use config::tree::Node;
use config::types::{CoreConfig, Decoded, RequiredKey, TextHandle, TypeOrigin};
use schemars::JsonSchema;
use serde::Deserialize;

use super::gcp::{CREDENTIALS, GcpAccountConfig, PROJECT};

/// `config` of `gcp-artifact-registry` (docs/spec/simple-container.md#7.7).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(description = "A registry for container images, and two service accounts with keys for it.")]
pub struct GcpArtifactRegistryConfig {
    /// The account.
    #[serde(rename = "$sc::Flattened")]
    #[schemars(flatten)]
    pub account: GcpAccountConfig,
    /// Location of the registry, such as `europe-north1`.
    pub location: Option<TextHandle>,
    /// Format of the registry; `{}` for the defaults.
    pub docker: Option<DockerFormat>,
    /// Let everybody read the images.
    pub public: bool,
    /// Domain of the registry. Needs a registrar.
    pub domain: String,
    /// User and password that the domain requires.
    pub basic_auth: Option<BasicAuth>,
}

/// Format of a registry for container images.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DockerFormat {
    /// Refuse to move a tag to another image.
    pub immutable_tags: bool,
}

/// User and password.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["username", "password"]))]
pub struct BasicAuth {
    /// Name of the user.
    pub username: Option<TextHandle>,
    /// Password of the user.
    #[schemars(extend("writeOnly" = true))]
    pub password: Option<TextHandle>,
}

impl CoreConfig for GcpArtifactRegistryConfig {
    const TYPE: &'static str = "gcp-artifact-registry";
    const ORIGIN: TypeOrigin = TypeOrigin::SimpleContainer("ArtifactRegistryConfig");
    const PROVIDER: &'static str = "gcp";
    const DOMAIN: Option<&'static str> = Some("domain");
    const REQUIRED: &'static [RequiredKey] = &[
        CREDENTIALS,
        PROJECT,
        ("location", "add a location, such as `location: europe-north1`"),
        ("docker", "add `docker: {}`: other formats are not supported"),
    ];

    fn validate(decoded: &Decoded<Self>, node: &Node, diagnostics: &mut Vec<Diagnostic>) {
        let config = &decoded.config;
        let Some(auth) = &config.basic_auth else { return };
        let node = node.get_path(["basicAuth"]).unwrap_or(node);
        for (key, handle) in [("username", auth.username), ("password", auth.password)] {
            if decoded.non_empty_text(handle).is_none() {
                diagnostics.push(Diagnostic::error(Code("missing-key"), node.span, format_args!("`{key}` is missing")));
            }
        }
        if config.domain.is_empty() {
            let warning = Diagnostic::warning(Code("unused"), node.span, "`basicAuth` is ignored without `domain`");
            diagnostics.push(warning.help("the service accounts give access to the registry itself"));
        }
    }
}
