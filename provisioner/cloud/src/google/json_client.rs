//! Requests with JSON to services of Google Cloud, which are repeated after errors of the network or of the service.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};
use bridge::error::{chain, shorten_to};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, StatusCode};
use serde_json::Value;

use super::credentials::LoadedCredentials;
use super::failure::TokenFailure;

/// Limit of one request.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);
/// Limit of the request of an access token, with its repetitions.
const TOKEN_LIMIT: Duration = Duration::from_secs(20);
/// Number of repetitions of a request.
const REPETITIONS: usize = 5;
/// Maximum number of characters of a reply in a message.
const MAX_REPLY: usize = 600;

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
        /// Words of the service.
        text: String,
    },
}

/// Client that sends an access token.
pub(crate) struct JsonClient {
    client: Client,
    /// `None`: requests are anonymous.
    token: Option<String>,
}

impl JsonClient {
    /// Creates a client. Sends no request.
    ///
    /// # Errors
    /// [`JsonError::Unreachable`] if the machine does not allow it.
    pub(crate) fn new(token: Option<String>) -> Result<Self, JsonError> {
        let client = Client::builder().user_agent("sc").timeout(REQUEST_LIMIT).redirect(Policy::none()).build();
        let client = client.map_err(|error| JsonError::Unreachable(chain(&error)))?;
        Ok(Self { client, token })
    }

    /// Sends a request until it has a reply that is final, and returns its JSON.
    ///
    /// # Errors
    /// [`JsonError`].
    pub(crate) async fn send(&self, request: impl Fn(&Client) -> RequestBuilder) -> Result<Value, JsonError> {
        let mut waits = waits().take(REPETITIONS);
        loop {
            let request = request(&self.client);
            let request = match &self.token {
                Some(token) => request.bearer_auth(token),
                None => request,
            };
            let error = match request.send().await {
                Ok(reply) => {
                    let status = reply.status();
                    let body = reply.bytes().await.unwrap_or_default();
                    let json: Value = serde_json::from_slice(&body).unwrap_or_default();
                    if status.is_success() {
                        return Ok(json);
                    }
                    let text = words(json["error"].get("message"), &String::from_utf8_lossy(&body));
                    let error = JsonError::Refused { status, text };
                    if !(status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS) {
                        return Err(error);
                    }
                    error
                }
                Err(error) => JsonError::Unreachable(chain(&error.without_url())),
            };
            match waits.next() {
                // The service does not report that it can be reached again.
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Err(error),
            }
        }
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

/// Returns pauses that grow from 0.2 s to 10 s.
pub(super) fn waits() -> impl Iterator<Item = Duration> {
    let (first, last) = (Duration::from_millis(200), Duration::from_secs(10));
    ExponentialBuilder::default().with_min_delay(first).with_max_delay(last).with_jitter().without_max_times().build()
}

/// Returns the words of a service, shortened.
pub(super) fn words(message: Option<&Value>, default: &str) -> String {
    shorten_to(message.and_then(Value::as_str).unwrap_or(default), MAX_REPLY).into_owned()
}
