//! Secrets manager for tests, which marks texts instead of encrypting them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;

use super::error::SecretsError;
use super::manager::{Crypter, SecretsManager};
use crate::snapshot::SecretsDescription;

/// Writes `text` as `<name>:<number>:text`, where the number is never used again. Protects nothing: for tests only.
#[derive(Debug)]
pub struct MarkerManager {
    crypter: Arc<MarkerCrypter>,
}

#[derive(Debug)]
struct MarkerCrypter {
    name: String,
    next: AtomicU64,
}

impl MarkerManager {
    /// Creates a manager; ciphertexts of one name are not decrypted by a manager of another.
    pub fn new(name: impl Into<String>) -> Self {
        Self { crypter: Arc::new(MarkerCrypter { name: name.into(), next: AtomicU64::new(0) }) }
    }

    /// Returns the number of texts encrypted so far.
    pub fn encryption_count(&self) -> u64 {
        self.crypter.next.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl SecretsManager for MarkerManager {
    fn describe(&self) -> SecretsDescription {
        SecretsDescription { kind: "marker".to_owned(), state: serde_json::json!({ "name": self.crypter.name }) }
    }

    async fn crypter(&self) -> Result<Arc<dyn Crypter>, SecretsError> {
        Ok(Arc::clone(&self.crypter) as Arc<dyn Crypter>)
    }
}

impl Crypter for MarkerCrypter {
    fn encrypt(&self, plaintext: &str) -> Result<String, SecretsError> {
        Ok(format!("{}:{}:{plaintext}", self.name, self.next.fetch_add(1, Ordering::Relaxed)))
    }

    fn decrypt(&self, ciphertext: &str) -> Result<String, SecretsError> {
        let marked = ciphertext.strip_prefix(&self.name).and_then(|rest| rest.strip_prefix(':'));
        marked.and_then(|rest| rest.split_once(':')).map(|(_, text)| text.to_owned()).ok_or(SecretsError::Decrypt)
    }
}
