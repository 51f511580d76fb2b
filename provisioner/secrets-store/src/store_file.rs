//! The file of the store: reads it as a whole, and replaces it as a whole.

use std::fs::File;
use std::path::{Path, PathBuf};

use bridge::fs::{Access, FileError, create_folders, place_below, read_if_exists, utf8};
use zeroize::Zeroizing;

use crate::ciphers;
use crate::error::SecretsStoreError;
use crate::keys::OwnKeys;
use crate::paths::{FOLDER, STORE_PATH, normalize};
use crate::store::Store;
use crate::temporary::TemporaryFolder;

/// Maximum size of the store, and of a secret file, in bytes.
pub(crate) const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The file of the store of a repository.
#[derive(Clone, Debug)]
pub struct StoreFile {
    root: PathBuf,
}

/// Content of the store, and the bytes that it was read from.
#[derive(Clone, Debug)]
pub(crate) struct ReadStore {
    pub(crate) store: Store,
    pub(crate) bytes: Option<Vec<u8>>,
}

impl StoreFile {
    /// Takes the root of a repository.
    pub fn of(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Returns the root of the repository.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Reads the store. A missing file is an empty store.
    ///
    /// # Errors
    /// [`SecretsStoreError`]. A file that cannot be read is never an empty store.
    pub fn read(&self) -> Result<Store, SecretsStoreError> {
        Ok(self.read_bytes()?.store)
    }

    /// Decrypts a file of a store, without writing it. The path is absolute, or relative to the root. `None` if the
    /// store has no entry of it for any recipient.
    ///
    /// # Errors
    /// [`SecretsStoreError`]: [`SecretsStoreError::NotRecipient`] if only others have an entry.
    pub fn decrypt(
        &self,
        store: &Store,
        path: &str,
        keys: &OwnKeys,
    ) -> Result<Option<Zeroizing<Vec<u8>>>, SecretsStoreError> {
        let Ok(path) = normalize(&self.root, path) else { return Ok(None) };
        let is_path =
            |known: &str| normalize(&self.root, known.trim_start_matches('/')).is_ok_and(|known| known == path);
        if !store.recipients().iter().any(|recipient| recipient.entries.iter().any(|entry| is_path(&entry.path))) {
            return Ok(None);
        }
        let key = keys.public()?;
        let entry = store.entries(key).and_then(|entries| entries.iter().find(|entry| is_path(&entry.path)));
        let entry = entry.ok_or_else(|| SecretsStoreError::NotRecipient { key: key.clone(), is_empty: false })?;
        let decrypted = ciphers::decrypt(&entry.elements, keys.private()?);
        decrypted.map(Some).map_err(|source| SecretsStoreError::Decrypt {
            path: entry.path.clone(),
            key: key.clone(),
            source,
        })
    }

    pub(crate) fn read_bytes(&self) -> Result<ReadStore, SecretsStoreError> {
        let path = self.path();
        let Some(bytes) = read_if_exists(&path, MAX_BYTES)? else {
            return Ok(ReadStore { store: Store::default(), bytes: None });
        };
        let text = utf8(bytes.clone()).map_err(FileError::of("read", &path))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let store = Store::parse(text).map_err(SecretsStoreError::Unreadable)?;
        Ok(ReadStore { store, bytes: Some(bytes) })
    }

    /// Waits until no other process edits the store, and checks that the file still has the bytes that the edit began
    /// with. The lock ends with the returned value, or with the process.
    pub(crate) fn lock(&self, before: Option<&[u8]>) -> Result<File, SecretsStoreError> {
        let folder = place_below(&self.root, Path::new(FOLDER))?;
        create_folders(&folder)?;
        self.place()?;
        let lock = lock(&folder)?;
        if read_if_exists(&self.path(), MAX_BYTES)?.as_deref() != before {
            return Err(SecretsStoreError::Conflict);
        }
        Ok(lock)
    }

    /// Replaces the store, unless it has the same text.
    pub(crate) fn write(&self, before: Option<&[u8]>, store: &Store) -> Result<(), SecretsStoreError> {
        let text = store.to_yaml();
        if before != Some(text.as_bytes()) {
            // A link to a store inside of the repository stays a link.
            let place = self.place()?;
            TemporaryFolder::open(&self.root)?.write(&place, text.as_bytes(), Access::Shared)?;
        }
        Ok(())
    }

    /// Returns the place of the store, behind links.
    fn place(&self) -> Result<PathBuf, FileError> {
        place_below(&self.root, Path::new(STORE_PATH))
    }

    fn path(&self) -> PathBuf {
        self.root.join(STORE_PATH)
    }
}

/// Locks the folder of the store, for the time of a write. The system releases the lock when the process ends.
#[expect(clippy::disallowed_methods, reason = "a folder is opened, not a file")]
fn lock(folder: &Path) -> Result<File, FileError> {
    let opened = File::open(folder).and_then(|opened| opened.lock().map(|()| opened));
    opened.map_err(FileError::of("lock", folder))
}
