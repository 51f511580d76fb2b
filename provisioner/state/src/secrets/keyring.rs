//! Finds or creates the secrets manager for a description.

use std::sync::{Arc, Mutex, PoisonError};

use super::cloud::{self, CloudManager, StackKeys};
use super::error::SecretsError;
use super::key_service::KeyService;
use super::manager::SecretsManager;
use super::passphrase::{self, DerivationReport, Passphrase, PassphraseManager};
use super::provider::Provider;
use crate::snapshot::SecretsDescription;

/// Secrets managers of a stack in a run, each created once from the keys that the user provided.
pub struct Keyring {
    passphrase: Option<Passphrase>,
    keys: Option<StackKeys>,
    provider: Option<Provider>,
    awaits_key: bool,
    substitute: Option<String>,
    managers: Mutex<Vec<Arc<dyn SecretsManager>>>,
    derivations: Mutex<Option<DerivationReport>>,
}

impl Keyring {
    /// Creates a keyring with the passphrase, if the user provided one.
    pub fn new(passphrase: Option<Passphrase>) -> Self {
        Self {
            passphrase,
            keys: None,
            provider: None,
            awaits_key: false,
            substitute: None,
            managers: Mutex::default(),
            derivations: Mutex::default(),
        }
    }

    /// Sets the receiver of the derivations of keys from now on.
    pub fn report_derivations(&self, report: DerivationReport) {
        *self.derivations.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
    }

    fn derivations(&self) -> Option<DerivationReport> {
        self.derivations.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds an existing manager.
    #[must_use]
    pub fn with_manager(self, manager: Arc<dyn SecretsManager>) -> Self {
        self.add(manager);
        self
    }

    /// Adds the services of keys. `stack` is the name of the stack for errors.
    #[must_use]
    pub fn with_key_service(self, service: Arc<dyn KeyService>, stack: &str) -> Self {
        Self { keys: Some(StackKeys { service, stack: stack.into() }), ..self }
    }

    /// Sets the provider that the user chose for the stack. A state with another provider is encrypted anew when it is
    /// saved. Without one, a state keeps its provider, and a new stack has a passphrase.
    #[must_use]
    pub fn with_provider(self, provider: Provider) -> Self {
        Self { provider: Some(provider), ..self }
    }

    /// Sets that the user chose a key that has not been created yet. A state keeps its provider, and a new stack has none.
    #[must_use]
    pub fn awaiting_key(self) -> Self {
        Self { awaits_key: true, ..self }
    }

    /// Returns whether the user chose a key that has not been created yet.
    pub fn awaits_key(&self) -> bool {
        self.awaits_key
    }

    /// Sets the URL of the key that is used in place of that of the provider, if the provider is a key
    /// (`PULUMI_CLOUD_SECRET_OVERRIDE`, docs/spec/state-and-secrets.md#5.4).
    #[must_use]
    pub fn with_substitute(self, url: Option<String>) -> Self {
        Self { substitute: url, ..self }
    }

    /// Returns the provider that the user chose for the stack.
    pub fn provider(&self) -> Option<&Provider> {
        self.provider.as_ref()
    }

    /// Returns the manager that a state or a stack file describes.
    ///
    /// # Errors
    /// [`SecretsError`] if the manager cannot be created. [`SecretsManager::crypter`] reports a wrong passphrase, and the
    /// failure of a key management service.
    pub fn manager(&self, description: &SecretsDescription) -> Result<Arc<dyn SecretsManager>, SecretsError> {
        let mut managers = self.managers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(manager) = managers.iter().find(|manager| manager.describe() == *description) {
            return Ok(Arc::clone(manager));
        }
        let manager: Arc<dyn SecretsManager> = match description.kind.as_str() {
            passphrase::KIND => {
                let passphrase = self.passphrase.clone().ok_or(SecretsError::NoPassphrase)?;
                let report = self.derivations();
                Arc::new(PassphraseManager::open_described_reporting(passphrase, description, report)?)
            }
            cloud::KIND => Arc::new(CloudManager::open_described(self.keys(description)?, description)?),
            other => return Err(SecretsError::UnknownManager(other.to_owned())),
        };
        managers.push(Arc::clone(&manager));
        Ok(manager)
    }

    /// Creates a manager for a stack: a passphrase with a new salt, or a key with a new data key. `configured` is the
    /// manager of the stack file.
    ///
    /// # Errors
    /// [`SecretsError::NoPassphrase`] without a passphrase, [`SecretsError::KeyNotCreated`] without the key that the user
    /// chose, [`SecretsError::Key`] if the key management service fails, [`SecretsError::Encrypt`] if the system returns no
    /// random numbers.
    pub async fn new_manager(
        &self,
        configured: Option<&SecretsDescription>,
    ) -> Result<Arc<dyn SecretsManager>, SecretsError> {
        let manager: Arc<dyn SecretsManager> = match self.provider_for_writing(configured) {
            Some(Provider::Key { url }) => {
                let keys = self.keys(&cloud::describe(&url, ""))?;
                Arc::new(CloudManager::create(&keys, &url).await?)
            }
            None if self.awaits_key => return Err(SecretsError::KeyNotCreated),
            Some(Provider::Passphrase) | None => {
                let passphrase = self.passphrase.clone().ok_or(SecretsError::NoPassphrase)?;
                let _deriving = self.derivations().map(|report| report());
                Arc::new(PassphraseManager::create(passphrase).await?)
            }
        };
        self.add(Arc::clone(&manager));
        Ok(manager)
    }

    /// Returns the manager with which a state is encrypted: that of the stack file, else that of the state if it has the
    /// provider that the user chose, else a new one.
    ///
    /// # Errors
    /// [`SecretsError`] if the manager cannot be created.
    pub(crate) async fn manager_for_writing(
        &self,
        configured: Option<&SecretsDescription>,
        in_state: Option<&SecretsDescription>,
    ) -> Result<Arc<dyn SecretsManager>, SecretsError> {
        let provider = self.provider_for_writing(configured);
        let is_usable = |description: &&SecretsDescription| {
            let has_key = description.kind != cloud::KIND || cloud::encrypted_key(description).is_some();
            has_key && provider.as_ref().is_none_or(|wanted| Provider::of(description).as_ref() == Some(wanted))
        };
        match [configured, in_state].into_iter().flatten().find(is_usable) {
            Some(description) => self.manager(description),
            None => self.new_manager(configured).await,
        }
    }

    /// Returns the provider with which a state is encrypted: that of the stack file, else that which the user chose.
    fn provider_for_writing(&self, configured: Option<&SecretsDescription>) -> Option<Provider> {
        let provider = configured.map_or_else(|| self.provider.clone(), Provider::of);
        match (&self.substitute, provider) {
            (Some(url), Some(Provider::Key { .. })) => Some(Provider::Key { url: url.clone() }),
            (_, provider) => provider,
        }
    }

    /// Returns the services of keys.
    fn keys(&self, description: &SecretsDescription) -> Result<StackKeys, SecretsError> {
        self.keys.clone().ok_or_else(|| SecretsError::UnknownManager(description.kind.clone()))
    }

    fn add(&self, manager: Arc<dyn SecretsManager>) {
        self.managers.lock().unwrap_or_else(PoisonError::into_inner).push(manager);
    }
}
