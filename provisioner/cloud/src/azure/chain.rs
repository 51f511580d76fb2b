//! Chain of the sources of credentials.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::sync::Mutex;
use zeroize::Zeroizing;

use super::cli::cli_token;
use super::entra::{environment_token, workload_identity_token};
use super::failure::{AzureTokenFailure, SourceFailure};
use super::managed_identity::managed_identity_token;
use super::settings::{Source, sources};
use super::token::AccessToken;

/// Limit of a request of a token from one source, with its repetitions.
const SOURCE_LIMIT: Duration = Duration::from_secs(30);

/// Credentials of the first source that is set up. The token is kept until shortly before it expires, and comes from the same
/// source from then on.
pub struct AzureCredentials {
    environment: BTreeMap<String, String>,
    /// Scope of the tokens, which ends with `/.default`.
    scope: String,
    /// Source of the first token.
    source: OnceLock<Source>,
    kept: Mutex<Option<AccessToken>>,
}

impl fmt::Debug for AzureCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AzureCredentials").field("scope", &self.scope).finish_non_exhaustive()
    }
}

impl AzureCredentials {
    /// Creates credentials of an environment. Requests nothing.
    pub fn new(environment: &BTreeMap<String, String>, scope: impl Into<String>) -> Self {
        Self { environment: environment.clone(), scope: scope.into(), source: OnceLock::new(), kept: Mutex::default() }
    }

    /// Returns an access token that is valid for some minutes. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`AzureTokenFailure`].
    pub async fn token(&self) -> Result<Zeroizing<String>, AzureTokenFailure> {
        let mut kept = self.kept.lock().await;
        let token = match (kept.as_ref(), self.source.get()) {
            (Some(token), _) if token.is_fresh() => token.clone(),
            (known, Some(source)) => match self.request(*source).await {
                Ok(renewed) => renewed,
                Err(SourceFailure::Unavailable(reason) | SourceFailure::Failed(reason)) => {
                    // It is still valid, and the next request tries again.
                    let valid = known.filter(|known| known.is_valid()).cloned();
                    valid.ok_or_else(|| AzureTokenFailure::of_source(source.name(), &reason))?
                }
            },
            (_, None) => self.first_token().await?,
        };
        let text = token.text.clone();
        *kept = Some(token);
        Ok(text)
    }

    /// Returns the name of the source of the tokens; `None` before the first token.
    pub fn source(&self) -> Option<&'static str> {
        self.source.get().map(|source| source.name())
    }

    /// Tries the sources until one is set up.
    async fn first_token(&self) -> Result<AccessToken, AzureTokenFailure> {
        let mut attempts = Vec::new();
        for source in sources(&self.environment)? {
            match self.request(source).await {
                Ok(token) => {
                    self.source.get_or_init(|| source);
                    return Ok(token);
                }
                Err(SourceFailure::Unavailable(reason)) => attempts.push((source.name(), reason)),
                Err(SourceFailure::Failed(reason)) => return Err(AzureTokenFailure::of_source(source.name(), &reason)),
            }
        }
        Err(AzureTokenFailure::of_attempts(&attempts))
    }

    async fn request(&self, source: Source) -> Result<AccessToken, SourceFailure> {
        let Self { environment, scope, .. } = self;
        let request = async {
            match source {
                Source::Environment => environment_token(environment, scope).await,
                Source::WorkloadIdentity => workload_identity_token(environment, scope).await,
                Source::ManagedIdentity => managed_identity_token(environment, scope).await,
                Source::Cli => cli_token(environment, scope).await,
            }
        };
        let late = |_| SourceFailure::Failed(format!("no access token within {} s", SOURCE_LIMIT.as_secs()));
        tokio::time::timeout(SOURCE_LIMIT, request).await.unwrap_or_else(|elapsed| Err(late(elapsed)))
    }
}
