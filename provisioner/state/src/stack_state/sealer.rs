//! How the secrets of a stack are encrypted when its state is saved.

use std::sync::Arc;

use super::access::StackAccess;
use super::loading::Loaded;
use crate::error::StateError;
use crate::secrets::{CiphertextReuse, SecretsError, SecretsManager};
use crate::snapshot::SecretsDescription;

/// How the secrets of a stack are sealed from now on.
#[derive(Clone)]
pub(super) struct Sealer {
    /// Why there may be none matters only once there is a secret.
    pub(super) manager: Result<Arc<dyn SecretsManager>, SecretsError>,
    pub(super) reuse: CiphertextReuse,
}

impl Sealer {
    pub(super) async fn choose(access: &StackAccess, loaded: Option<&Loaded>) -> Result<Self, StateError> {
        let configured = access.configured_secrets.as_ref().map(|description| access.keyring.manager(description));
        let in_state = loaded.and_then(|loaded| loaded.checkpoint.manager.clone());
        let manager = match (configured, in_state.clone()) {
            (Some(configured), _) => configured,
            (None, Some(in_state)) => in_state,
            (None, None) => access.keyring.new_manager().await,
        };
        // What was sealed with another key has to be sealed again.
        let same = match (&manager, &in_state) {
            (Ok(manager), Some(Ok(in_state))) => manager.describe() == in_state.describe(),
            (Err(_), Some(Err(_))) => true,
            _ => false,
        };
        let reuse = loaded.filter(|_| same).map(|loaded| loaded.checkpoint.reuse.clone()).unwrap_or_default();
        Ok(Self { manager, reuse })
    }

    /// As the state itself has it.
    pub(super) fn of_state(loaded: Option<&Loaded>) -> Self {
        let manager = loaded.and_then(|loaded| loaded.checkpoint.manager.clone());
        let reuse = loaded.map(|loaded| loaded.checkpoint.reuse.clone()).unwrap_or_default();
        Self { manager: manager.unwrap_or(Err(SecretsError::KeyNeeded)), reuse }
    }

    pub(super) fn secrets(&self) -> Option<Arc<dyn SecretsManager>> {
        self.manager.as_ref().ok().cloned()
    }

    pub(super) fn description(&self) -> Option<SecretsDescription> {
        self.manager.as_ref().ok().map(|manager| manager.describe())
    }
}
