//! Clients of the crate `cloud`, with the credentials of the configuration or of the environment.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bridge::error::chain;
use cloud::aws::AwsKeys;
use cloud::azblob::{AzblobUrl, open_azblob};
use cloud::gcs::{GcsUrl, NewBucket, create_bucket as create_bucket_of, open_gcs};
use cloud::google::{GoogleCredentials, enable_api};
use cloud::kms::KeyServices;
use cloud::postgres::{PostgresObjects, PostgresUrl};
use cloud::s3::{S3Url, open_s3};
use config::{AwsAccount, CloudAccount, ProcessContext};
use state::secrets::KeyService;
use state::store::{Objects, OutageReport};

use super::super::SetupError;
use crate::registry::recipe::Effects;

/// Error of a URL, or of the settings of a cloud.
type UrlError = Box<dyn std::error::Error + Send + Sync>;

/// Returns the client of the store of a stack, which connects on first use.
///
/// # Errors
/// [`SetupError::Url`]: a part or a parameter of the URL or of the settings of the cloud is invalid or not supported.
pub(in super::super) async fn objects(
    stack: &str,
    url: &str,
    account: &CloudAccount,
    context: &ProcessContext,
    outages: OutageReport,
) -> Result<Arc<dyn Objects>, SetupError> {
    let opened = open(url, account, context, outages).await;
    opened.map_err(|source| SetupError::Url { stack: stack.to_owned(), source })
}

async fn open(
    url: &str,
    account: &CloudAccount,
    context: &ProcessContext,
    outages: OutageReport,
) -> Result<Arc<dyn Objects>, UrlError> {
    let (environment, home) = (&context.environment, home(context));
    match url.split_once("://").map_or(url, |(scheme, _)| scheme) {
        "s3" => {
            let keys = match account {
                CloudAccount::Aws(account) => aws_keys(account),
                CloudAccount::Environment | CloudAccount::Google(_) => None,
            };
            Ok(open_s3(&S3Url::parse(url, environment)?, keys.as_ref(), environment, home, outages).await?)
        }
        "gs" => {
            let credentials = google_credentials(account);
            Ok(open_gcs(&GcsUrl::parse(url)?, credentials.as_ref(), environment, home, outages)?)
        }
        "azblob" => Ok(open_azblob(&AzblobUrl::parse(url)?, environment, outages)?),
        "postgres" => Ok(Arc::new(PostgresObjects::new(PostgresUrl::parse(url, environment, home)?, outages))),
        scheme => Err(format!("a state storage at {scheme}:// is not supported").into()),
    }
}

/// Creates the bucket of a store in Google Cloud Storage, unless it is there. Returns whether it was created.
///
/// # Errors
/// [`SetupError::Bucket`].
pub(in super::super) async fn create_bucket(
    stack: &str,
    url: &str,
    bucket: &config::NewBucket,
    account: &CloudAccount,
    context: &ProcessContext,
) -> Result<bool, SetupError> {
    let failed = |source: UrlError| SetupError::Bucket { stack: stack.to_owned(), source };
    let url = GcsUrl::parse(url).map_err(|error| failed(error.into()))?;
    let bucket = NewBucket { project: &bucket.project, location: bucket.location.as_deref() };
    let (credentials, environment) = (google_credentials(account), &context.environment);
    let created = create_bucket_of(&url, &bucket, credentials.as_ref(), environment, home(context)).await;
    created.map_err(|error| failed(error.into()))
}

/// Returns the services of keys. Requests nothing.
pub(in super::super) fn key_service(account: Option<&CloudAccount>, context: &ProcessContext) -> Arc<dyn KeyService> {
    let mut services = KeyServices {
        environment: context.environment.clone(),
        home: home(context).map(Path::to_owned),
        ..KeyServices::default()
    };
    match account {
        None | Some(CloudAccount::Environment) => {}
        Some(CloudAccount::Aws(account)) => {
            services.aws = aws_keys(account);
            services.aws_region.clone_from(&account.region);
        }
        Some(CloudAccount::Google(json)) => services.google = Some(GoogleCredentials::new(json.expose())),
    }
    Arc::new(services)
}

/// Returns the effects of core types. Requests nothing.
pub(in super::super) fn effects(context: &ProcessContext) -> Arc<dyn Effects> {
    Arc::new(CloudEffects { environment: context.environment.clone() })
}

/// Effects by the clients of the clouds.
struct CloudEffects {
    environment: BTreeMap<String, String>,
}

#[async_trait]
impl Effects for CloudEffects {
    async fn enable_google_api(&self, project: &str, service: &str, credentials: &str) -> Result<(), String> {
        let credentials = GoogleCredentials::new(credentials);
        let enabled = enable_api(project, service, &credentials, &self.environment).await;
        enabled.map_err(|error| chain(&error))
    }
}

fn google_credentials(account: &CloudAccount) -> Option<GoogleCredentials> {
    match account {
        CloudAccount::Google(json) => Some(GoogleCredentials::new(json.expose())),
        CloudAccount::Environment | CloudAccount::Aws(_) => None,
    }
}

fn aws_keys(account: &AwsAccount) -> Option<AwsKeys> {
    let (key, secret) = account.access_key.as_ref()?;
    Some(AwsKeys::new(key.expose(), secret.expose()))
}

fn home(context: &ProcessContext) -> Option<&Path> {
    context.account.as_ref().map(|account| account.home.as_path())
}
