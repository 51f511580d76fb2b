//! Credentials of requests, renewed before they expire.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials as _, SharedCredentialsProvider};
use object_store::CredentialProvider;
use object_store::aws::AwsCredential;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::aws::CredentialsFailure;

/// Rest of the validity with which credentials are renewed.
const RENEW_BEFORE: Duration = Duration::from_secs(5 * 60);
/// Limit of the time until the chain has credentials.
const CHAIN_LIMIT: Duration = Duration::from_secs(90);

/// Credentials of the chain, kept until shortly before they expire.
#[derive(Debug)]
pub(super) struct ChainCredentials {
    provider: SharedCredentialsProvider,
    kept: Mutex<Option<Credentials>>,
}

impl ChainCredentials {
    pub(super) fn new(provider: SharedCredentialsProvider) -> Self {
        Self { provider, kept: Mutex::new(None) }
    }

    /// Requests credentials from the chain. Returns whether they are others than the kept ones.
    pub(super) async fn renew(&self) -> bool {
        let mut kept = self.kept.lock().await;
        let Ok(renewed) = self.request().await else { return false };
        let is_other = kept.as_ref().is_none_or(|kept| {
            kept.access_key_id() != renewed.access_key_id() || kept.session_token() != renewed.session_token()
        });
        *kept = Some(renewed);
        is_other
    }

    async fn request(&self) -> object_store::Result<Credentials> {
        let failed = |failure: CredentialsFailure| object_store::Error::Generic { store: "S3", source: failure.into() };
        match timeout(CHAIN_LIMIT, self.provider.provide_credentials()).await {
            Ok(Ok(credentials)) => Ok(credentials),
            Ok(Err(error)) => Err(failed(CredentialsFailure::in_error(&error))),
            Err(_) => Err(failed(CredentialsFailure::timeout(CHAIN_LIMIT))),
        }
    }
}

#[async_trait]
impl CredentialProvider for ChainCredentials {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        let mut kept = self.kept.lock().await;
        let rest = |credentials: &Credentials| match credentials.expiry() {
            Some(expiry) => expiry.duration_since(SystemTime::now()).unwrap_or_default(),
            None => Duration::MAX,
        };
        let credentials = match kept.as_ref() {
            Some(credentials) if rest(credentials) > RENEW_BEFORE => credentials.clone(),
            known => match self.request().await {
                Ok(credentials) => credentials,
                // They are still valid, and the next request tries again.
                Err(error) => known.filter(|known| !rest(known).is_zero()).cloned().ok_or(error)?,
            },
        };
        let credential = AwsCredential {
            key_id: credentials.access_key_id().to_owned(),
            secret_key: credentials.secret_access_key().to_owned(),
            token: credentials.session_token().map(str::to_owned),
        };
        *kept = Some(credentials);
        Ok(Arc::new(credential))
    }
}
