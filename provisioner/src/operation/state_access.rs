//! Access to the state of a stack: its store, its keys, its settings; and its migration to another store.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bridge::fs::{Access, FileError, place_below};
use bridge::message_text::MessageText;
use config::{CloudAccount, JournalGuarantee, SecretText, Stack, StateStorage};
use futures_util::future::join;
use state::store::{FileUrl, ObjectError, RenameOutcome, StackReference, StateStore, StoreOptions};
use state::{JournalFolders, JournalMode, LockSettings, LockWait, StackAccess, StackMigration};
use tokio_util::sync::CancellationToken;

use super::remote_store::masked_url;
use super::resumed_move::ResumedMove;
use super::secrets_provider_change::finish_settings;
use super::settings_file::{move_settings, read_settings};
use super::setup_error::UnsupportedTarget;
use super::store_options::store_options;
use super::{SetupError, Stacks, clouds, remote_store};

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

/// Interrupted changes of a stack that were completed or undone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResumedChanges {
    /// Rename of the stack.
    pub rename: Option<ResumedRename>,
    /// Move of resources from or to the stack.
    pub resource_move: Option<ResumedMove>,
}

impl ResumedChanges {
    /// Returns a text for each of them.
    pub fn texts(&self) -> impl Iterator<Item = MessageText> {
        let rename = self.rename.as_ref().map(MessageText::of);
        rename.into_iter().chain(self.resource_move.as_ref().map(MessageText::of))
    }
}

impl Stacks {
    /// Returns the access to the state of a stack. Completes or undoes a rename of the stack, or a move of its resources, that was
    /// interrupted, and returns them. Finishes an interrupted change of the secrets provider. `configure` completes the treatment of locks: their
    /// reports, and the time to wait for them.
    ///
    /// # Errors
    /// The errors of [`Stacks::open_access`]. The rename or the move may still be active, cannot be completed, or has given the stack
    /// another name ([`SetupError::Renamed`]).
    pub async fn access(
        &self,
        stack: &Stack,
        configure: impl Fn(&mut LockSettings),
    ) -> Result<(StackAccess, ResumedChanges), SetupError> {
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
        let (holder, store) = (self.holder(), access.store.clone());
        let (resumed, record) = join(state::resume_rename(&access, &holder), store.move_record(&access.stack)).await;
        let (resumed, record) = (resumed.map_err(SetupError::Rename)?, record.map_err(SetupError::Rename)?);
        let resource_move = match record {
            Some(record) => self.resume_move(&access, record, &configure).await?,
            None => None,
        };
        let Some(rename) = resumed else { return Ok((access, ResumedChanges { rename: None, resource_move })) };
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
        let rename = Some(ResumedRename { from, to, is_complete });
        Ok((access, ResumedChanges { rename, resource_move }))
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
            journal_mode: journal_mode(stack.provisioner.journal, &stack.provisioner.state_storage),
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
            begins_anew: false,
            engine_version: ENGINE_VERSION.to_owned(),
        })
    }

    /// Opens the store of a stack, and returns it with the folders of its journals.
    pub(super) async fn open_store(&self, stack: &Stack) -> Result<(StateStore, JournalFolders), SetupError> {
        let context = &self.process_context;
        let options = store_options(&context.environment)?;
        let failed = |source| SetupError::Store { stack: stack.name.clone(), source };
        match &stack.provisioner.state_storage {
            StateStorage::FileSystem { url, private, .. } => {
                // A path is relative to the repository, so that the working directory of the command does not matter.
                let home = context.account.as_ref().map(|account| account.home.as_path());
                let url = FileUrl::parse(url, &self.repository.root, home);
                let access = if *private { Access::Private } else { Access::Shared };
                let options = StoreOptions { access, ..options };
                let invalid = |source| SetupError::Url { stack: stack.name.clone(), source };
                let url = url.map_err(|error| invalid(error.into()))?;
                check_links(&self.repository.root, &url.folder, stack)
                    .map_err(|error| failed(ObjectError::from(error).into()))?;
                let store = StateStore::open_folder(&url, options).await.map_err(failed)?;
                let journals = self.journal_folders(&url.folder);
                Ok((store, journals))
            }
            StateStorage::Remote { url, account, .. } => {
                for secret in remote_store::secrets(url.expose(), account, &context.environment) {
                    self.masker.add_text(&secret);
                }
                let objects =
                    clouds::objects(&stack.name, url.expose(), account, context, self.outages.clone()).await?;
                let journals = self.remote_journal_folders(&objects.location());
                Ok((StateStore::open(objects, options).await.map_err(failed)?, journals))
            }
        }
    }

    /// Creates the bucket of a stack's store, if the stack asks for that and there is none. Returns its URL if it was created.
    /// Call it before a run that records changes.
    ///
    /// # Errors
    /// [`SetupError::Bucket`].
    pub async fn create_bucket(&self, stack: &Stack) -> Result<Option<String>, SetupError> {
        let StateStorage::Remote { url, account, new_bucket: Some(bucket), .. } = &stack.provisioner.state_storage
        else {
            return Ok(None);
        };
        let created = clouds::create_bucket(&stack.name, url.expose(), bucket, account, &self.process_context).await?;
        Ok(created.then(|| masked_url(url.expose())))
    }

    /// Returns the folders of journals: that of the backend, and private folders for a backend that cannot be written, on
    /// other disks if possible.
    fn journal_folders(&self, backend: &Path) -> JournalFolders {
        let canonical = std::fs::canonicalize(backend).unwrap_or_else(|_| backend.to_owned());
        let private = self.state_folder().into_iter().chain([self.temporary_folder()]);
        JournalFolders::of_backend(backend).with_fallbacks(&canonical, private.collect())
    }

    /// Returns the folders of the journals of a store that is not on this machine: a folder of the user, else of the
    /// repository.
    fn remote_journal_folders(&self, location: &str) -> JournalFolders {
        let folder = self.state_folder().unwrap_or_else(|| self.repository.root.join(".sc"));
        JournalFolders::of_remote_store(&folder, location)
            .with_fallbacks(Path::new(location), vec![self.temporary_folder()])
    }

    /// Returns the folder of the user for the state of this program.
    fn state_folder(&self) -> Option<PathBuf> {
        let state = self.absolute("XDG_STATE_HOME").map(ToOwned::to_owned);
        Some(state.or_else(|| Some(self.absolute("HOME")?.join(".local/state")))?.join("sc"))
    }

    fn temporary_folder(&self) -> PathBuf {
        self.absolute("TMPDIR").unwrap_or(Path::new("/tmp")).join(format!("sc-{}", self.process.user))
    }

    /// Returns the path in an environment variable, if it is absolute.
    fn absolute(&self, name: &str) -> Option<&Path> {
        let value = self.process_context.environment.get(name);
        value.map(Path::new).filter(|path| path.is_absolute())
    }

    /// Returns the migration of a stack, with its access, to the state storage at a URL, which has the form of a path in
    /// server.yaml. The target is opened with the credentials that the URL or the environment has; those in server.yaml are
    /// for the source. A folder is private if that of the source is. Completes or undoes a rename that was interrupted in the
    /// target.
    ///
    /// # Errors
    /// [`SetupError::UnsupportedTarget`], and the errors of [`Stacks::open_access`] for the target.
    pub async fn migration(
        &self,
        stack: &Stack,
        source: StackAccess,
        target_url: &str,
    ) -> Result<StackMigration, SetupError> {
        let storage = target_storage(target_url, &stack.provisioner.state_storage)?;
        let mut target_stack = stack.clone();
        target_stack.provisioner.state_storage = storage;
        let (store, journals) = self.open_store(&target_stack).await?;
        // A lock in the target is not awaited: it may be that of the source, if both are the same store by different names.
        let (lost, wait) = (CancellationToken::new(), LockWait::default());
        let locks = LockSettings { lost, wait, ..source.locks.clone() };
        let target = StackAccess { store, journals, locks, ..source.clone() };
        if let Some(rename) = state::resume_rename(&target, &self.holder()).await.map_err(SetupError::Rename)? {
            target.store.finish_rename(rename).await.map_err(SetupError::Rename)?;
        }
        let source_url = match &stack.provisioner.state_storage {
            StateStorage::FileSystem { url, .. } => masked_url(url),
            StateStorage::Remote { url, .. } => masked_url(url.expose()),
        };
        Ok(StackMigration { source, target, source_url, target_url: masked_url(target_url) })
    }
}

/// Returns the guarantee that a run waits for: in a folder none by default, because its journal is beside the state.
fn journal_mode(guarantee: Option<JournalGuarantee>, storage: &StateStorage) -> JournalMode {
    match (guarantee, storage) {
        (Some(JournalGuarantee::Intents), _) | (None, StateStorage::Remote { .. }) => JournalMode::Intents,
        (Some(JournalGuarantee::Sync), _) => JournalMode::Sync,
        (Some(JournalGuarantee::Local), _) | (None, StateStorage::FileSystem { .. }) => JournalMode::Local,
    }
}

/// Checks that a store in a repository is not led out of it by links of somebody who has written the repository.
///
/// # Errors
/// [`FileError`] of the first folder that is.
fn check_links(root: &Path, folder: &Path, stack: &Stack) -> Result<(), FileError> {
    let Ok(folder) = folder.strip_prefix(root) else { return Ok(()) };
    let (project, stack) = (&stack.project, &stack.name);
    let of_stack = |kind: &str| [format!(".pulumi/{kind}/{project}/{stack}"), format!(".pulumi/{kind}/{stack}")];
    let kinds = ["stacks", "history", "backups", "locks", "locks/organization"].into_iter().flat_map(of_stack);
    let own = ["journal", "moved", "plans"].into_iter().map(|kind| format!(".sc/{kind}/{project}"));
    let paths = kinds.chain(own).chain([".sc/renames", ".sc/clock"].map(str::to_owned));
    paths.into_iter().try_for_each(|path| place_below(root, &folder.join(path)).map(drop))
}

/// Returns the state storage at a URL, beside the one that server.yaml names.
fn target_storage(url: &str, source: &StateStorage) -> Result<StateStorage, SetupError> {
    let (span, private) = match source {
        StateStorage::FileSystem { span, private, .. } => (*span, *private),
        StateStorage::Remote { span, .. } => (*span, false),
    };
    let unsupported = |reason| Err(SetupError::UnsupportedTarget { url: masked_url(url), reason });
    match url.split_once("://") {
        _ if url.contains("${") => unsupported(UnsupportedTarget::Placeholder),
        Some(("file", _)) => Ok(StateStorage::FileSystem { url: url.to_owned(), span, private }),
        Some(("s3" | "gs" | "azblob" | "postgres", _)) => {
            let (url, account) = (SecretText::new(url), CloudAccount::Environment);
            Ok(StateStorage::Remote { url, span, account, new_bucket: None })
        }
        Some(("http" | "https", _)) => unsupported(UnsupportedTarget::Service),
        Some(_) | None => unsupported(UnsupportedTarget::Scheme),
    }
}
