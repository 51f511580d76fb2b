//! Access to the state of a stack: its store, its passphrase, its settings.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use bridge::fs::{Access, MAX_DOCUMENT_BYTES, read_named, utf8};
use config::diagnostics::{Code, Diagnostic, finish};
use config::{SecretsProvider, Stack, StateStorage};
use state::secrets::{Keyring, Passphrase, SecretsError};
use state::store::{FileStore, FileUrl, RenameOutcome, StackReference, StoreOptions};
use state::{JournalFolders, StackAccess};

use super::settings_file::{move_settings, read_settings};
use super::store_options::store_options;
use super::{SetupError, Stacks};

/// Version of the writer, as recorded in the manifest of a state.
const ENGINE_VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));
/// Environment variables for the passphrase if the configuration has none (docs/spec/state-and-secrets.md#5): the text,
/// or the path of a file that contains it.
const PASSPHRASE: &str = "PULUMI_CONFIG_PASSPHRASE";
const PASSPHRASE_FILE: &str = "PULUMI_CONFIG_PASSPHRASE_FILE";

/// Code of errors about the passphrase of a stack.
const PASSPHRASE_CODE: Code = Code("passphrase");
const MISSING_PASSPHRASE: &str = "the state needs a passphrase, and none was given";

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
    /// returns it.
    ///
    /// # Errors
    /// The errors of [`Stacks::open_access`]. The rename may still be active, cannot be completed, or has given the stack
    /// another name ([`SetupError::Renamed`]).
    pub async fn access(&self, stack: &Stack) -> Result<(StackAccess, Option<ResumedRename>), SetupError> {
        let access = self.open_access(stack).await?;
        let resumed = access.store.resume_rename(&access.stack, &self.holder()).await.map_err(SetupError::Rename)?;
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
        let keyring = Keyring::new(self.passphrase(stack)?);
        let settings = read_settings(&self.repository.root, stack)?;
        Ok(StackAccess {
            journals: self.journal_folders(store.folder()),
            unrecorded: self.unrecorded.clone(),
            store: Arc::new(store),
            stack: StackReference::new(&stack.project, &stack.name)?,
            keyring: Arc::new(keyring),
            configured_secrets: settings.secrets,
            config: settings.config,
            engine_version: ENGINE_VERSION.to_owned(),
        })
    }

    /// Returns an error for each requested stack without a passphrase. Call it before a run that records changes. Reads no
    /// passphrase file.
    pub fn check_passphrases(&self) -> Vec<Diagnostic> {
        let environment = &self.process_context.environment;
        let is_in_environment = environment.contains_key(PASSPHRASE)
            || environment.get(PASSPHRASE_FILE).is_some_and(|file| !file.is_empty());
        if is_in_environment {
            return Vec::new();
        }
        let missing = |stack: &Arc<Stack>| {
            let SecretsProvider::Passphrase { passphrase, span } = &stack.provisioner.secrets_provider;
            passphrase.is_none().then(|| {
                Diagnostic::error(PASSPHRASE_CODE, *span, MISSING_PASSPHRASE).help(format!(
                    "set `passPhrase` of the secrets provider, or the environment variable {PASSPHRASE} or {PASSPHRASE_FILE}"
                ))
            })
        };
        let mut found: Vec<Diagnostic> = self.requested().filter_map(missing).collect();
        // Several stacks may inherit one secrets provider.
        finish(&mut found);
        found
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

    /// Returns the passphrase: that of the configuration, else of the environment, else of the file named in the
    /// environment. Adds the last two to the masked secrets; that of the configuration is masked already.
    fn passphrase(&self, stack: &Stack) -> Result<Option<Passphrase>, SetupError> {
        let SecretsProvider::Passphrase { passphrase, .. } = &stack.provisioner.secrets_provider;
        if let Some(passphrase) = passphrase {
            return Ok(Some(Passphrase::new(passphrase.expose())));
        }
        let known = |passphrase: &str| {
            self.masker.add_text(passphrase);
            Ok(Some(Passphrase::new(passphrase)))
        };
        let environment = &self.process_context.environment;
        if let Some(passphrase) = environment.get(PASSPHRASE) {
            return known(passphrase);
        }
        let Some(file) = environment.get(PASSPHRASE_FILE).filter(|file| !file.is_empty()) else {
            return Ok(None);
        };
        let path = Path::new(file);
        let text = read_named(path, MAX_DOCUMENT_BYTES).map_err(|error| error.source).and_then(utf8);
        let unreadable =
            |source| SetupError::PassphraseFile { variable: PASSPHRASE_FILE, path: path.to_owned(), source };
        known(text.map_err(unreadable)?.trim())
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

/// Returns the error at the secrets provider of a stack, if its passphrase is the reason of an error.
pub fn passphrase_diagnostic(stack: &Stack, error: &SecretsError) -> Option<Diagnostic> {
    let summary = match error {
        SecretsError::NoPassphrase => MISSING_PASSPHRASE,
        SecretsError::WrongPassphrase => "the state has another passphrase",
        _ => return None,
    };
    let SecretsProvider::Passphrase { span, .. } = &stack.provisioner.secrets_provider;
    Some(Diagnostic::error(PASSPHRASE_CODE, *span, summary))
}
