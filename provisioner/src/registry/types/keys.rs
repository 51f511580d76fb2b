//! Types for the `config` of the keys that secrets providers create (docs/spec/simple-container.md#6.4).

use config::diagnostics::Diagnostic;
use config::tree::Node;
use config::types::{CoreConfig, Decoded, TextHandle};
use schemars::JsonSchema;
use serde::Deserialize;

use super::aws::AwsAccountConfig;
use super::gcp::{GcpAccountConfig, missing_key};

/// `config` of `aws-kms` with `provision: true`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AwsKmsConfig {
    /// The account, which the reader of the secrets provider has checked.
    #[serde(rename = "$sc::Flattened")]
    #[schemars(flatten)]
    pub account: AwsAccountConfig,
}

impl CoreConfig for AwsKmsConfig {
    const TYPE: &'static str = "aws-kms";
    const OUTPUTS: &'static [&'static str] = &[];
}

/// `config` of `gcp-kms` with `provision: true`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GcpKmsConfig {
    /// The account.
    #[serde(rename = "$sc::Flattened")]
    #[schemars(flatten)]
    pub account: GcpAccountConfig,
    /// Location of the key ring, such as `europe-north1` or `global`.
    pub key_location: Option<TextHandle>,
    /// Time after which the key material is replaced, such as `7776000s`.
    pub key_rotation_period: Option<TextHandle>,
}

impl CoreConfig for GcpKmsConfig {
    const TYPE: &'static str = "gcp-kms";
    const OUTPUTS: &'static [&'static str] = &[];

    fn validate(decoded: &Decoded<Self>, node: &Node, diagnostics: &mut Vec<Diagnostic>) {
        diagnostics.extend(decoded.config.account.check_with_project(decoded, node));
        let location = missing_key(decoded.non_empty_text(decoded.config.key_location).is_none(), node, "keyLocation");
        diagnostics
            .extend(location.map(|error| error.help("add the location of the key, such as `keyLocation: global`")));
    }
}
