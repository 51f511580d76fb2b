//! `secrets.yaml` of a stack that is not on the disk: it is read from the store of the repository, in memory.

use std::cell::OnceCell;
use std::path::Path;

use bridge::error::{Hint as _, chain};
use secrets_store::keys::OwnKeys;
use secrets_store::store::Store;
use secrets_store::{SecretsStoreError, StoreFile};
use zeroize::Zeroizing;

use crate::process_context::{ProcessContext, Repository};
use crate::profile::Profile;

/// File as the store has it.
pub(super) enum StoredFile {
    /// The store does not have the file, or there is no store.
    Absent,
    /// Text of the file.
    Text(Zeroizing<String>),
    /// The store cannot be read, or the keys of the profile do not decrypt the file.
    Closed {
        /// True if the store has the file.
        is_listed: bool,
        /// Reason, and what to do.
        reason: String,
    },
}

/// The store of a repository, which is read when a file is needed that is not on the disk.
pub(super) struct StoredSecrets {
    file: StoreFile,
    keys: OwnKeys,
    store: OnceCell<Result<Store, String>>,
}

impl StoredSecrets {
    /// Takes the keys of the profile, and reads nothing.
    pub(super) fn new(repository: &Repository, profile: &Profile, process_context: &ProcessContext) -> Self {
        let keys = OwnKeys::new(profile.key_config(repository, process_context));
        Self { file: StoreFile::of(&repository.root), keys, store: OnceCell::new() }
    }

    /// Decrypts a file by its path.
    pub(super) fn read(&self, path: &Path) -> StoredFile {
        let Some(path) = path.to_str() else { return StoredFile::Absent };
        let store = match self.store.get_or_init(|| self.file.read().map_err(|error| reason(&error))) {
            Ok(store) => store,
            Err(reason) => return StoredFile::Closed { is_listed: false, reason: reason.clone() },
        };
        let closed = |reason| StoredFile::Closed { is_listed: true, reason };
        match self.file.decrypt(store, path, &self.keys) {
            Ok(None) => StoredFile::Absent,
            Ok(Some(text)) => match std::str::from_utf8(&text) {
                Ok(text) => StoredFile::Text(Zeroizing::new(text.to_owned())),
                Err(_) => closed("the file in the store is not UTF-8".to_owned()),
            },
            Err(error) => closed(reason(&error)),
        }
    }
}

fn reason(error: &SecretsStoreError) -> String {
    match (error, error.hint()) {
        // Without the key, which may be long.
        (SecretsStoreError::NotRecipient { key, .. }, _) => {
            let key = key.short();
            format!(
                "it has nothing for the public key of the profile, {key}; who can reveal it runs `sc secrets allow KEY`"
            )
        }
        (_, Some(hint)) => format!("{}; {hint}", chain(error)),
        (_, None) => chain(error),
    }
}
