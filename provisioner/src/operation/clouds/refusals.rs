//! Refusals of a build without the crate `cloud`.

use std::sync::Arc;

use async_trait::async_trait;
use config::{CloudAccount, ProcessContext};
use state::secrets::{KeyFailure, KeyFailureKind, KeyService};
use state::store::{Objects, OutageReport};
use zeroize::Zeroizing;

use super::super::SetupError;
use crate::registry::recipe::Effects;

/// Refuses each key.
struct NoKeyServices;

/// Refuses the store of a stack.
///
/// # Errors
/// [`SetupError::NoClients`].
pub(in super::super) async fn objects(
    stack: &str,
    url: &str,
    _: &CloudAccount,
    _: &ProcessContext,
    _: OutageReport,
) -> Result<Arc<dyn Objects>, SetupError> {
    Err(SetupError::NoClients { stack: stack.to_owned(), scheme: scheme(url).to_owned() })
}

/// Refuses the creation of a bucket.
///
/// # Errors
/// [`SetupError::NoClients`].
pub(in super::super) async fn create_bucket(
    stack: &str,
    url: &str,
    _: &config::NewBucket,
    _: &CloudAccount,
    _: &ProcessContext,
) -> Result<bool, SetupError> {
    Err(SetupError::NoClients { stack: stack.to_owned(), scheme: scheme(url).to_owned() })
}

/// Returns a service of keys that refuses each key.
pub(in super::super) fn key_service(_: Option<&CloudAccount>, _: &ProcessContext) -> Arc<dyn KeyService> {
    Arc::new(NoKeyServices)
}

/// Returns effects that are refused.
pub(in super::super) fn effects(_: &ProcessContext) -> Arc<dyn Effects> {
    Arc::new(NoClients)
}

/// Refuses each effect.
struct NoClients;

#[async_trait]
impl Effects for NoClients {
    async fn enable_google_api(&self, _: &str, _: &str, _: &str) -> Result<(), String> {
        Err("this build of sc has no clients of clouds: use one with the feature `cloud`, which is on by default"
            .to_owned())
    }
}

#[async_trait]
impl KeyService for NoKeyServices {
    async fn encrypt(&self, url: &str, _: &[u8]) -> Result<Vec<u8>, KeyFailure> {
        Err(refused(url))
    }

    async fn decrypt(&self, url: &str, _: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeyFailure> {
        Err(refused(url))
    }
}

fn refused(url: &str) -> KeyFailure {
    let message = format!("{}:// needs the feature `cloud`", scheme(url));
    KeyFailure { kind: KeyFailureKind::NoClients, message }
}

/// Returns the scheme of a URL, without the parts that may contain a password.
fn scheme(url: &str) -> &str {
    url.split_once("://").map_or("", |(scheme, _)| scheme)
}
