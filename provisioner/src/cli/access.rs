//! Access to the state of a stack: its store, its passphrase, and the stack file at the root of the repository.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use bridge::fs::{Access, MAX_DOCUMENT_BYTES, read_named, read_regular, utf8};
use config::diagnostics::{Code, Diagnostic, finish};
use config::{ProcessContext, SecretsProvider, Stack, StateStorage};
use state::secrets::{Keyring, Passphrase};
use state::store::{FileOptions, FileStore, FileUrl, LockHolder, RenameOutcome, StackReference};
use state::{JournalFolders, StackAccess, StackSettings};

use super::exit::CliError;
use super::stacks::{Stacks, configuration_error};
use super::storage::file_options;
use super::ui::Ui;

/// Version of the writer, as recorded in the manifest of a state.
const ENGINE_VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));
/// Environment variables for the passphrase if the configuration has none (docs/spec/state-and-secrets.md#5): the text,
/// or the path of a file that contains it.
const PASSPHRASE: &str = "PULUMI_CONFIG_PASSPHRASE";
const PASSPHRASE_FILE: &str = "PULUMI_CONFIG_PASSPHRASE_FILE";

/// Code of errors about the passphrase of a stack.
pub(crate) const PASSPHRASE_CODE: Code = Code("passphrase");
pub(crate) const MISSING_PASSPHRASE: &str = "the state needs a passphrase, and none was given";

/// Returns the access to the state of a stack. Completes or undoes a rename of the stack that was interrupted.
///
/// # Errors
/// The errors of [`open_access`]. The rename may still be active, cannot be completed, or has given the stack another
/// name.
pub(crate) async fn access(ui: &Ui, stacks: &Stacks, stack: &Stack) -> anyhow::Result<StackAccess> {
    let access = open_access(stacks, stack).await?;
    let Some(rename) = access.store.resume_rename(&access.stack, &holder(stacks)).await? else { return Ok(access) };
    let (from, to, outcome) = (rename.from().clone(), rename.to().clone(), rename.outcome);
    let moved = match outcome {
        RenameOutcome::NewName => move_settings(&stacks.repository.root, &from, &to),
        RenameOutcome::OldName | RenameOutcome::Pending => Ok(()),
    };
    access.store.finish_rename(rename).await?;
    moved?;
    match outcome {
        RenameOutcome::NewName if access.stack == from => {
            let message = format!("an interrupted rename of this stack was completed: {from} is {to} now");
            Err(CliError::failed(message, rename_hint(&from, &to)).into())
        }
        RenameOutcome::NewName => {
            ui.warn(&format!("completed an interrupted rename of {from} to {to}"));
            // The settings are at their new place only now.
            open_access(stacks, stack).await
        }
        RenameOutcome::OldName | RenameOutcome::Pending => {
            ui.warn(&format!("undid an interrupted rename of {from} to {to}"));
            Ok(access)
        }
    }
}

/// Returns what else the user has to rename.
pub(crate) fn rename_hint(from: &StackReference, to: &StackReference) -> String {
    let mut steps = Vec::new();
    if from.stack() != to.stack() {
        steps.push(format!("rename the folder of its server.yaml to {}", to.stack()));
    }
    if from.project() != to.project() {
        steps.push(format!("set `projectName: {}` in the profile", to.project()));
    }
    format!("{} before the next provision", steps.join(" and "))
}

/// Returns the access to the state of a stack, without completing or undoing an interrupted rename.
///
/// # Errors
/// The store is missing or the environment variables for it contradict each other; the stack file or the passphrase
/// file cannot be read.
pub(crate) async fn open_access(stacks: &Stacks, stack: &Stack) -> anyhow::Result<StackAccess> {
    let store = open_store(stacks, stack).await?;
    let keyring = Keyring::new(passphrase(stacks, stack)?);
    let settings = settings(&stacks.repository.root, stack)?;
    Ok(StackAccess {
        journals: journal_folders(store.folder(), &stacks.process_context),
        unrecorded: stacks.unrecorded.clone(),
        store: Arc::new(store),
        stack: StackReference::new(&stack.project, &stack.name)?,
        keyring: Arc::new(keyring),
        configured_secrets: settings.secrets,
        config: settings.config,
        engine_version: ENGINE_VERSION.to_owned(),
    })
}

/// Checks that a passphrase is given for each requested stack, before a run that records changes. Reads no passphrase file.
///
/// # Errors
/// A stack has no passphrase; the reasons have been printed.
pub(crate) fn check_passphrases(ui: &Ui, stacks: &Stacks) -> anyhow::Result<()> {
    let environment = &stacks.process_context.environment;
    let is_in_environment =
        environment.contains_key(PASSPHRASE) || environment.get(PASSPHRASE_FILE).is_some_and(|file| !file.is_empty());
    if is_in_environment {
        return Ok(());
    }
    let missing = |stack: &Arc<Stack>| {
        let SecretsProvider::Passphrase { passphrase, span } = &stack.provisioner.secrets_provider;
        passphrase.is_none().then(|| {
            Diagnostic::error(PASSPHRASE_CODE, *span, MISSING_PASSPHRASE).help(format!(
                "set `passPhrase` of the secrets provider, or the environment variable {PASSPHRASE} or {PASSPHRASE_FILE}"
            ))
        })
    };
    let mut found: Vec<Diagnostic> = stacks.requested().filter_map(missing).collect();
    // Several stacks may inherit one secrets provider.
    finish(&mut found);
    if found.is_empty() { Ok(()) } else { Err(configuration_error(ui, &found, &stacks.sources)) }
}

/// Returns the holder that is written into locks of this process.
pub(crate) fn holder(stacks: &Stacks) -> LockHolder {
    let account = stacks.process_context.account.as_ref();
    LockHolder {
        pid: std::process::id(),
        username: account.map(|account| account.username.clone()).unwrap_or_default(),
        hostname: rustix::system::uname().nodename().to_string_lossy().into_owned(),
    }
}

/// Returns the folders of journals: that of the backend, and private folders for a backend that cannot be written, on
/// other disks if possible.
fn journal_folders(backend: &Path, process_context: &ProcessContext) -> JournalFolders {
    let folder = |name: &str| process_context.environment.get(name).map(Path::new).filter(|path| path.is_absolute());
    let state = folder("XDG_STATE_HOME").map(ToOwned::to_owned);
    let state = state.or_else(|| Some(folder("HOME")?.join(".local/state")));
    let temporary = folder("TMPDIR").unwrap_or(Path::new("/tmp"));
    let user = rustix::process::geteuid().as_raw();
    let fallbacks = state.map(|state| state.join("sc")).into_iter().chain([temporary.join(format!("sc-{user}"))]);
    let canonical = std::fs::canonicalize(backend).unwrap_or_else(|_| backend.to_owned());
    JournalFolders::of_backend(backend).with_fallbacks(&canonical, fallbacks.collect())
}

async fn open_store(stacks: &Stacks, stack: &Stack) -> anyhow::Result<FileStore> {
    let StateStorage::FileSystem { url, private, .. } = &stack.provisioner.state_storage;
    let home = stacks.process_context.account.as_ref().map(|account| account.home.as_path());
    // A path is relative to the repository, so that the working directory of the command does not matter.
    let url = FileUrl::parse(url, &stacks.repository.root, home);
    let access = if *private { Access::Private } else { Access::Shared };
    let options = FileOptions { access, ..file_options(&stacks.process_context.environment)? };
    let store = async { anyhow::Ok(FileStore::open_with(&url?, options).await?) };
    store.await.with_context(|| format!("the backend of stack {} cannot be opened", stack.name))
}

/// Returns the passphrase: that of the configuration, else of the environment, else of the file named in the
/// environment. Adds the last two to the masked secrets; that of the configuration is masked already.
fn passphrase(stacks: &Stacks, stack: &Stack) -> anyhow::Result<Option<Passphrase>> {
    let SecretsProvider::Passphrase { passphrase, .. } = &stack.provisioner.secrets_provider;
    if let Some(passphrase) = passphrase {
        return Ok(Some(Passphrase::new(passphrase.expose())));
    }
    let known = |passphrase: &str| {
        stacks.masker.add_text(passphrase);
        Ok(Some(Passphrase::new(passphrase)))
    };
    let environment = &stacks.process_context.environment;
    if let Some(passphrase) = environment.get(PASSPHRASE) {
        return known(passphrase);
    }
    let Some(file) = environment.get(PASSPHRASE_FILE).filter(|file| !file.is_empty()) else {
        return Ok(None);
    };
    let text = read_named(Path::new(file), MAX_DOCUMENT_BYTES).map_err(|error| error.source).and_then(utf8);
    let text = text.with_context(|| format!("{PASSPHRASE_FILE} names {file}, which cannot be read"))?;
    known(text.trim())
}

/// Returns the path of the settings file of a stack, `Pulumi.<stack>.yaml`.
pub(crate) fn settings_file(root: &Path, stack: &str) -> PathBuf {
    root.join(format!("Pulumi.{stack}.yaml"))
}

/// Renames the settings file of a stack, if there is one.
///
/// # Errors
/// The file of the new name exists already, or the file cannot be renamed.
#[expect(clippy::disallowed_methods, reason = "a rename does not write the file")]
pub(crate) fn move_settings(root: &Path, from: &StackReference, to: &StackReference) -> anyhow::Result<()> {
    check_settings(root, from, to)?;
    let [old, new] = [from, to].map(|stack| settings_file(root, stack.stack()));
    if old == new || !old.exists() {
        return Ok(());
    }
    std::fs::rename(&old, &new).with_context(|| {
        format!("the stack was renamed, but {} could not be renamed; rename it by hand", old.display())
    })
}

/// Checks that a rename does not overwrite the settings file of the new name.
pub(crate) fn check_settings(root: &Path, from: &StackReference, to: &StackReference) -> Result<(), CliError> {
    let [old, new] = [from, to].map(|stack| settings_file(root, stack.stack()));
    if old == new || !old.exists() || !new.exists() {
        return Ok(());
    }
    let message = format!("{} already exists, and {} would overwrite it", new.display(), old.display());
    Err(CliError::failed(message, "remove or move one of them"))
}

/// Reads `Pulumi.<stack>.yaml` at the root of the repository; a missing file has default settings.
fn settings(root: &Path, stack: &Stack) -> anyhow::Result<StackSettings> {
    let path = settings_file(root, &stack.name);
    match read_regular(&path, MAX_DOCUMENT_BYTES).and_then(utf8) {
        Ok(text) => {
            StackSettings::parse(&text, &stack.project).with_context(|| format!("{} is invalid", path.display()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(StackSettings::default()),
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", path.display())),
    }
}
