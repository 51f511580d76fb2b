//! APIs of Google Cloud that are switched on for a project (<https://cloud.google.com/service-usage/docs/reference/rest>).

use std::collections::BTreeMap;
use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};
use bridge::error::{chain, shorten_to};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, StatusCode};
use serde_json::{Value, json};

use super::credentials::{GoogleCredentials, GoogleCredentialsError, load_credentials};
use super::failure::TokenFailure;

/// Scope of the access token.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// Variable of gcloud for another endpoint of the service, such as a private one.
const ENDPOINT: &str = "CLOUDSDK_API_ENDPOINT_OVERRIDES_SERVICEUSAGE";
const DEFAULT_ENDPOINT: &str = "https://serviceusage.googleapis.com/";
/// Limit of one request.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);
/// Limit of the request of an access token, with its repetitions.
const TOKEN_LIMIT: Duration = Duration::from_secs(20);
/// Limit of everything.
const LIMIT: Duration = Duration::from_secs(300);
/// Maximum number of characters of a reply in a message.
const MAX_REPLY: usize = 600;

/// Reason why an API cannot be switched on. Contains no part of the credentials.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The credentials cannot be used.
    #[error(transparent)]
    Credentials(#[from] GoogleCredentialsError),
    /// There is no access token.
    #[error(transparent)]
    Token(#[from] TokenFailure),
    /// The service cannot be reached.
    #[error("no reply of the Service Usage API: {0}")]
    Unreachable(String),
    /// The service has refused a request, in its words.
    #[error("{0}")]
    Refused(String),
    /// The API is still being switched on.
    #[error("it is not on after {} s; the next run continues", LIMIT.as_secs())]
    Timeout,
}

/// Switches on an API, such as `redis.googleapis.com`, in a project, and returns once it is on. Changes nothing if it is on
/// already. Requests are repeated after an error of the network or the service, for at most five minutes.
///
/// # Errors
/// [`ApiError`].
pub async fn enable_api(
    project: &str,
    service: &str,
    credentials: &GoogleCredentials,
    environment: &BTreeMap<String, String>,
) -> Result<(), ApiError> {
    let loaded = load_credentials(Some(credentials), SCOPE, environment, None)?;
    let token = match tokio::time::timeout(TOKEN_LIMIT, loaded.credentials.access_token()).await {
        Ok(Ok(token)) => token.token,
        Ok(Err(error)) => return Err(TokenFailure::of(&loaded.source, &error).into()),
        Err(_) => return Err(TokenFailure::timeout(&loaded.source, TOKEN_LIMIT).into()),
    };
    let client = Client::builder().user_agent("sc").timeout(REQUEST_LIMIT).redirect(Policy::none()).build();
    let client = client.map_err(|error| ApiError::Unreachable(chain(&error)))?;
    let endpoint = environment.get(ENDPOINT).filter(|endpoint| !endpoint.is_empty());
    let endpoint = endpoint.map_or(DEFAULT_ENDPOINT, String::as_str).trim_end_matches('/').to_owned();
    let usage = ServiceUsage { client, endpoint, token };
    match tokio::time::timeout(LIMIT, usage.enable(project, service)).await {
        Ok(result) => result,
        Err(_) => Err(ApiError::Timeout),
    }
}

/// Client of the Service Usage API.
struct ServiceUsage {
    client: Client,
    endpoint: String,
    token: String,
}

impl ServiceUsage {
    async fn enable(&self, project: &str, service: &str) -> Result<(), ApiError> {
        let path = format!("projects/{project}/services/{service}");
        let state = self.send(|| self.client.get(self.url(&path))).await?;
        if state["state"] == "ENABLED" {
            return Ok(());
        }
        // A repeated request has the same effect as the first.
        let mut operation =
            self.send(|| self.client.post(self.url(&format!("{path}:enable"))).json(&json!({}))).await?;
        let mut waits = waits();
        while operation["done"] != true {
            let Some(name) = operation["name"].as_str().map(str::to_owned) else {
                return Err(ApiError::Refused("the reply of the Service Usage API has no operation".to_owned()));
            };
            tokio::time::sleep(waits.next().unwrap_or(REQUEST_LIMIT)).await;
            operation = self.send(|| self.client.get(self.url(&name))).await?;
        }
        match operation["error"].as_object() {
            Some(error) => Err(ApiError::Refused(words(error.get("message"), "the operation failed"))),
            None => Ok(()),
        }
    }

    fn url(&self, path: &str) -> String {
        format!("{}/v1/{path}", self.endpoint)
    }

    /// Sends a request until it has a reply that is final, and returns its JSON.
    async fn send(&self, request: impl Fn() -> RequestBuilder) -> Result<Value, ApiError> {
        let mut waits = waits().take(5);
        loop {
            let error = match request().bearer_auth(&self.token).send().await {
                Ok(reply) => {
                    let status = reply.status();
                    let body = reply.bytes().await.unwrap_or_default();
                    let json: Value = serde_json::from_slice(&body).unwrap_or_default();
                    if status.is_success() {
                        return Ok(json);
                    }
                    let text = words(json["error"].get("message"), &String::from_utf8_lossy(&body));
                    let error = ApiError::Refused(format!("{status}: {text}"));
                    if !(status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS) {
                        return Err(error);
                    }
                    error
                }
                Err(error) => ApiError::Unreachable(chain(&error.without_url())),
            };
            match waits.next() {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Err(error),
            }
        }
    }
}

/// Returns pauses that grow from 0.2 s to 10 s.
fn waits() -> impl Iterator<Item = Duration> {
    let (first, last) = (Duration::from_millis(200), Duration::from_secs(10));
    ExponentialBuilder::default().with_min_delay(first).with_max_delay(last).with_jitter().without_max_times().build()
}

fn words(message: Option<&Value>, default: &str) -> String {
    shorten_to(message.and_then(Value::as_str).unwrap_or(default), MAX_REPLY).into_owned()
}
