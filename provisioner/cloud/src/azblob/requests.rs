//! Removals and copies of blobs, which `object_store` sends in forms of its own: a removal in a batch, whose reply has no words of
//! the service about a single blob, and a copy without the check that it has ended.

use std::sync::Arc;
use std::time::Duration;

use backon::BackoffBuilder as _;
use http::{HeaderName, HeaderValue, Method, header};
use object_store::CredentialProvider as _;
use object_store::azure::{AzureAuthorizer, AzureCredential};
use object_store::client::{HttpClient, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse};
use object_store::path::Path;
use reqwest::StatusCode;
use tokio::time::{Instant, sleep};
use url::Url;

use super::credentials::Signer;
use crate::bucket::RETRY_BUDGET;
use crate::json_client::pauses;

/// Name of the store in errors of the client.
const STORE: &str = "Azure";
/// Longest pause between two requests.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Limit of the time for a copy within the service, which usually ends at once.
const COPY_LIMIT: Duration = RETRY_BUDGET;

const COPY_SOURCE: HeaderName = HeaderName::from_static("x-ms-copy-source");
const COPY_STATUS: HeaderName = HeaderName::from_static("x-ms-copy-status");

/// Client for the blobs of a container.
#[derive(Clone, Debug)]
pub(super) struct BlobRequests {
    pub(super) client: HttpClient,
    pub(super) signer: Arc<Signer>,
    /// Name of the account.
    pub(super) account: String,
    /// URL of the container.
    pub(super) container: Url,
}

/// Refused request, with the reply as the connector encodes it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Refused(String);

/// Copy that has not succeeded.
#[derive(Debug, thiserror::Error)]
enum CopyFailure {
    #[error("the reply has no status of the copy: it is not one of Azure Blob Storage")]
    NoStatus,
    #[error("the copy has ended with the status `{0}`")]
    Ended(String),
    #[error("the copy has not ended within {} s", COPY_LIMIT.as_secs())]
    Unending,
}

impl BlobRequests {
    /// Removes a blob.
    pub(super) async fn remove(&self, blob: &Path) -> object_store::Result<()> {
        let url = self.url(blob);
        self.send(|_| request(Method::DELETE, &url)).await.map(drop)
    }

    /// Copies a blob within the container, and returns once the copy has ended.
    pub(super) async fn copy(&self, from: &Path, to: &Path) -> object_store::Result<()> {
        let (from, to) = (self.url(from), self.url(to));
        let copy = |credential: &AzureCredential| {
            let mut source = from.clone();
            if let AzureCredential::SASToken(pairs) = credential {
                source.query_pairs_mut().extend_pairs(pairs);
            }
            let mut value = HeaderValue::from_str(source.as_str()).map_err(generic)?;
            value.set_sensitive(true);
            let mut request = request(Method::PUT, &to)?;
            request.headers_mut().insert(COPY_SOURCE, value);
            Ok(request)
        };
        let mut status = copy_status(&self.send(copy).await?)?;
        let started = Instant::now();
        let mut pauses = pauses().build();
        while status == "pending" {
            if started.elapsed() > COPY_LIMIT {
                return Err(generic(CopyFailure::Unending));
            }
            // The service does not report the end of a copy by itself.
            sleep(pauses.next().unwrap_or(LONGEST_PAUSE)).await;
            status = copy_status(&self.send(|_| request(Method::HEAD, &to)).await?)?;
        }
        if status == "success" { Ok(()) } else { Err(generic(CopyFailure::Ended(status))) }
    }

    /// Sends a request that may be repeated, until it has a reply that is final, or the time for repetitions ends.
    async fn send(
        &self,
        request: impl Fn(&AzureCredential) -> object_store::Result<HttpRequest> + Send + Sync,
    ) -> object_store::Result<HttpResponse> {
        let started = Instant::now();
        let mut pauses = pauses().build();
        loop {
            let credential = self.signer.get_credential().await?;
            let mut request = request(&credential)?;
            AzureAuthorizer::new(&credential, &self.account).try_authorize(&mut request)?;
            let (failure, is_transient) = match self.client.execute(request).await {
                Ok(reply) if reply.status().is_success() => return Ok(reply),
                Ok(reply) => {
                    let is_transient = is_transient(reply.status());
                    let text = reply.into_body().bytes().await.map_err(generic)?;
                    (generic(Refused(String::from_utf8_lossy(&text).into_owned())), is_transient)
                }
                Err(error) => {
                    let is_final = matches!(error.kind(), HttpErrorKind::Unknown | HttpErrorKind::Decode);
                    (generic(error), !is_final)
                }
            };
            if !is_transient || started.elapsed() > RETRY_BUDGET {
                return Err(failure);
            }
            sleep(pauses.next().unwrap_or(LONGEST_PAUSE)).await;
        }
    }

    fn url(&self, blob: &Path) -> Url {
        let mut url = self.container.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.extend(blob.parts());
        }
        url
    }
}

fn request(method: Method, url: &Url) -> object_store::Result<HttpRequest> {
    let request = http::Request::builder().method(method).uri(url.as_str()).header(header::CONTENT_LENGTH, 0);
    request.body(HttpRequestBody::empty()).map_err(generic)
}

fn copy_status(reply: &HttpResponse) -> object_store::Result<String> {
    let status = reply.headers().get(COPY_STATUS).and_then(|status| status.to_str().ok());
    status.map(str::to_owned).ok_or_else(|| generic(CopyFailure::NoStatus))
}

/// Returns whether the service may reply otherwise later.
fn is_transient(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT)
}

fn generic(error: impl std::error::Error + Send + Sync + 'static) -> object_store::Error {
    object_store::Error::Generic { store: STORE, source: Box::new(error) }
}
