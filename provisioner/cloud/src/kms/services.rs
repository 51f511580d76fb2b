//! Credentials and environment of the clients of keys, and their failures.
//!
//! Input: what the program knows of its caller. Excluded: the URLs of keys.

use std::collections::BTreeMap;
use std::path::PathBuf;

use state::secrets::{KeyFailure, KeyFailureKind};

use crate::aws::AwsKeys;
use crate::google::GoogleCredentials;

/// Services of keys: AWS KMS (`awskms://`), Google Cloud KMS (`gcpkms://`), Azure Key Vault (`azurekeyvault://`) and HashiCorp Vault
/// (`hashivault://`).
#[derive(Clone, Debug, Default)]
pub struct KeyServices {
    /// Access key for AWS, in place of the chain of credentials.
    pub aws: Option<AwsKeys>,
    /// Region of keys in AWS whose URL names none.
    pub aws_region: Option<String>,
    /// Credentials for Google Cloud, in place of the chain of credentials.
    pub google: Option<GoogleCredentials>,
    /// Environment of the program.
    pub environment: BTreeMap<String, String>,
    /// Home folder of the user.
    pub home: Option<PathBuf>,
}

/// Creates a failure.
pub(super) fn failure(kind: KeyFailureKind, message: impl Into<String>) -> KeyFailure {
    KeyFailure { kind, message: message.into() }
}
