//! Requests with JSON to services of Google Cloud, which are repeated after errors of the network or of the service.

use std::time::Duration;

use backon::{ExponentialBuilder, Retryable as _};
use bridge::error::{chain, shorten_to};
use google_cloud_auth::credentials::{CacheableResource, CredentialsProvider as _};
use http::{Extensions, HeaderMap};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::Value;

use super::credentials::LoadedCredentials;
use super::failure::TokenFailure;

/// Limit of one request, with its whole reply.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);
/// Maximum size of a reply.
const MAX_REPLY: usize = 4 << 20;
/// Limit of the request of an access token, with its repetitions.
const TOKEN_LIMIT: Duration = Duration::from_secs(20);
/// Number of repetitions of a request.
const REPETITIONS: usize = 5;
/// Maximum number of characters of a reply in a message.
const MAX_WORDS: usize = 600;

/// Reason why a request has no result. Contains no part of the credentials.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JsonError {
    /// The service cannot be reached.
    #[error("{0}")]
    Unreachable(String),
    /// The service has refused the request.
    #[error("{status}: {text}")]
    Refused {
        /// Status of the reply.
        status: StatusCode,
        /// Code of the error, such as `NOT_FOUND`.
        code: Option<String>,
        /// Words of the service.
        text: String,
    },
    /// The reply is none of the service.
    #[error("{host} did not reply as a service of Google Cloud does: {reason}; check a proxy or login page on the way")]
    Unexpected {
        /// Host of the request.
        host: String,
        /// Description of the reply.
        reason: &'static str,
    },
}

/// Authentication of requests.
pub(crate) enum Authentication {
    /// Requests are anonymous.
    None,
    /// Access token.
    Token(String),
    /// Headers with an access token, and with the project that is billed.
    Headers(HeaderMap),
}

/// Client that sends an access token.
pub(crate) struct JsonClient {
    client: Client,
    authentication: Authentication,
}

impl JsonClient {
    /// Creates a client. Sends no request.
    ///
    /// # Errors
    /// [`JsonError::Unreachable`] if the machine does not allow it.
    pub(crate) fn new(authentication: Authentication) -> Result<Self, JsonError> {
        let client = Client::builder().user_agent("sc").timeout(REQUEST_LIMIT).redirect(Policy::none()).build();
        let client = client.map_err(|error| JsonError::Unreachable(chain(&error)))?;
        Ok(Self { client, authentication })
    }

    /// Sends a request until it has a reply that is final, and returns its JSON.
    ///
    /// # Errors
    /// [`JsonError`].
    pub(crate) async fn send(&self, request: impl Fn(&Client) -> RequestBuilder) -> Result<Value, JsonError> {
        let attempt = || async {
            let request = request(&self.client);
            let request = match &self.authentication {
                Authentication::Token(token) => request.bearer_auth(token),
                Authentication::Headers(headers) => request.headers(headers.clone()),
                Authentication::None => request,
            };
            receive(request.send().await?).await
        };
        attempt.retry(pauses().with_max_times(REPETITIONS)).when(JsonError::is_transient).await
    }
}

impl JsonError {
    /// Returns whether the same request may succeed later.
    fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable(_) => true,
            Self::Refused { status, .. } => status.is_server_error() || *status == StatusCode::TOO_MANY_REQUESTS,
            Self::Unexpected { .. } => false,
        }
    }
}

impl From<reqwest::Error> for JsonError {
    fn from(error: reqwest::Error) -> Self {
        Self::Unreachable(chain(&error.without_url()))
    }
}

/// Receives the JSON of a reply.
async fn receive(mut reply: Response) -> Result<Value, JsonError> {
    let status = reply.status();
    let host = reply.url().host_str().unwrap_or_default().to_owned();
    let unexpected = |reason| JsonError::Unexpected { host, reason };
    let mut body = Vec::new();
    while let Some(part) = reply.chunk().await? {
        if body.len() + part.len() > MAX_REPLY {
            return Err(unexpected("it sent more than 4 MiB"));
        }
        body.extend_from_slice(&part);
    }
    let json = serde_json::from_slice::<Value>(&body).ok().filter(Value::is_object);
    match json {
        Some(json) if status.is_success() => Ok(json),
        None if status.is_success() => Err(unexpected("it sent no JSON")),
        json => {
            let error = json.unwrap_or_default()["error"].take();
            let code = error.get("status").and_then(Value::as_str).map(str::to_owned);
            let text = words(error.get("message"), &String::from_utf8_lossy(&body));
            Err(JsonError::Refused { status, code, text })
        }
    }
}

/// Requests an access token, as the headers of a request to a service that bills the project of the account.
///
/// # Errors
/// [`TokenFailure`].
pub(crate) async fn access_headers(loaded: &LoadedCredentials) -> Result<HeaderMap, TokenFailure> {
    let LoadedCredentials { credentials, source } = loaded;
    match tokio::time::timeout(TOKEN_LIMIT, credentials.headers(Extensions::new())).await {
        Ok(Ok(CacheableResource::New { data, .. })) => Ok(data),
        Ok(Ok(CacheableResource::NotModified)) => Ok(HeaderMap::new()),
        Ok(Err(error)) => Err(TokenFailure::of(source, &error)),
        Err(_) => Err(TokenFailure::timeout(source, TOKEN_LIMIT)),
    }
}

/// Requests an access token.
///
/// # Errors
/// [`TokenFailure`].
pub(crate) async fn access_token(loaded: &LoadedCredentials) -> Result<String, TokenFailure> {
    let LoadedCredentials { credentials, source } = loaded;
    match tokio::time::timeout(TOKEN_LIMIT, credentials.access_token()).await {
        Ok(Ok(token)) => Ok(token.token),
        Ok(Err(error)) => Err(TokenFailure::of(source, &error)),
        Err(_) => Err(TokenFailure::timeout(source, TOKEN_LIMIT)),
    }
}

/// Returns pauses between requests that grow from 0.2 s to 10 s, without an end.
pub(super) fn pauses() -> ExponentialBuilder {
    let (first, last) = (Duration::from_millis(200), Duration::from_secs(10));
    ExponentialBuilder::default().with_min_delay(first).with_max_delay(last).with_jitter().without_max_times()
}

/// Returns the words of a service, shortened.
pub(super) fn words(message: Option<&Value>, default: &str) -> String {
    shorten_to(message.and_then(Value::as_str).unwrap_or(default), MAX_WORDS).into_owned()
}
