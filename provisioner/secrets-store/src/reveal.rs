//! Decrypts the files of the store to the disk.

use std::path::PathBuf;

use bridge::fs::{Access, create_folders, read_if_exists, withdraw_access};
use zeroize::Zeroizing;

use crate::ciphers::{decrypt, is_legacy};
use crate::edit::Change;
use crate::error::SecretsStoreError;
use crate::key_files::KeyFiles;
use crate::keys::OwnKeys;
use crate::store_file::{MAX_BYTES, StoreFile};
use crate::temporary::TemporaryFolder;

/// Files that were decrypted, and are not written yet.
#[derive(Debug)]
pub struct Reveal {
    root: PathBuf,
    files: Vec<RevealedFile>,
    /// Paths of entries with the legacy encryption.
    pub legacy: Vec<String>,
}

#[derive(Debug)]
struct RevealedFile {
    place: PathBuf,
    change: Change,
}

impl Reveal {
    /// Decrypts all files that the store has for the key of the profile, registered or not.
    ///
    /// # Errors
    /// [`SecretsStoreError`], if any file cannot be decrypted or its path is not one of a secret file.
    pub fn prepare(file: &StoreFile, keys: &OwnKeys) -> Result<Self, SecretsStoreError> {
        let store = file.read()?;
        let key = keys.public()?;
        let is_empty = store.recipients().is_empty();
        let entries =
            store.entries(key).ok_or_else(|| SecretsStoreError::NotRecipient { key: key.clone(), is_empty })?;
        let (mut files, mut legacy) = (Vec::new(), Vec::new());
        let key_files = KeyFiles::of(file.root(), &store, keys);
        for entry in entries {
            let place = key_files.locate(&entry.path)?;
            let text = decrypt(&entry.elements, keys.private()?).map_err(|source| SecretsStoreError::Decrypt {
                path: entry.path.clone(),
                key: key.clone(),
                source,
            })?;
            let before = read_if_exists(&place, MAX_BYTES)?.map(Zeroizing::new);
            if let Some(before) = before.as_ref().filter(|before| **before != text) {
                key_files.check_text(&entry.path, before)?;
            }
            if key.as_str().starts_with("ssh-ed25519 ") && is_legacy(&entry.elements) {
                legacy.push(entry.path.clone());
            }
            files.push(RevealedFile { place, change: Change { path: entry.path.clone(), before, after: text } });
        }
        Ok(Self { root: file.root().to_owned(), files, legacy })
    }

    /// Returns the paths of all files, in the order of the store.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| file.change.path.as_str())
    }

    /// Returns the files on the disk that would be overwritten with another text.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.files.iter().map(|file| &file.change).filter(|change| change.before.is_some() && change.is_change())
    }

    /// Writes the files, readable for the user of this process only.
    ///
    /// # Errors
    /// [`SecretsStoreError`]. Files before the one that cannot be written are written.
    pub fn write(&self) -> Result<(), SecretsStoreError> {
        let temporary = TemporaryFolder::open(&self.root)?;
        for RevealedFile { place, change } in &self.files {
            if let Some(folder) = place.parent() {
                create_folders(folder)?;
            }
            if change.before.as_ref() == Some(&change.after) {
                withdraw_access(place)?;
            } else {
                temporary.write(place, &change.after, Access::Private)?;
            }
        }
        Ok(())
    }
}
