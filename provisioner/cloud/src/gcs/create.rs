//! Creation of a bucket for a store (<https://cloud.google.com/storage/docs/json_api/v1/buckets>).

use std::collections::BTreeMap;
use std::path::Path;

use reqwest::StatusCode;
use serde_json::json;
use url::form_urlencoded;

use super::open::service_of;
use super::url::GcsUrl;
use crate::google::{GoogleCredentials, GoogleCredentialsError, TokenFailure, access_token};
use crate::json_client::{Authentication, JsonClient, JsonError};

/// Permission that the access tokens ask for.
const SCOPE: &str = "https://www.googleapis.com/auth/devstorage.full_control";

/// Bucket that may have to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewBucket<'b> {
    /// Project that gets the bucket.
    pub project: &'b str,
    /// Location, such as `EU`; `None`: the default of the service.
    pub location: Option<&'b str>,
}

/// Reason why a bucket cannot be created. Contains no part of the credentials.
#[derive(Debug, thiserror::Error)]
pub enum CreateBucketError {
    /// The credentials cannot be used.
    #[error(transparent)]
    Credentials(#[from] GoogleCredentialsError),
    /// There is no access token.
    #[error(transparent)]
    Token(#[from] TokenFailure),
    /// The service cannot be reached, or has refused the bucket, in its words.
    #[error("{0}")]
    Service(String),
}

/// Creates the bucket of a store, unless there is one with its name, and returns whether it was created. A bucket whose
/// attributes the account may not read counts as one that is there: the store says what it lacks.
///
/// Arguments are those of [`open_gcs`](super::open_gcs).
///
/// # Errors
/// [`CreateBucketError`].
pub async fn create_bucket(
    url: &GcsUrl,
    bucket: &NewBucket<'_>,
    credentials: Option<&GoogleCredentials>,
    environment: &BTreeMap<String, String>,
    home: Option<&Path>,
) -> Result<bool, CreateBucketError> {
    let service = service_of(url, credentials, SCOPE, environment, home)?;
    let token = match &service.credentials {
        Some(loaded) => Authentication::Token(access_token(loaded).await?),
        None => Authentication::None,
    };
    let failed = |error: JsonError| CreateBucketError::Service(error.to_string());
    let client = JsonClient::new(token).map_err(failed)?;
    let buckets = format!("{}/storage/v1/b", service.url);
    match client.send(|client| client.get(format!("{buckets}/{}", url.bucket))).await {
        Ok(_) => return Ok(false),
        Err(JsonError::Refused { status: StatusCode::NOT_FOUND, .. }) => {}
        Err(JsonError::Refused { .. }) => return Ok(false),
        Err(error) => return Err(failed(error)),
    }
    let mut attributes = json!({ "name": url.bucket });
    if let Some(location) = bucket.location {
        attributes["location"] = location.into();
    }
    let project: String = form_urlencoded::byte_serialize(bucket.project.as_bytes()).collect();
    let create = client.send(|client| client.post(format!("{buckets}?project={project}")).json(&attributes));
    match create.await {
        Ok(_) => Ok(true),
        // Another run has created it, or a request whose reply was lost.
        Err(JsonError::Refused { status: StatusCode::CONFLICT, .. }) => {
            let found = client.send(|client| client.get(format!("{buckets}/{}", url.bucket))).await;
            found.map(|_| false).map_err(failed)
        }
        Err(error) => Err(failed(error)),
    }
}
