//! Requests to an API with a token, and to public addresses without one: redirects, and the errors that responses mean.

use std::time::{Duration, SystemTime};

use backon::{ExponentialBuilder, Retryable as _};
use http_body_util::BodyExt as _;
use http_body_util::combinators::BoxBody;
use octocrab::Octocrab;
use prost::bytes::Bytes;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{StatusCode, redirect};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tracing::debug;
use url::Url;

use super::address::is_below;
use super::credentials::Credential;
use super::error::FetchError;
use super::web::{self, chain};
use crate::error::cut;
use crate::json;
use crate::plugin::{is_loopback, is_plain_text};
use crate::speed::{SpeedWindow, TooSlow};

/// Maximum number of redirects of a request.
const MAX_REDIRECTS: usize = 10;
/// Limit of the time for a short response, with its redirects.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum length of a short response, in bytes.
const MAX_RESPONSE_BYTES: usize = 32 << 20;

/// Body of a response.
pub(super) type Body = BoxBody<Bytes, BodyError>;

/// Error while a body is received.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    #[error("{0}")]
    Failed(String),
    #[error(transparent)]
    TooSlow(#[from] TooSlow),
}

/// Returns the next bytes of a body, or `None` at its end.
pub(super) async fn next_bytes(body: &mut Body, window: &mut SpeedWindow) -> Result<Option<Bytes>, BodyError> {
    while let Some(frame) = window.limit(body.frame()).await? {
        if let Ok(bytes) = frame?.into_data() {
            window.record(bytes.len());
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}

/// Reads a body into memory, up to [`MAX_RESPONSE_BYTES`].
pub(super) async fn read_body(mut body: Body, window: &mut SpeedWindow) -> Result<Vec<u8>, BodyError> {
    let mut content = Vec::new();
    while let Some(bytes) = next_bytes(&mut body, window).await? {
        if content.len() + bytes.len() > MAX_RESPONSE_BYTES {
            return Err(BodyError::Failed("the response is too long".to_owned()));
        }
        content.extend_from_slice(&bytes);
    }
    Ok(content)
}

/// Client of an API.
#[derive(Clone, Debug)]
pub(super) struct ApiClient {
    base: Url,
    /// Name of the credential that is sent, if there is one.
    credential: Option<String>,
    client: Octocrab,
    /// Client without the token, for redirects to other hosts and for public addresses.
    client_without_token: reqwest::Client,
}

impl ApiClient {
    /// Creates the client of a base URL. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`FetchError::UnusableToken`] if the token is invalid or would be sent in plain text;
    /// [`FetchError::InvalidAddress`].
    pub(super) fn new(api: &str, credential: Option<&Credential>) -> Result<Self, FetchError> {
        let address = |reason: String| FetchError::InvalidAddress { address: api.to_owned(), reason };
        let base = Url::parse(api).map_err(|error| address(error.to_string()))?;
        let host = base.host_str().unwrap_or_default().to_owned();
        // The same base address as in `get`: octocrab sends the token to this authority only.
        let builder = Octocrab::builder().base_uri(base.as_str().trim_end_matches('/'));
        let mut builder = builder.map_err(|error| address(chain(&error)))?;
        if let Some(Credential { token, .. }) = credential {
            let unusable = |reason| FetchError::UnusableToken { host: host.clone(), reason };
            if base.scheme() != "https" && !is_loopback(&host) {
                return Err(unusable("it would be sent in plain text"));
            }
            if HeaderValue::from_str(token.expose()).is_err() {
                return Err(unusable("it contains invalid characters"));
            }
            builder = builder.personal_token(token.expose().to_owned());
        }
        // `get` follows redirects, so that it can stop sending the token.
        let http = web::client(&host).redirect(redirect::Policy::none());
        let http = http.build().map_err(|error| address(chain(&error)))?;
        let client = builder.build_with_reqwest(http.clone()).map_err(|error| address(chain(&error)))?;
        let credential = credential.map(|credential| credential.name.clone());
        Ok(Self { base, credential, client, client_without_token: http })
    }

    /// Returns the host of the API.
    pub(super) fn host(&self) -> String {
        self.base.host_str().unwrap_or_default().to_owned()
    }

    /// Returns whether an address is on the server of the API.
    pub(super) fn is_at(&self, address: &Url) -> bool {
        address.origin() == self.base.origin()
    }

    /// Returns the target of a path of the API, with its query.
    pub(super) fn target<'a>(&self, route: &str, item: &'a str) -> RequestTarget<'a> {
        let mut target = RequestTarget {
            url: self.base.clone(),
            item,
            credential: self.credential.clone(),
            is_api: true,
            is_public: false,
        };
        let (path, query) = route.split_once('?').map_or((route, None), |(path, query)| (path, Some(query)));
        let path = target.url.path().trim_end_matches('/').to_owned() + path;
        target.url.set_path(&path);
        target.url.set_query(query);
        target
    }

    /// Sends a GET request and follows redirects. After a redirect to another host the token is no longer sent.
    pub(super) async fn get(
        &self,
        start: RequestTarget<'_>,
        headers: &HeaderMap,
        window: &mut SpeedWindow,
    ) -> Result<Response, FetchError> {
        let (item, first) = (start.item, start.url.clone());
        let mut current = start;
        for _ in 0..=MAX_REDIRECTS {
            let response = if current.is_api {
                let response = self.client._get_with_headers(current.url.as_str(), Some(headers.clone()));
                let response = window.limit(response).await.map_err(|error| self.body_error(item, error.into()))?;
                response
                    .map_err(|error| current.network_error(chain(&error)))?
                    .map(|body| body.map_err(|error| BodyError::Failed(chain(&error))).boxed())
            } else {
                let response = self.client_without_token.get(current.url.clone()).headers(headers.clone()).send();
                let response = window.limit(response).await.map_err(|error| self.body_error(item, error.into()))?;
                let response = http::Response::from(response.map_err(|error| current.network_error(chain(&error)))?);
                response.map(|body| body.map_err(|error| BodyError::Failed(chain(&error))).boxed())
            };
            let location = response.headers().get(LOCATION).filter(|_| response.status().is_redirection());
            let Some(location) = location else {
                let (head, body) = response.into_parts();
                if head.status.is_success() {
                    return Ok(Response { url: current.url, status: head.status, headers: head.headers, body });
                }
                let content = read_body(body, window).await.unwrap_or_default();
                return Err(current.response_error(head.status.as_u16(), &head.headers, &content));
            };
            let redirect = location.to_str().ok().and_then(|location| current.url.join(location).ok());
            let redirect =
                redirect.ok_or_else(|| current.network_error("it redirects to an invalid address".to_owned()))?;
            if current.url.scheme() == "https" && redirect.scheme() != "https" {
                return Err(current.network_error("it redirects from https to http".to_owned()));
            }
            // A base address that is not encrypted has a checksum, or was accepted as insecure.
            if is_plain_text(redirect.as_str()) && !is_plain_text(first.as_str()) {
                return Err(current.network_error("it redirects to an address that is not encrypted".to_owned()));
            }
            // A path of the same host that is outside the API does not receive the token either.
            current.is_api &= is_below(&self.base, &redirect);
            current.url = redirect;
        }
        Err(current.network_error("it redirects too often".to_owned()))
    }

    /// Returns the content of a target, which is short. Repeats the request after a transient error.
    pub(super) async fn read(
        &self,
        target: &RequestTarget<'_>,
        accept: &'static str,
        policy: ExponentialBuilder,
    ) -> Result<Content, FetchError> {
        let item = target.item;
        let received = || async {
            let mut window = SpeedWindow::start();
            let accept = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]);
            let Response { url, headers, body, .. } = self.get(target.clone(), &accept, &mut window).await?;
            let body = read_body(body, &mut window).await.map_err(|error| self.body_error(item, error))?;
            Ok(Content { url, headers, body })
        };
        let request = || async {
            tokio::time::timeout(RESPONSE_TIMEOUT, received()).await.unwrap_or_else(|_| {
                let reason = format!("the response was not complete after {} seconds", RESPONSE_TIMEOUT.as_secs());
                Err(FetchError::TooSlow { item: item.to_owned(), host: self.host(), reason })
            })
        };
        let retried = request.retry(policy).when(FetchError::is_transient);
        retried.adjust(adjust).notify(report).await
    }

    /// Returns the value that the content of a target has in JSON, and the content. `words` names the value in messages, such as `a release`.
    pub(super) async fn read_json<T: DeserializeOwned>(
        &self,
        target: &RequestTarget<'_>,
        (accept, words): (&'static str, &str),
        policy: ExponentialBuilder,
    ) -> Result<(T, Content), FetchError> {
        let content = self.read(target, accept, policy).await?;
        let value = json::from_slice(&content.body).map_err(|error| FetchError::UnexpectedStatus {
            item: target.item.to_owned(),
            host: self.host(),
            status: 200,
            message: format!("not {words}: {error}"),
            retry_after: None,
        })?;
        Ok((value, content))
    }

    pub(super) fn body_error(&self, item: &str, error: BodyError) -> FetchError {
        let (item, host) = (item.to_owned(), self.host());
        match error {
            BodyError::Failed(message) => FetchError::Network { item, host, message },
            BodyError::TooSlow(error) => FetchError::TooSlow { item, host, reason: error.to_string() },
        }
    }
}

/// Content of a response without an error.
pub(super) struct Content {
    /// Address of the last request.
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// Response without an error, after all redirects.
pub(super) struct Response {
    /// Address of the last request.
    pub(super) url: Url,
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Body,
}

/// Current target of a request that follows redirects.
#[derive(Clone)]
pub(super) struct RequestTarget<'a> {
    url: Url,
    item: &'a str,
    /// Name of the credential that was sent to the API, if one was.
    credential: Option<String>,
    /// True if no redirect has left the API. False for a public address.
    is_api: bool,
    /// True if it began at a public address, without a token.
    is_public: bool,
}

impl<'a> RequestTarget<'a> {
    /// Returns the target of a public address, to which no token is sent.
    pub(super) fn public(url: Url, item: &'a str) -> Self {
        Self { url, item, credential: None, is_api: false, is_public: true }
    }

    /// Returns the address.
    #[cfg(test)]
    pub(super) fn url(&self) -> &str {
        self.url.as_str()
    }

    fn host(&self) -> String {
        self.url.host_str().unwrap_or_default().to_owned()
    }

    fn network_error(&self, message: String) -> FetchError {
        FetchError::Network { item: self.item.to_owned(), host: self.host(), message }
    }

    /// Returns the error that a response without success status means.
    fn response_error(&self, status: u16, headers: &HeaderMap, body: &[u8]) -> FetchError {
        #[derive(Deserialize)]
        struct ErrorBody {
            message: String,
        }
        let (item, host, credential) = (self.item.to_owned(), self.host(), self.credential.clone());
        let text = String::from_utf8_lossy(body);
        let message = serde_json::from_slice::<ErrorBody>(body).map_or(text.into_owned(), |error| error.message);
        let message = first_line(&message);
        let header = |name| headers.get(name)?.to_str().ok()?.trim().parse::<u64>().ok();
        let asked = web::retry_after(headers, SystemTime::now());
        let limited = header("x-ratelimit-remaining") == Some(0) || headers.contains_key(RETRY_AFTER);
        match status {
            // A public address that is none: the API may have the asset.
            404 | 401 | 403 if self.is_public => FetchError::NotFound { item, host, credential },
            // The token is not for this host: a hint about it would mislead.
            _ if !self.is_api => FetchError::UnexpectedStatus { item, host, status, message, retry_after: asked },
            404 => FetchError::NotFound { item, host, credential },
            403 | 429 if limited || status == 429 => {
                let now = SystemTime::now();
                let reset = header("x-ratelimit-reset").map(|at| {
                    // Bounded, because an invalid value would overflow.
                    SystemTime::UNIX_EPOCH + Duration::from_secs(at.min(u64::from(u32::MAX)))
                });
                let reset = asked.map(|asked| now + asked).or(reset);
                let retry_after = asked.or_else(|| reset?.duration_since(now).ok());
                FetchError::RateLimited { host, message, reset, retry_after, credential }
            }
            401 | 403 => FetchError::AccessDenied { item, host, status, message, credential },
            _ => FetchError::UnexpectedStatus { item, host, status, message, retry_after: asked },
        }
    }
}

/// Returns the pause before a request is repeated; `None` if it is not.
pub(super) fn adjust(error: &FetchError, backoff: Option<Duration>) -> Option<Duration> {
    error.retry_delay(backoff?)
}

pub(super) fn report(error: &FetchError, pause: Duration) {
    debug!(%error, ?pause, "request is repeated");
}

/// Returns the first line of a message, cut after 200 bytes: a proxy may respond with an HTML page.
fn first_line(message: &str) -> String {
    let line = message.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    cut(line, 200).into_owned()
}
