//! Types for the `config` of the keys that secrets providers create (docs/spec/simple-container.md#6.4).

use config::types::{CoreConfig, RequiredKey, TextHandle, TypeOrigin};
use schemars::JsonSchema;
use serde::Deserialize;

use super::aws::AwsAccountConfig;
use super::gcp::{CREDENTIALS, GcpAccountConfig, PROJECT};

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
    const ORIGIN: TypeOrigin = TypeOrigin::SimpleContainer("SecretsProviderConfig");
    const PROVIDER: &'static str = "aws";
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
    const ORIGIN: TypeOrigin = TypeOrigin::SimpleContainer("SecretsProviderConfig");
    const PROVIDER: &'static str = "gcp";
    const REQUIRED: &'static [RequiredKey] =
        &[CREDENTIALS, PROJECT, ("keyLocation", "add the location of the key, such as `keyLocation: global`")];
}
