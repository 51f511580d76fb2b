//! APIs of Google Cloud that are switched on for a project (<https://cloud.google.com/service-usage/docs/reference/rest>).

use std::collections::BTreeMap;
use std::time::Duration;

use backon::BackoffBuilder as _;
use serde_json::json;

use super::credentials::access_token;
use super::credentials::{GoogleCredentials, GoogleCredentialsError, load_credentials};
use super::failure::TokenFailure;
use crate::json_client::{Authentication, JsonClient, JsonError, pauses, words};

/// Scope of the access token.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// Variable of gcloud for another endpoint of the service, such as a private one.
const ENDPOINT: &str = "CLOUDSDK_API_ENDPOINT_OVERRIDES_SERVICEUSAGE";
const DEFAULT_ENDPOINT: &str = "https://serviceusage.googleapis.com/";
/// Limit of everything.
const LIMIT: Duration = Duration::from_secs(300);
/// Longest pause between two requests for the state of an operation, whose end the service does not report by itself.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

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

impl From<JsonError> for ApiError {
    fn from(error: JsonError) -> Self {
        match error {
            JsonError::Unreachable(reason) => Self::Unreachable(reason),
            refused @ (JsonError::Refused { .. } | JsonError::Unexpected { .. }) => Self::Refused(refused.to_string()),
        }
    }
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
    let client = JsonClient::new(Authentication::Token(access_token(&loaded).await?))?;
    let endpoint = environment.get(ENDPOINT).filter(|endpoint| !endpoint.is_empty());
    let endpoint = endpoint.map_or(DEFAULT_ENDPOINT, String::as_str).trim_end_matches('/').to_owned();
    let usage = ServiceUsage { client, endpoint };
    match tokio::time::timeout(LIMIT, usage.enable(project, service)).await {
        Ok(result) => result,
        Err(_) => Err(ApiError::Timeout),
    }
}

/// Client of the Service Usage API.
struct ServiceUsage {
    client: JsonClient,
    endpoint: String,
}

impl ServiceUsage {
    async fn enable(&self, project: &str, service: &str) -> Result<(), ApiError> {
        let path = format!("projects/{project}/services/{service}");
        let state = self.client.send(|client| client.get(self.url(&path))).await?;
        if state["state"] == "ENABLED" {
            return Ok(());
        }
        // A repeated request has the same effect as the first.
        let mut operation =
            self.client.send(|client| client.post(self.url(&format!("{path}:enable"))).json(&json!({}))).await?;
        let mut pauses = pauses().build();
        while operation["done"] != true {
            let Some(name) = operation["name"].as_str().map(str::to_owned) else {
                return Err(ApiError::Refused("the reply of the Service Usage API has no operation".to_owned()));
            };
            // The service has no call that waits for the end of an operation.
            tokio::time::sleep(pauses.next().unwrap_or(LONGEST_WAIT)).await;
            operation = self.client.send(|client| client.get(self.url(&name))).await?;
        }
        match operation["error"].as_object() {
            Some(error) => Err(ApiError::Refused(words(error.get("message"), "the operation failed"))),
            None => Ok(()),
        }
    }

    fn url(&self, path: &str) -> String {
        format!("{}/v1/{path}", self.endpoint)
    }
}
