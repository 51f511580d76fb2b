//! Secrets manager and ciphertexts of a stack, with which its state is saved.

use std::sync::Arc;

use super::access::StackAccess;
use super::loading::LoadedStack;
use crate::error::StateError;
use crate::secrets::{CiphertextReuse, SecretsError, SecretsManager};
use crate::snapshot::SecretsDescription;

/// Secrets manager of a stack and the loaded ciphertexts that may be written again.
#[derive(Clone)]
pub(super) struct StackSecrets {
    /// Secrets manager. An error matters only once there is a secret.
    pub(super) manager: Result<Arc<dyn SecretsManager>, SecretsError>,
    pub(super) reuse: CiphertextReuse,
}

impl StackSecrets {
    /// Returns the configured secrets manager, else that of the state, else a new one. The ciphertexts of the state are
    /// reused only if it names the same manager.
    pub(super) async fn for_writing(access: &StackAccess, loaded: Option<&LoadedStack>) -> Result<Self, StateError> {
        let configured = access.configured_secrets.as_ref().map(|description| access.keyring.manager(description));
        let in_state = loaded.and_then(|loaded| loaded.checkpoint.manager.clone());
        let manager = match (configured, in_state.clone()) {
            (Some(configured), _) => configured,
            (None, Some(in_state)) => in_state,
            (None, None) => access.keyring.new_manager().await,
        };
        // Secrets that were encrypted with another key have to be encrypted again.
        let same = match (&manager, &in_state) {
            (Ok(manager), Some(Ok(in_state))) => manager.describe() == in_state.describe(),
            (Err(_), Some(Err(_))) => true,
            _ => false,
        };
        let reuse = loaded.filter(|_| same).map(|loaded| loaded.checkpoint.reuse.clone()).unwrap_or_default();
        Ok(Self { manager, reuse })
    }

    /// Returns the secrets manager that the state names, with its ciphertexts.
    pub(super) fn for_reading(loaded: Option<&LoadedStack>) -> Self {
        let manager = loaded.and_then(|loaded| loaded.checkpoint.manager.clone());
        let reuse = loaded.map(|loaded| loaded.checkpoint.reuse.clone()).unwrap_or_default();
        Self { manager: manager.unwrap_or(Err(SecretsError::KeyNeeded)), reuse }
    }

    pub(super) fn manager(&self) -> Option<Arc<dyn SecretsManager>> {
        self.manager.as_ref().ok().cloned()
    }

    pub(super) fn description(&self) -> Option<SecretsDescription> {
        self.manager.as_ref().ok().map(|manager| manager.describe())
    }
}
