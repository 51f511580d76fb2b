//! Interface of a secrets manager.

use std::sync::Arc;

use async_trait::async_trait;

use super::error::SecretsError;
use crate::snapshot::SecretsDescription;

/// Secrets manager of one stack: has its key, or fetches it.
#[async_trait]
pub trait SecretsManager: Send + Sync {
    /// Returns the description of the manager in a state.
    fn describe(&self) -> SecretsDescription;

    /// Starts to derive or fetch the key in the background, if that takes long. Must be called within a tokio runtime.
    fn prepare(&self) {}

    /// Returns the key, ready for use. The first call may take long.
    ///
    /// # Errors
    /// [`SecretsError`] if the key cannot be derived or fetched.
    async fn crypter(&self) -> Result<Arc<dyn Crypter>, SecretsError>;
}

/// Encrypts and decrypts texts.
pub trait Crypter: Send + Sync {
    /// Encrypts a text. Two calls with the same text return different ciphertexts.
    ///
    /// # Errors
    /// [`SecretsError::Encrypt`] if the system returns no random numbers.
    fn encrypt(&self, plaintext: &str) -> Result<String, SecretsError>;

    /// Decrypts a ciphertext.
    ///
    /// # Errors
    /// [`SecretsError::Decrypt`] if it was not encrypted with this key.
    fn decrypt(&self, ciphertext: &str) -> Result<String, SecretsError>;
}
