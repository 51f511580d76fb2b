//! Secrets manager and ciphertexts of a stack, with which its state is saved.

use std::sync::Arc;

use super::access::StackAccess;
use super::loading::LoadedStack;
use crate::secrets::{CiphertextReuse, SecretsError, SecretsManager};
use crate::snapshot::SecretsDescription;

/// Change of the secrets manager of a stack: the next save encrypts all secrets anew.
#[derive(Clone, Debug, PartialEq)]
pub struct SecretsChange {
    /// Manager that the state names.
    pub from: SecretsDescription,
    /// Manager that the state names after the next save.
    pub to: SecretsDescription,
}

/// Secrets manager of a stack and the loaded ciphertexts that may be written again.
#[derive(Clone)]
pub(super) struct StackSecrets {
    /// Secrets manager. An error matters only once there is a secret.
    pub(super) manager: Result<Arc<dyn SecretsManager>, SecretsError>,
    pub(super) reuse: CiphertextReuse,
    /// Change of the manager, if the state names another one.
    pub(super) change: Option<SecretsChange>,
}

impl StackSecrets {
    /// Returns the configured secrets manager, else that of the state if it has the provider that the user chose, else a
    /// new one. The ciphertexts of the state are reused only if it names the same manager.
    ///
    /// # Errors
    /// [`SecretsError::Key`] if a new data key cannot be encrypted, [`SecretsError::KeyNotCreated`]: no change begins then.
    pub(super) async fn for_writing(access: &StackAccess, loaded: Option<&LoadedStack>) -> Result<Self, SecretsError> {
        let snapshot = loaded.and_then(|loaded| loaded.checkpoint.checkpoint.snapshot.as_ref());
        let in_state = snapshot.and_then(|snapshot| snapshot.secrets.as_ref());
        let manager = access.keyring.manager_for_writing(access.configured_secrets.as_ref(), in_state).await;
        if let Err(error @ (SecretsError::Key(_) | SecretsError::KeyNotCreated)) = manager {
            return Err(error);
        }
        // Secrets that were encrypted with another key have to be encrypted again.
        let description = manager.as_ref().ok().map(|manager| manager.describe());
        let same = description.as_ref() == in_state;
        let reuse = loaded.filter(|_| same).map(|loaded| loaded.checkpoint.reuse.clone()).unwrap_or_default();
        let change = match (in_state, description) {
            (Some(from), Some(to)) if !same => Some(SecretsChange { from: from.clone(), to }),
            _ => None,
        };
        Ok(Self { manager, reuse, change })
    }

    /// Returns the secrets manager that the state names, with its ciphertexts.
    pub(super) fn for_reading(loaded: Option<&LoadedStack>) -> Self {
        let manager = loaded.and_then(|loaded| loaded.checkpoint.manager.clone());
        let reuse = loaded.map(|loaded| loaded.checkpoint.reuse.clone()).unwrap_or_default();
        Self { manager: manager.unwrap_or(Err(SecretsError::KeyNeeded)), reuse, change: None }
    }

    pub(super) fn manager(&self) -> Option<Arc<dyn SecretsManager>> {
        self.manager.as_ref().ok().cloned()
    }

    pub(super) fn description(&self) -> Option<SecretsDescription> {
        self.manager.as_ref().ok().map(|manager| manager.describe())
    }
}
