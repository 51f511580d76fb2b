//! The interface of a secrets manager.

use std::sync::Arc;

use async_trait::async_trait;

use super::error::SecretsError;
use crate::snapshot::SecretsDescription;

/// Holds the key to the secrets of one stack, or knows how to get it.
#[async_trait]
pub trait SecretsManager: Send + Sync {
    /// How the manager is named in a state.
    fn describe(&self) -> SecretsDescription;

    /// Begins to make the key ready, where that takes a while: it is likely to be asked for. Must be called within a runtime.
    fn prepare(&self) {}

    /// The key in use. May take a while the first time.
    ///
    /// # Errors
    /// [`SecretsError`] if the key cannot be had.
    async fn crypter(&self) -> Result<Arc<dyn Crypter>, SecretsError>;
}

/// Seals and opens texts.
pub trait Crypter: Send + Sync {
    /// Seals a text. Two calls with the same text give different results.
    ///
    /// # Errors
    /// [`SecretsError::Encrypt`] if the system has no randomness to give.
    fn encrypt(&self, plaintext: &str) -> Result<String, SecretsError>;

    /// Opens a sealed text.
    ///
    /// # Errors
    /// [`SecretsError::Decrypt`] if it was not sealed with this key.
    fn decrypt(&self, ciphertext: &str) -> Result<String, SecretsError>;
}
