//! Opening of a container, with the credentials that select it.

use std::collections::BTreeMap;
use std::sync::Arc;

use object_store::ClientOptions;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::client::{HttpClient, HttpConnector};
use state::store::{Objects, OutageReport, OutageWatch};
use url::Url;

use super::account::{Account, AzblobSettingsError, account_of};
use super::container::Container;
use super::credentials::Signer;
use super::explain::AzblobService;
use super::requests::BlobRequests;
use super::url::AzblobUrl;
use crate::azure::AzureCredentials;
use crate::bucket::{Bucket, LimitedConnector, retry_config};

/// Scope of the access tokens.
const SCOPE: &str = "https://storage.azure.com/.default";

/// Reason why there is no client for a container.
#[derive(Debug, thiserror::Error)]
pub enum AzblobError {
    /// The URL and the environment select no account.
    #[error(transparent)]
    Settings(#[from] AzblobSettingsError),
    /// The client cannot be made.
    #[error("the client for the container cannot be made")]
    Client(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Returns the objects of a container. Sends no request. Must be called within a tokio runtime.
///
/// Arguments are the URL, the environment of the program, and the receiver of outages.
///
/// # Errors
/// [`AzblobError`].
pub fn open_azblob(
    url: &AzblobUrl,
    environment: &BTreeMap<String, String>,
    outages: OutageReport,
) -> Result<Arc<dyn Objects>, AzblobError> {
    let account = account_of(url, environment)?;
    let location = format!("{}?{}", url.base().trim_end_matches('/'), account.parameters());
    let (container, host) = (url.container.clone(), account.host().to_owned());
    let Account { name, service: service_url, signing, source: of_setting } = account;
    let signer = Arc::new(Signer::new(signing, AzureCredentials::new(environment, SCOPE)));
    let watch = OutageWatch::new(outages);
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| AzblobError::Client(error);
    let client = LimitedConnector::watched_by(&watch).connect(&ClientOptions::new());
    let client = client.map_err(|error| failed(error.into()))?;
    let builder = MicrosoftAzureBuilder::new()
        .with_account(&name)
        .with_endpoint(service_url.clone())
        .with_container_name(&container)
        .with_credentials(signer.clone())
        .with_retry(retry_config())
        .with_http_connector(SharedClient(client.clone()));
    let store = builder.build().map_err(|error| failed(error.into()))?;
    let container_url = Url::parse(&format!("{service_url}/{container}")).map_err(|error| failed(error.into()))?;
    let requests = BlobRequests { client, signer: signer.clone(), account: name.clone(), container: container_url };
    let service = AzblobService { container, account: name, host, of_setting, signer };
    let store = Container { client: store, requests };
    Ok(Arc::new(Bucket { store, prefix: url.stored_prefix(), location, base: url.base(), service, watch }))
}

/// Connector that always returns the same client.
#[derive(Debug)]
struct SharedClient(HttpClient);

impl HttpConnector for SharedClient {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(self.0.clone())
    }
}
