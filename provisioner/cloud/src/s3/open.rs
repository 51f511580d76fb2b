//! Client of a bucket.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use aws_config::SdkConfig;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey, Checksum};
use state::store::{Objects, OutageReport, OutageWatch};

use super::credentials::ChainCredentials;
use super::endpoint::{BucketAddress, EndpointSettings};
use super::explain::S3Service;
use super::url::{S3Encryption, S3Url};
use crate::aws::{
    AwsConfigError, AwsKeys, ParameterError, ca_bundle, check_endpoint, configured_endpoint, credential_sources,
    load_config,
};
use crate::bucket::{Bucket, LimitedConnector, retry_config};

/// Region that requests are signed for where an endpoint is given and no region: services with the interface of S3 accept it.
const DEFAULT_REGION: &str = "us-east-1";

/// Reason why there is no client for a bucket.
#[derive(Debug, thiserror::Error)]
pub enum S3Error {
    /// The endpoint of the environment or the profile is invalid.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// Region, profile or certificates cannot be loaded.
    #[error(transparent)]
    Config(#[from] AwsConfigError),
    /// No region.
    #[error("the region of the bucket is not known: add `region=…` to its URL, or set AWS_REGION")]
    NoRegion,
    /// Settings of the environment or of a profile that select endpoints of AWS, beside another endpoint.
    #[error(
        "AWS_USE_FIPS_ENDPOINT and AWS_USE_DUALSTACK_ENDPOINT select endpoints of AWS: unset them, or remove the endpoint `{0}`"
    )]
    Endpoint(String),
    /// The client cannot be made.
    #[error("the client for the bucket cannot be made")]
    Client(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Returns the objects of a bucket. Sends no request to it; the region may come from the metadata service of an instance.
///
/// Arguments are those of [`load_config`], and the receiver of outages.
///
/// # Errors
/// [`S3Error`].
pub async fn open_s3(
    url: &S3Url,
    keys: Option<&AwsKeys>,
    environment: &BTreeMap<String, String>,
    home: Option<&Path>,
    outages: OutageReport,
) -> Result<Arc<dyn Objects>, S3Error> {
    let config = load_config(&url.parameters, keys, environment, home).await?;
    let endpoint = endpoint(url, &config)?;
    let region = match (config.region(), &endpoint) {
        (Some(region), _) => region.to_string(),
        (None, Some(_)) => DEFAULT_REGION.to_owned(),
        (None, None) => return Err(S3Error::NoRegion),
    };
    let settings = EndpointSettings {
        endpoint: endpoint.as_deref(),
        dualstack: config.use_dual_stack().unwrap_or_default(),
        fips: config.use_fips().unwrap_or_default(),
    };
    if let Some(endpoint) = endpoint.as_ref().filter(|_| settings.dualstack || settings.fips) {
        return Err(S3Error::Endpoint(endpoint.clone()));
    }
    let address = BucketAddress::new(url, &region, settings);
    let credentials = config.credentials_provider().map(|provider| Arc::new(ChainCredentials::new(provider)));
    let watch = OutageWatch::new(outages);
    let connector = LimitedConnector::watched_by(&watch);
    let connector = match ca_bundle(environment)? {
        Some(bundle) => connector.trusting(&bundle).map_err(|error| S3Error::Client(error.into()))?,
        None => connector,
    };
    let store = client(url, &region, &address, credentials.clone(), connector)
        .map_err(|error| S3Error::Client(error.into()))?;
    let host = address.url.split_once("://").map_or("", |(_, rest)| rest).to_owned();
    let sources = credential_sources(&url.parameters, keys, environment);
    let service = S3Service { bucket: url.bucket.clone(), region, host, sources, credentials };
    let location = url.location(endpoint.as_deref());
    Ok(Arc::new(Bucket { store, prefix: url.prefix.clone(), location, base: url.base(), service, watch }))
}

/// Returns the endpoint of the URL, else that of the environment or the profile: for S3, else for all services.
fn endpoint(url: &S3Url, config: &SdkConfig) -> Result<Option<String>, ParameterError> {
    match &url.parameters.endpoint {
        Some(endpoint) => Ok(Some(endpoint.clone())),
        None => configured_endpoint(config, "S3").map(|endpoint| check_endpoint(&endpoint)).transpose(),
    }
}

fn client(
    url: &S3Url,
    region: &str,
    address: &BucketAddress,
    credentials: Option<Arc<ChainCredentials>>,
    connector: LimitedConnector,
) -> object_store::Result<AmazonS3> {
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(&url.bucket)
        .with_region(region)
        .with_endpoint(&address.url)
        .with_virtual_hosted_style_request(address.is_virtual_hosted)
        .with_retry(retry_config())
        .with_http_connector(connector)
        // Not all services with the interface of S3 have the request for several objects.
        .with_disable_bulk_delete(true);
    builder = match credentials {
        Some(credentials) => builder.with_credentials(credentials),
        None => builder.with_skip_signature(true),
    };
    if url.sends_checksums {
        builder = builder.with_checksum_algorithm(Checksum::SHA256);
    }
    let (name, key) = match &url.encryption {
        None => return builder.build(),
        Some(S3Encryption::S3) => ("AES256", None),
        Some(S3Encryption::Kms(key)) => ("aws:kms", key.as_ref()),
        Some(S3Encryption::DualLayerKms(key)) => ("aws:kms:dsse", key.as_ref()),
    };
    builder = builder.with_config("aws_server_side_encryption".parse::<AmazonS3ConfigKey>()?, name);
    if let Some(key) = key {
        builder = builder.with_config("aws_sse_kms_key_id".parse::<AmazonS3ConfigKey>()?, key);
    }
    builder.build()
}
