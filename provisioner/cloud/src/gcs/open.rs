//! Client of a bucket.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use http::header::AUTHORIZATION;
use object_store::client::{HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService};
use object_store::gcp::{GcpCredential, GcpSigningCredential, GoogleCloudStorage, GoogleCloudStorageBuilder};
use object_store::{ClientOptions, StaticCredentialProvider};
use state::store::{Objects, OutageReport, OutageWatch};

use super::credentials::Tokens;
use super::explain::GcsService;
use super::url::GcsUrl;
use crate::bucket::{Bucket, LimitedConnector, retry_config};
use crate::google::{GoogleCredentials, GoogleCredentialsError, LoadedCredentials, load_credentials};

/// Variable with the address of an emulator, as Google's own clients read it.
const EMULATOR: &str = "STORAGE_EMULATOR_HOST";
/// Permission that the access tokens ask for.
const SCOPE: &str = "https://www.googleapis.com/auth/devstorage.read_write";

/// Reason why there is no client for a bucket.
#[derive(Debug, thiserror::Error)]
pub enum GcsError {
    /// Credentials cannot be used.
    #[error(transparent)]
    Credentials(#[from] GoogleCredentialsError),
    /// The client cannot be made.
    #[error("the client for the bucket cannot be made")]
    Client(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Returns the objects of a bucket. Sends no request. An emulator (`STORAGE_EMULATOR_HOST`) gets the credentials of the
/// configuration, `GOOGLE_CREDENTIALS` or `GOOGLE_OAUTH_ACCESS_TOKEN`, never those of the machine.
///
/// Arguments are those of [`load_credentials`], and the receiver of outages. Must be called within a tokio runtime.
///
/// # Errors
/// [`GcsError`].
pub fn open_gcs(
    url: &GcsUrl,
    credentials: Option<&GoogleCredentials>,
    environment: &BTreeMap<String, String>,
    home: Option<&Path>,
    outages: OutageReport,
) -> Result<Arc<dyn Objects>, GcsError> {
    let Service { url: service_url, credentials: loaded, emulator } =
        service_of(url, credentials, SCOPE, environment, home)?;
    let source = loaded.as_ref().map(|loaded| loaded.source.clone());
    let watch = OutageWatch::new(outages);
    let store =
        client(url, &service_url, loaded.map(Tokens), &watch).map_err(|error| GcsError::Client(error.into()))?;
    let host = service_url.split_once("://").map_or("", |(_, host)| host).to_owned();
    let service = GcsService { bucket: url.bucket.clone(), host, source };
    let location = url.location(emulator.as_deref());
    Ok(Arc::new(Bucket { store, prefix: url.prefix.clone(), location, base: url.base(), service, watch }))
}

/// Service of a bucket.
pub(super) struct Service {
    /// URL without a slash at its end.
    pub(super) url: String,
    /// Credentials; `None`: requests are anonymous.
    pub(super) credentials: Option<LoadedCredentials>,
    /// URL of the emulator, if it is one.
    emulator: Option<String>,
}

/// Returns the service of a bucket, with credentials for a scope.
pub(super) fn service_of(
    url: &GcsUrl,
    credentials: Option<&GoogleCredentials>,
    scope: &str,
    environment: &BTreeMap<String, String>,
    home: Option<&Path>,
) -> Result<Service, GoogleCredentialsError> {
    let is_set = |name: &str| environment.get(name).is_some_and(|value| !value.is_empty());
    let emulator = environment.get(EMULATOR).filter(|host| !host.is_empty()).map(|host| emulator_url(host));
    let is_given = credentials.is_some() || is_set("GOOGLE_CREDENTIALS") || is_set("GOOGLE_OAUTH_ACCESS_TOKEN");
    let is_anonymous = url.is_anonymous || (emulator.is_some() && !is_given);
    let loaded = (!is_anonymous).then(|| load_credentials(credentials, scope, environment, home)).transpose()?;
    // An emulator takes the place of the domain.
    if let (Some(loaded), Some(domain), None) = (&loaded, &url.universe_domain, &emulator) {
        loaded.check_universe(domain, environment)?;
    }
    Ok(Service { url: emulator.clone().unwrap_or_else(|| url.service()), credentials: loaded, emulator })
}

/// Returns the URL of an emulator whose address may have no scheme.
fn emulator_url(host: &str) -> String {
    let url = if host.contains("://") { host.to_owned() } else { format!("http://{host}") };
    url.trim_end_matches('/').to_owned()
}

fn client(
    url: &GcsUrl,
    service_url: &str,
    tokens: Option<Tokens>,
    watch: &OutageWatch,
) -> object_store::Result<GoogleCloudStorage> {
    // Nothing is signed; without this, the client would look for a key to sign with.
    let signing = StaticCredentialProvider::new(GcpSigningCredential { email: String::new(), private_key: None });
    let builder = GoogleCloudStorageBuilder::new()
        .with_bucket_name(&url.bucket)
        .with_base_url(service_url)
        .with_retry(retry_config())
        .with_signing_credentials(Arc::new(signing));
    match tokens {
        Some(tokens) => {
            let builder = builder.with_credentials(Arc::new(tokens));
            builder.with_http_connector(LimitedConnector::watched_by(watch)).build()
        }
        None => {
            let empty = StaticCredentialProvider::new(GcpCredential { bearer: String::new() });
            let builder = builder.with_credentials(Arc::new(empty)).with_skip_signature(true);
            builder.with_http_connector(AnonymousConnector(LimitedConnector::watched_by(watch))).build()
        }
    }
}

/// Connector whose requests have no credentials: the client sends an empty token with writes, which the service refuses.
#[derive(Debug)]
pub(super) struct AnonymousConnector(pub(super) LimitedConnector);

impl HttpConnector for AnonymousConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(AnonymousService(self.0.connect(options)?)))
    }
}

#[derive(Debug)]
struct AnonymousService(HttpClient);

#[async_trait]
impl HttpService for AnonymousService {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        request.headers_mut().remove(AUTHORIZATION);
        self.0.execute(request).await
    }
}
