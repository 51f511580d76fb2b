//! Access to the state of a stack: its store, its keys, its settings.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use bridge::fs::Access;
use config::{Stack, StateStorage};
use state::store::{FileStore, FileUrl, RenameOutcome, StackReference, StoreOptions};
use state::{JournalFolders, LockSettings, StackAccess};

use super::secrets_provider_change::finish_settings;
use super::settings_file::{move_settings, read_settings};
use super::store_options::store_options;
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
    /// returns it. Finishes an interrupted change of the secrets provider.
    ///
    /// # Errors
    /// The errors of [`Stacks::open_access`]. The rename may still be active, cannot be completed, or has given the stack
    /// another name ([`SetupError::Renamed`]).
    pub async fn access(&self, stack: &Stack) -> Result<(StackAccess, Option<ResumedRename>), SetupError> {
        let mut access = self.open_access(stack).await?;
        let changed = finish_settings(&self.repository.root, &access).await;
        if changed.map_err(|error| SetupError::SecretsProvider(Box::new(error)))? {
            access = self.open_access(stack).await?;
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
        let access = if is_complete { self.open_access(stack).await? } else { access };
        Ok((access, Some(ResumedRename { from, to, is_complete })))
    }

    /// Returns the access to the state of a stack, without completing or undoing an interrupted rename.
    ///
    /// # Errors
    /// [`SetupError`]: the store is missing or the environment variables for it contradict each other; the settings file
    /// or the passphrase file cannot be read.
    pub async fn open_access(&self, stack: &Stack) -> Result<StackAccess, SetupError> {
        let store = self.open_store(stack).await?;
        let name = StackReference::new(&stack.project, &stack.name)?;
        let keyring = self.keyring(stack, &name)?;
        let settings = read_settings(&self.repository.root, stack)?;
        Ok(StackAccess {
            journals: self.journal_folders(store.folder()),
            unrecorded: self.unrecorded.clone(),
            store: Arc::new(store),
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

    async fn open_store(&self, stack: &Stack) -> Result<FileStore, SetupError> {
        let StateStorage::FileSystem { url, private, .. } = &stack.provisioner.state_storage;
        let home = self.process_context.account.as_ref().map(|account| account.home.as_path());
        // A path is relative to the repository, so that the working directory of the command does not matter.
        let url = FileUrl::parse(url, &self.repository.root, home);
        let access = if *private { Access::Private } else { Access::Shared };
        let options = StoreOptions { access, ..store_options(&self.process_context.environment)? };
        let name = || stack.name.clone();
        let url = url.map_err(|source| SetupError::Url { stack: name(), source })?;
        FileStore::open_with(&url, options).await.map_err(|source| SetupError::Store { stack: name(), source })
    }

    /// Returns the folders of journals: that of the backend, and private folders for a backend that cannot be written, on
    /// other disks if possible.
    fn journal_folders(&self, backend: &Path) -> JournalFolders {
        let environment = &self.process_context.environment;
        let folder = |name: &str| environment.get(name).map(Path::new).filter(|path| path.is_absolute());
        let state = folder("XDG_STATE_HOME").map(ToOwned::to_owned);
        let state = state.or_else(|| Some(folder("HOME")?.join(".local/state")));
        let temporary = folder("TMPDIR").unwrap_or(Path::new("/tmp"));
        let of_user = temporary.join(format!("sc-{}", self.process.user));
        let fallbacks = state.map(|state| state.join("sc")).into_iter().chain([of_user]);
        let canonical = std::fs::canonicalize(backend).unwrap_or_else(|_| backend.to_owned());
        JournalFolders::of_backend(backend).with_fallbacks(&canonical, fallbacks.collect())
    }
}
