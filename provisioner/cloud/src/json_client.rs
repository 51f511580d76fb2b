//! Requests with JSON to services of Google Cloud and of Azure and to HashiCorp Vault, which are repeated after errors of the network
//! or of the service.

use std::time::Duration;

use backon::{ExponentialBuilder, Retryable as _};
use bridge::error::{chain, shorten_to};
use http::HeaderMap;
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, RequestBuilder, Response, StatusCode};
use serde_json::Value;

/// Limit of one request, with its whole reply.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);
/// Maximum size of a reply.
const MAX_REPLY: usize = 4 << 20;
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
    #[error("{host} did not reply as {service} does: {reason}; check a proxy or login page on the way")]
    Unexpected {
        /// Service that was asked.
        service: &'static str,
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
    /// Headers with a token, and with what else selects the account.
    Headers(HeaderMap),
}

/// Client that sends a token.
pub(crate) struct JsonClient {
    client: Client,
    authentication: Authentication,
    /// Name of the service, for messages.
    service: &'static str,
}

impl JsonClient {
    /// Creates a client of a service of Google Cloud. Sends no request.
    ///
    /// # Errors
    /// [`JsonError::Unreachable`] if the machine does not allow it.
    pub(crate) fn new(authentication: Authentication) -> Result<Self, JsonError> {
        Self::of_service("a service of Google Cloud", authentication, |builder| builder.redirect(Policy::none()))
    }

    /// Creates a client of a service. Sends no request.
    ///
    /// # Errors
    /// [`JsonError::Unreachable`] if the machine does not allow it.
    pub(crate) fn of_service(
        service: &'static str,
        authentication: Authentication,
        configure: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> Result<Self, JsonError> {
        let client = configure(Client::builder().user_agent("sc").timeout(REQUEST_LIMIT)).build();
        let client = client.map_err(|error| JsonError::Unreachable(chain(&error)))?;
        Ok(Self { client, authentication, service })
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
            receive(request.send().await?, self.service).await
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
async fn receive(mut reply: Response, service: &'static str) -> Result<Value, JsonError> {
    let status = reply.status();
    let host = reply.url().host_str().unwrap_or_default().to_owned();
    let unexpected = |reason| JsonError::Unexpected { service, host, reason };
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
            let json = json.unwrap_or_default();
            let (code, text) = error_of(&json);
            let text = words(text, &String::from_utf8_lossy(&body));
            let code = code.and_then(Value::as_str).map(str::to_owned);
            Err(JsonError::Refused { status, code, text })
        }
    }
}

/// Returns the code and the words in the reply to a refused request: members of `error` in Google Cloud and in Azure, members of
/// the reply itself in OAuth 2.0.
fn error_of(reply: &Value) -> (Option<&Value>, Option<&Value>) {
    match reply.get("error") {
        Some(code @ Value::String(_)) => (Some(code), reply.get("error_description")),
        Some(error) => (error.get("status").or(error.get("code")), error.get("message")),
        None => (None, None),
    }
}

/// Returns pauses between requests that grow from 0.2 s to 10 s, without an end.
pub(crate) fn pauses() -> ExponentialBuilder {
    let (first, last) = (Duration::from_millis(200), Duration::from_secs(10));
    ExponentialBuilder::default().with_min_delay(first).with_max_delay(last).with_jitter().without_max_times()
}

/// Returns the words of a service, shortened.
pub(crate) fn words(message: Option<&Value>, default: &str) -> String {
    shorten_to(message.and_then(Value::as_str).unwrap_or(default), MAX_WORDS).into_owned()
}
