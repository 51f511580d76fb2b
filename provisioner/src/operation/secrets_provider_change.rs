//! Change of the secrets provider of a stack: of its state and of its settings file.
//!
//! Both are changed, or none: the new settings file is written beside the old one, then the state is saved, then the new
//! file takes the place of the old one. [`Stacks::access`] finishes a change that was interrupted: the state decides.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bridge::fs::{Access, MAX_DOCUMENT_BYTES, read_regular, utf8, write_atomically};
use state::secrets::{Crypter, Passphrase, PassphraseManager, Provider, SecretsError, SecretsManager};
use state::{SecretsChange, SettingsEdit, StackAccess, StackSettings, StateError, stored_secrets};

use super::Stacks;
use super::settings_file::settings_file;
use super::setup_error::SecretsProviderError;

impl Stacks {
    /// Returns whether the change of the provider replaces a passphrase by another one, which the user has to enter.
    ///
    /// # Errors
    /// [`StateError`] if the state cannot be read.
    pub async fn needs_new_passphrase(&self, access: &StackAccess) -> Result<bool, StateError> {
        let in_state = stored_secrets(access).await?;
        let is_passphrase = |provider: Option<Provider>| provider == Some(Provider::Passphrase);
        Ok(is_passphrase(in_state.as_ref().and_then(Provider::of)) && is_passphrase(access.keyring.provider().cloned()))
    }

    /// Encrypts the secrets of the state and of the settings file with the provider that server.yaml names: with a new data
    /// key, or with a new salt and, if there is one, the new passphrase. Adds the latter to the masked secrets. Returns
    /// `None` for a state that named no provider.
    ///
    /// # Errors
    /// [`SecretsProviderError`].
    pub async fn change_secrets_provider(
        &self,
        access: &StackAccess,
        new_passphrase: Option<&str>,
    ) -> Result<Option<SecretsChange>, SecretsProviderError> {
        let manager = match new_passphrase {
            Some(passphrase) => {
                self.masker.add_text(passphrase);
                let created = PassphraseManager::create(Passphrase::new(passphrase)).await;
                created.map(|manager| Arc::new(manager) as Arc<dyn SecretsManager>)
            }
            None => access.keyring.new_manager(None).await,
        };
        let manager = manager?;
        let edited = self.edit_settings(access, &*manager).await?;
        let prepare = || match &edited {
            Some((path, text)) => write_atomically(&prepared_file(path), text.as_bytes(), Access::Shared)
                .map_err(SecretsProviderError::Unwritable),
            None => Ok(()),
        };
        let changed = state::change_secrets(access, &self.holder(), &*manager, prepare).await;
        // The state may have been saved although its lock could not be released.
        let finished = finish_settings(&self.repository.root, access).await;
        let changed = changed?;
        finished?;
        Ok(changed)
    }

    /// Returns the path and the new text of the settings file; `None` if there is none.
    async fn edit_settings(
        &self,
        access: &StackAccess,
        manager: &dyn SecretsManager,
    ) -> Result<Option<(PathBuf, String)>, SecretsProviderError> {
        let path = settings_file(&self.repository.root, access.stack.stack());
        let text = match read_regular(&path, MAX_DOCUMENT_BYTES).and_then(utf8) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(SecretsProviderError::Unreadable { path, source }),
        };
        let failed = |source| SecretsProviderError::Edit { path: path.clone(), source };
        let from = match &access.configured_secrets {
            Some(configured) if access.config.values().any(|value| value.is_secret()) => {
                Some(crypter(access.keyring.manager(configured)).await.map_err(|error| failed(error.into()))?)
            }
            _ => None,
        };
        let to = manager.crypter().await.map_err(|error| failed(error.into()))?;
        let edit = SettingsEdit { from: from.as_deref(), to: &*to, description: &manager.describe() };
        let edited = edit.apply(&text, access.stack.project()).map_err(failed)?;
        Ok(Some((path, edited)))
    }
}

async fn crypter(manager: Result<Arc<dyn SecretsManager>, SecretsError>) -> Result<Arc<dyn Crypter>, SecretsError> {
    manager?.crypter().await
}

/// Returns the path of the new settings file before it takes its place.
fn prepared_file(settings: &Path) -> PathBuf {
    settings.with_extension("yaml.new")
}

/// Finishes the change of the settings file of a stack: the new file takes its place if the state names the same secrets
/// manager, and is removed otherwise. Returns whether there was one. Does nothing while the stack is locked.
///
/// # Errors
/// [`SecretsProviderError`]: the new file stays, and the next command tries again.
pub(super) async fn finish_settings(root: &Path, access: &StackAccess) -> Result<bool, SecretsProviderError> {
    let path = settings_file(root, access.stack.stack());
    let prepared = prepared_file(&path);
    let text = match read_regular(&prepared, MAX_DOCUMENT_BYTES).and_then(utf8) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(source) => return Err(SecretsProviderError::Unreadable { path: prepared, source }),
    };
    if !access.store.locks(&access.stack).await.map_err(StateError::from)?.is_empty() {
        return Ok(false);
    }
    let in_state = stored_secrets(access).await?;
    let new = StackSettings::parse(&text, access.stack.project()).ok().and_then(|settings| settings.secrets);
    let finished = if new.is_some() && new == in_state { rename(&prepared, &path) } else { remove(&prepared) };
    finished.map_err(|source| SecretsProviderError::NotMoved { from: prepared, to: path, source })?;
    Ok(true)
}

#[expect(clippy::disallowed_methods, reason = "a rename does not write the file")]
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)
}

fn remove(path: &Path) -> io::Result<()> {
    std::fs::remove_file(path)
}
