//! Access to the state of a stack: its store, its keys, its settings.

use std::fmt;
use std::sync::Arc;

use config::Stack;
use state::store::{RenameOutcome, StackReference, StateStore};
use state::{JournalFolders, LockSettings, StackAccess};

use super::secrets_provider_change::finish_settings;
use super::settings_file::{move_settings, read_settings};
use super::{SetupError, Stacks};

/// Version of the writer, as recorded in the manifest of a state.
const ENGINE_VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));
/// Interrupted rename that was completed or undone. `Display` says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumedRename {
    /// Old name.
    pub from: StackReference,
    /// New name.
    pub to: StackReference,
    /// True if the rename was completed, false if it was undone.
    pub is_complete: bool,
}

impl fmt::Display for ResumedRename {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = if self.is_complete { "completed" } else { "undid" };
        write!(f, "{done} an interrupted rename of {} to {}", self.from, self.to)
    }
}

impl Stacks {
    /// Returns the access to the state of a stack. Completes or undoes a rename of the stack that was interrupted, and
    /// returns it. Finishes an interrupted change of the secrets provider. `configure` completes the treatment of locks: their
    /// reports, and the time to wait for them.
    ///
    /// # Errors
    /// The errors of [`Stacks::open_access`]. The rename may still be active, cannot be completed, or has given the stack
    /// another name ([`SetupError::Renamed`]).
    pub async fn access(
        &self,
        stack: &Stack,
        configure: impl Fn(&mut LockSettings),
    ) -> Result<(StackAccess, Option<ResumedRename>), SetupError> {
        let open = async || {
            let mut access = self.open_access(stack).await?;
            configure(&mut access.locks);
            Ok::<_, SetupError>(access)
        };
        let mut access = open().await?;
        let changed = finish_settings(&self.repository.root, &access).await;
        if changed.map_err(|error| SetupError::SecretsProvider(Box::new(error)))? {
            access = open().await?;
        }
        let resumed = state::resume_rename(&access, &self.holder()).await.map_err(SetupError::Rename)?;
        let Some(rename) = resumed else { return Ok((access, None)) };
        let (from, to, outcome) = (rename.from().clone(), rename.to().clone(), rename.outcome);
        let is_complete = outcome == RenameOutcome::NewName;
        let moved = if is_complete { move_settings(&self.repository.root, &from, &to) } else { Ok(()) };
        access.store.finish_rename(rename).await.map_err(SetupError::Rename)?;
        moved?;
        if is_complete && access.stack == from {
            return Err(SetupError::Renamed { from, to });
        }
        // The settings are at their new place only now.
        let access = if is_complete { open().await? } else { access };
        Ok((access, Some(ResumedRename { from, to, is_complete })))
    }

    /// Returns the access to the state of a stack, without completing or undoing an interrupted rename.
    ///
    /// # Errors
    /// [`SetupError`]: the store is missing or the environment variables for it contradict each other; the settings file,
    /// the passphrase file or the stack of the key cannot be read.
    pub async fn open_access(&self, stack: &Stack) -> Result<StackAccess, SetupError> {
        self.lease_duration()?;
        let (store, journals) = self.open_store(stack).await?;
        let key_url = self.key_url(stack, &store, &journals).await?;
        self.stack_access(stack, store, journals, key_url)
    }

    /// Returns the access to the state of a stack in a store that is open. `key_url` is the URL of the key that the stack asks
    /// for, if it has been created.
    pub(super) fn stack_access(
        &self,
        stack: &Stack,
        store: StateStore,
        journals: JournalFolders,
        key_url: Option<String>,
    ) -> Result<StackAccess, SetupError> {
        let name = StackReference::new(&stack.project, &stack.name)?;
        let keyring = self.keyring(stack, &name, key_url)?;
        let settings = read_settings(&self.repository.root, stack)?;
        Ok(StackAccess {
            journals,
            unrecorded: self.unrecorded.clone(),
            store,
            stack: name,
            keyring: Arc::new(keyring),
            configured_secrets: settings.secrets,
            config: settings.config,
            locks: LockSettings {
                takeover: stack.provisioner.takeover,
                has_ended: self.process.has_ended,
                ..LockSettings::default()
            },
            engine_version: ENGINE_VERSION.to_owned(),
        })
    }
}
