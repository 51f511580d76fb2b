//! Settings that all clients of AWS share: parameters of URLs, and the chain of credentials.
//!
//! Input: the query of a URL (`s3://`, `awskms://`), keys of the configuration, and the environment of the program.
//! Output: an [`SdkConfig`](aws_config::SdkConfig) with a region and a provider of credentials. Excluded: what a single
//! service does with them.

mod config;
mod endpoint;
mod failure;
mod json_client;
mod keys;
mod limited;
mod parameters;

pub use config::{AwsConfigError, ca_bundle, credential_sources, load_config};
pub use failure::CredentialsFailure;
pub use keys::AwsKeys;
pub use parameters::{AwsParameters, ChecksumMode, ParameterError, first_values};

pub(crate) use endpoint::{Domains, configured_endpoint};
pub(crate) use json_client::{JsonClient, JsonError};
pub(crate) use parameters::{check_endpoint, parse_bool};
