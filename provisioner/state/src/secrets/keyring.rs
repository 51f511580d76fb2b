//! Finds or creates the secrets manager for a description.

use std::sync::{Arc, Mutex, PoisonError};

use super::error::SecretsError;
use super::manager::SecretsManager;
use super::passphrase::{self, Passphrase, PassphraseManager};
use crate::snapshot::SecretsDescription;

/// Secrets managers of a run, each created once from the keys that the user provided.
pub struct Keyring {
    passphrase: Option<Passphrase>,
    managers: Mutex<Vec<Arc<dyn SecretsManager>>>,
}

impl Keyring {
    /// Creates a keyring with the passphrase, if the user provided one.
    pub fn new(passphrase: Option<Passphrase>) -> Self {
        Self { passphrase, managers: Mutex::default() }
    }

    /// Adds an existing manager.
    #[must_use]
    pub fn with_manager(self, manager: Arc<dyn SecretsManager>) -> Self {
        self.managers.lock().unwrap_or_else(PoisonError::into_inner).push(manager);
        self
    }

    /// Returns the manager that a state or a stack file describes.
    ///
    /// # Errors
    /// [`SecretsError`] if the manager cannot be created. [`SecretsManager::crypter`] reports a wrong passphrase.
    pub fn manager(&self, description: &SecretsDescription) -> Result<Arc<dyn SecretsManager>, SecretsError> {
        let mut managers = self.managers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(manager) = managers.iter().find(|manager| manager.describe() == *description) {
            return Ok(Arc::clone(manager));
        }
        let manager: Arc<dyn SecretsManager> = match description.kind.as_str() {
            passphrase::KIND => {
                let passphrase = self.passphrase.clone().ok_or(SecretsError::NoPassphrase)?;
                Arc::new(PassphraseManager::open_described(passphrase, description)?)
            }
            other => return Err(SecretsError::UnknownManager(other.to_owned())),
        };
        managers.push(Arc::clone(&manager));
        Ok(manager)
    }

    /// Creates the manager for a stack that has none yet: a passphrase with a new salt.
    ///
    /// # Errors
    /// [`SecretsError::NoPassphrase`] without a passphrase, [`SecretsError::Encrypt`] if the system returns no random
    /// numbers.
    pub async fn new_manager(&self) -> Result<Arc<dyn SecretsManager>, SecretsError> {
        let passphrase = self.passphrase.clone().ok_or(SecretsError::NoPassphrase)?;
        let manager: Arc<dyn SecretsManager> = Arc::new(PassphraseManager::create(passphrase).await?);
        self.managers.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&manager));
        Ok(manager)
    }
}
