//! How to get at the state of a stack: its store, the key of its secrets, the settings beside the project.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use config::{SecretsProvider, Stack, StateStorage, Surroundings};
use state::secrets::{Keyring, Passphrase};
use state::store::{FileStore, FileUrl, StackReference};
use state::{StackAccess, StackSettings};

use super::stacks::Stacks;
use super::storage::file_options;

/// The version that states name as their writer.
const ENGINE_VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));
/// Where the passphrase is if the configuration has none (state and secrets, section 5): the text, or a file with it.
const PASSPHRASE: &str = "PULUMI_CONFIG_PASSPHRASE";
const PASSPHRASE_FILE: &str = "PULUMI_CONFIG_PASSPHRASE_FILE";

/// The way to the state of a stack.
///
/// # Errors
/// The store is not there, or the environment contradicts itself about it; the stack file or the file of the passphrase cannot be read.
pub(crate) async fn access(stacks: &Stacks, stack: &Stack) -> anyhow::Result<StackAccess> {
    let store = open_store(stacks, stack).await?;
    let keyring = Keyring::new(passphrase(stack, &stacks.surroundings)?);
    let settings = settings(&stacks.repository.root, stack)?;
    Ok(StackAccess {
        journals: store.folder().to_owned(),
        store: Arc::new(store),
        stack: StackReference::new(&stack.project, &stack.name)?,
        keyring: Arc::new(keyring),
        configured_secrets: settings.secrets,
        config: settings.config,
        engine_version: ENGINE_VERSION.to_owned(),
    })
}

async fn open_store(stacks: &Stacks, stack: &Stack) -> anyhow::Result<FileStore> {
    let StateStorage::FileSystem { url, .. } = &stack.provisioner.state_storage;
    let home = stacks.surroundings.account.as_ref().map(|account| account.home.as_path());
    // Relative to the repository, so that it does not matter from where the command is started.
    let url = FileUrl::parse(url, &stacks.repository.root, home);
    let options = file_options(&stacks.surroundings.environment)?;
    let store = async { anyhow::Ok(FileStore::open_with(&url?, options).await?) };
    store.await.with_context(|| format!("the state storage of stack {} cannot be opened", stack.name))
}

/// The passphrase: the configuration's, else the environment's, else that of the file that the environment names.
fn passphrase(stack: &Stack, surroundings: &Surroundings) -> anyhow::Result<Option<Passphrase>> {
    let SecretsProvider::Passphrase { passphrase, .. } = &stack.provisioner.secrets_provider;
    if let Some(passphrase) = passphrase {
        return Ok(Some(Passphrase::new(passphrase.expose())));
    }
    if let Some(passphrase) = surroundings.environment.get(PASSPHRASE) {
        return Ok(Some(Passphrase::new(passphrase)));
    }
    let Some(file) = surroundings.environment.get(PASSPHRASE_FILE).filter(|file| !file.is_empty()) else {
        return Ok(None);
    };
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("{PASSPHRASE_FILE} names {file}, which cannot be read"))?;
    Ok(Some(Passphrase::new(text.trim())))
}

/// Where the settings of a stack are.
pub(crate) fn settings_file(root: &Path, stack: &str) -> PathBuf {
    root.join(format!("Pulumi.{stack}.yaml"))
}

/// `Pulumi.<stack>.yaml` at the root of the repository, if it is there.
fn settings(root: &Path, stack: &Stack) -> anyhow::Result<StackSettings> {
    let path = settings_file(root, &stack.name);
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            StackSettings::parse(&text, &stack.project).with_context(|| format!("{} cannot be used", path.display()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(StackSettings::default()),
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", path.display())),
    }
}
