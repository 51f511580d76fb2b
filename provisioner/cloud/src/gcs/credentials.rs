//! Access tokens of requests.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use object_store::CredentialProvider;
use object_store::gcp::GcpCredential;
use tokio::time::timeout;

use crate::google::{LoadedCredentials, TokenFailure};

/// Limit of the time until there is a token. Without a metadata server, its address may not reply at all.
const TOKEN_LIMIT: Duration = Duration::from_secs(20);

/// Access tokens, which the credentials keep until shortly before they expire.
pub(super) struct Tokens(pub(super) LoadedCredentials);

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("source", &self.0.source).finish_non_exhaustive()
    }
}

#[async_trait]
impl CredentialProvider for Tokens {
    type Credential = GcpCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<GcpCredential>> {
        let failure = match timeout(TOKEN_LIMIT, self.0.credentials.access_token()).await {
            Ok(Ok(token)) => return Ok(Arc::new(GcpCredential { bearer: token.token })),
            Ok(Err(error)) => TokenFailure::of(&self.0.source, &error),
            Err(_) => TokenFailure::timeout(&self.0.source, TOKEN_LIMIT),
        };
        Err(object_store::Error::Generic { store: "GCS", source: failure.into() })
    }
}
