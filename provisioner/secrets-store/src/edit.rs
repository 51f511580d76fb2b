//! Edits of the store: each is prepared, confirmed by the caller, and committed.

use std::fmt;
use std::path::{Path, PathBuf};

use bridge::fs::calls::remove_file;
use bridge::fs::{Access, FileError, read_if_exists, read_regular};
use zeroize::Zeroizing;

use crate::ciphers::{decrypt, encrypt, is_legacy};
use crate::confirmed::Listed;
use crate::error::SecretsStoreError;
use crate::gitignore::{add_to_gitignore, remove_from_gitignore};
use crate::key_files::KeyFiles;
use crate::keys::{OwnKeys, PublicKey, Recipient};
use crate::paths::normalize;
use crate::store::{Entry, Store};
use crate::store_file::{MAX_BYTES, ReadStore, StoreFile};
use crate::temporary::TemporaryFolder;

/// Change of the text of a file.
#[derive(Clone)]
pub struct Change {
    /// Path of the file.
    pub path: String,
    /// Text before the change; `None` if there was none, or it is unknown.
    pub before: Option<Zeroizing<Vec<u8>>>,
    /// Text after the change.
    pub after: Zeroizing<Vec<u8>>,
}

/// Shows no text.
impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Change").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Change {
    /// Returns whether any line changes. A new file without a text has no lines.
    pub fn is_change(&self) -> bool {
        self.before.as_deref().map_or(&[][..], Vec::as_slice) != self.after.as_slice()
    }
}

/// An edit that is prepared, and not written yet.
#[derive(Debug)]
pub struct Edit {
    file: StoreFile,
    before: Option<Vec<u8>>,
    store: Store,
    /// Files to encrypt, for each of the recipients.
    changes: Vec<Change>,
    /// Paths of the files that are encrypted because the store lists them: as they are registered, and behind links.
    read_files: Vec<String>,
    /// Key of the profile, if files on the disk are encrypted.
    own: Option<PublicKey>,
    recipients: Vec<(PublicKey, Recipient)>,
    ignored: Option<String>,
    no_longer_ignored: Option<String>,
    removed_file: Option<PathBuf>,
    /// File on the disk that gets a new text.
    replaced_file: Option<(PathBuf, Zeroizing<Vec<u8>>)>,
    /// Paths of entries that are dropped because they are not registered.
    pub dropped: Vec<String>,
    /// Paths of entries with the legacy encryption, which stay.
    pub legacy: Vec<String>,
}

/// Treatment of a registered file that is not on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    Refused,
    Kept,
}

impl Edit {
    /// Prepares the encryption of all registered files that have changed since they were encrypted.
    ///
    /// # Errors
    /// [`SecretsStoreError`]: [`SecretsStoreError::MissingFile`] if a file is not on the disk.
    pub fn hide(file: &StoreFile, keys: &OwnKeys) -> Result<Self, SecretsStoreError> {
        let mut edit = Self::begin(file)?;
        let files = edit.store.files.clone();
        edit.encrypt_changed(&files, keys, Missing::Refused)?;
        Ok(edit)
    }

    /// Prepares the registration of a file. Other files that have changed are encrypted, too; those that are not on
    /// the disk keep their entries.
    ///
    /// # Errors
    /// [`SecretsStoreError`]: [`SecretsStoreError::MissingFile`] if the file is not on the disk.
    pub fn add(file: &StoreFile, path: &str, keys: &OwnKeys) -> Result<Self, SecretsStoreError> {
        let mut edit = Self::begin(file)?;
        let path = normalize(file.root(), path)?;
        let others: Vec<String> = edit.store.files.iter().filter(|known| **known != path).cloned().collect();
        edit.store.register(&path);
        edit.encrypt_changed(&others, keys, Missing::Kept)?;
        let registered = edit.read_files.len();
        edit.encrypt_changed(std::slice::from_ref(&path), keys, Missing::Refused)?;
        edit.read_files.truncate(registered);
        edit.ignored = Some(path);
        Ok(edit)
    }

    /// Returns the recipients other than the key of the profile, and the files, that the edit takes from the store. The
    /// recipient of [`Edit::allow`] is named by the user.
    pub fn listed(&self) -> Listed {
        let Some(own) = &self.own else { return Listed::default() };
        let others = self.recipients.iter().map(|(key, _)| key).filter(|key| *key != own);
        Listed { recipients: others.cloned().collect(), files: self.read_files.clone() }
    }

    /// Returns the file that the user has named, to register it.
    pub fn named_file(&self) -> Option<&str> {
        self.ignored.as_deref()
    }

    /// Prepares the removal of a file from the store, and with `and_file` from the disk.
    ///
    /// # Errors
    /// [`SecretsStoreError`]: [`SecretsStoreError::NotRegistered`].
    pub fn delete(file: &StoreFile, path: &str, and_file: bool, keys: &OwnKeys) -> Result<Self, SecretsStoreError> {
        let mut edit = Self::begin(file)?;
        // Another program may have registered a path in a form of its own.
        let normal = normalize(file.root(), path);
        let registered = edit.store.files.iter().find(|known| **known == path || normal.as_ref() == Ok(known)).cloned();
        let Some(registered) = registered else {
            let known = edit.store.files.clone();
            return Err(SecretsStoreError::NotRegistered { path: path.to_owned(), known });
        };
        // `.gitignore` keeps a key out of git, whoever has registered its file.
        let place = KeyFiles::of(file.root(), &edit.store, keys).locate(&registered);
        if and_file {
            edit.removed_file = Some(place.clone()?);
        }
        edit.store.remove_file(&registered);
        edit.no_longer_ignored = place.is_ok().then_some(registered);
        Ok(edit)
    }

    /// Prepares the encryption of all files for another recipient. The texts are those of the store, whatever is on
    /// the disk.
    ///
    /// # Errors
    /// [`SecretsStoreError`]: [`SecretsStoreError::Path`] if the store has a key that opens it.
    pub fn allow(file: &StoreFile, key: &str, keys: &OwnKeys) -> Result<Self, SecretsStoreError> {
        let mut edit = Self::begin(file)?;
        let key = PublicKey::of_line(key);
        let recipient = key.recipient()?;
        let own = keys.public()?.clone();
        let is_empty = edit.store.recipients().is_empty();
        let not_recipient = SecretsStoreError::NotRecipient { key: own.clone(), is_empty };
        let entries = edit.store.entries(&own).ok_or(not_recipient)?.to_vec();
        let is_missing = |entry: &&Entry| edit.store.entry(&key, &entry.path).is_none();
        let mut missing: Vec<&Entry> = entries.iter().filter(is_missing).collect();
        missing.sort_by_key(|entry| edit.store.files.iter().position(|path| *path == entry.path));
        let mut changes = Vec::new();
        let key_files = KeyFiles::of(file.root(), &edit.store, keys);
        for entry in missing {
            key_files.locate(&entry.path)?;
            let after = decrypt_own(entry, &own, keys)?;
            key_files.check_text(&entry.path, &after)?;
            changes.push(Change { path: entry.path.clone(), before: None, after });
        }
        edit.changes = changes;
        edit.recipients = vec![(key, recipient)];
        Ok(edit)
    }

    /// Prepares the removal of a recipient.
    ///
    /// # Errors
    /// [`SecretsStoreError`]: [`SecretsStoreError::OwnKey`] for the key of the profile: nobody might have access
    /// then.
    pub fn disallow(file: &StoreFile, key: &str, keys: &OwnKeys) -> Result<Self, SecretsStoreError> {
        let mut edit = Self::begin(file)?;
        let own = keys.public()?.clone();
        if edit.store.entries(&own).is_none() {
            let is_empty = edit.store.recipients().is_empty();
            return Err(SecretsStoreError::NotRecipient { key: own, is_empty });
        }
        let key = PublicKey::of_line(key);
        if key == own {
            return Err(SecretsStoreError::OwnKey { key });
        }
        if !edit.store.remove_recipient(&key) {
            return Err(SecretsStoreError::UnknownRecipient { key });
        }
        Ok(edit)
    }

    /// Returns a file as it is registered, with its text in the store, for a change by the user.
    ///
    /// # Errors
    /// [`SecretsStoreError`]: [`SecretsStoreError::NotRegistered`]; [`SecretsStoreError::DiffersOnDisk`].
    pub fn text(
        file: &StoreFile,
        path: &str,
        keys: &OwnKeys,
    ) -> Result<(String, Zeroizing<Vec<u8>>), SecretsStoreError> {
        let edit = Self::begin(file)?;
        let (path, text, _) = edit.text_in_store(path, keys)?;
        Ok((path, text))
    }

    /// Prepares another text of a registered file, of which the user has seen the text `before`. A file on the disk gets the text,
    /// too. No other file is read.
    ///
    /// # Errors
    /// The errors of [`Edit::text`]; [`SecretsStoreError::Conflict`] if the store has another text meanwhile.
    pub fn replace(
        file: &StoreFile,
        path: &str,
        before: &[u8],
        after: &[u8],
        keys: &OwnKeys,
    ) -> Result<Self, SecretsStoreError> {
        let mut edit = Self::begin(file)?;
        keys.check()?;
        let (path, text, place) = edit.text_in_store(path, keys)?;
        if text.as_slice() != before {
            return Err(SecretsStoreError::Conflict);
        }
        let after = Zeroizing::new(after.to_vec());
        KeyFiles::of(file.root(), &edit.store, keys).check_text(&path, &after)?;
        let own = keys.public()?.clone();
        edit.replaced_file = place.exists().then(|| (place, after.clone()));
        edit.read_files.push(path.clone());
        edit.changes.push(Change { path, before: Some(text), after });
        edit.own = Some(own.clone());
        edit.recipients = edit.recipients_with(&own)?;
        Ok(edit)
    }

    /// Returns a file as it is registered, its text in the store, and its place on the disk, which has the same text if there is a file.
    fn text_in_store(
        &self,
        path: &str,
        keys: &OwnKeys,
    ) -> Result<(String, Zeroizing<Vec<u8>>, PathBuf), SecretsStoreError> {
        let normal = normalize(self.file.root(), path);
        let registered = self.store.files.iter().find(|known| **known == path || normal.as_ref() == Ok(known)).cloned();
        let not_registered =
            || SecretsStoreError::NotRegistered { path: path.to_owned(), known: self.store.files.clone() };
        let path = registered.ok_or_else(not_registered)?;
        let place = KeyFiles::of(self.file.root(), &self.store, keys).locate(&path)?;
        let own = keys.public()?;
        let entry = self.store.entry(own, &path);
        let is_empty = self.store.recipients().is_empty();
        let entry = entry.ok_or_else(|| SecretsStoreError::NotRecipient { key: own.clone(), is_empty })?;
        let text = decrypt_own(entry, own, keys)?;
        match read_if_exists(&place, MAX_BYTES)?.map(Zeroizing::new) {
            Some(on_disk) if on_disk != text => Err(SecretsStoreError::DiffersOnDisk { path }),
            _ => Ok((path, text, place)),
        }
    }

    fn begin(file: &StoreFile) -> Result<Self, SecretsStoreError> {
        let ReadStore { mut store, bytes } = file.read_bytes()?;
        if !store.unknown_keys.is_empty() {
            return Err(SecretsStoreError::UnknownKeys(std::mem::take(&mut store.unknown_keys)));
        }
        Ok(Self {
            file: file.clone(),
            before: bytes,
            store,
            changes: Vec::new(),
            read_files: Vec::new(),
            own: None,
            recipients: Vec::new(),
            ignored: None,
            no_longer_ignored: None,
            removed_file: None,
            replaced_file: None,
            dropped: Vec::new(),
            legacy: Vec::new(),
        })
    }

    /// Compares files with the entries of the own key, and plans to encrypt those that differ for all recipients.
    fn encrypt_changed(&mut self, files: &[String], keys: &OwnKeys, missing: Missing) -> Result<(), SecretsStoreError> {
        self.dropped.extend(self.store.drop_unregistered());
        if files.is_empty() {
            return Ok(());
        }
        keys.check()?;
        let own = keys.public()?.clone();
        self.own = Some(own.clone());
        let key_files = KeyFiles::of(self.file.root(), &self.store, keys);
        for path in files {
            let place = key_files.locate(path)?;
            let text = read_regular(&place, MAX_BYTES).map(Zeroizing::new);
            let after = match text.map_err(FileError::of("read", &place)) {
                Ok(text) => text,
                Err(error) if missing == Missing::Kept && error.source.kind() == std::io::ErrorKind::NotFound => {
                    continue;
                }
                Err(source) => return Err(SecretsStoreError::MissingFile { path: path.clone(), source }),
            };
            key_files.check_text(path, &after)?;
            let entry = self.store.entry(&own, path);
            let before = match entry.filter(|_| keys.has_private()) {
                Some(entry) => Some(decrypt_own(entry, &own, keys)?),
                None => None,
            };
            if before.as_ref() == Some(&after) {
                let is_weak = entry.is_some_and(|entry| is_legacy(&entry.elements));
                self.legacy.extend((is_weak && own.as_str().starts_with("ssh-ed25519 ")).then(|| path.clone()));
            } else {
                self.changes.push(Change { path: path.clone(), before, after });
                self.read_files.push(path.clone());
                self.read_files.extend(behind_link(self.file.root(), path, &place));
            }
        }
        self.recipients = if self.changes.is_empty() { Vec::new() } else { self.recipients_with(&own)? };
        Ok(())
    }

    /// Returns the recipients of the store, with the own key.
    fn recipients_with(&self, own: &PublicKey) -> Result<Vec<(PublicKey, Recipient)>, SecretsStoreError> {
        let others = self.store.recipients().iter().map(|recipient| &recipient.key).filter(|key| *key != own);
        let all = others.chain([own]).map(|key| match key.recipient() {
            Ok(recipient) => Ok((key.clone(), recipient)),
            Err(source) => Err(SecretsStoreError::Recipient { key: key.clone(), source }),
        });
        all.collect()
    }

    /// Returns the files whose text changes, for a confirmation.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|change| change.is_change())
    }

    /// Encrypts the files that have changed, and replaces the store. Returns the paths of those files.
    ///
    /// # Errors
    /// [`SecretsStoreError`]: [`SecretsStoreError::Conflict`] if the store is another one now.
    pub fn commit(mut self) -> Result<Vec<String>, SecretsStoreError> {
        for change in &self.changes {
            for (key, recipient) in &self.recipients {
                let path = change.path.clone();
                let elements = encrypt(&change.after, recipient);
                let elements = elements.map_err(|source| SecretsStoreError::Encrypt {
                    path: path.clone(),
                    key: key.clone(),
                    source,
                })?;
                self.store.set_entry(key, Entry { path, elements });
            }
        }
        let before = self.before.as_deref();
        let root = self.file.root();
        let _lock = self.file.lock(before)?;
        // Before the store: git never takes the text of a registered file.
        if let Some(path) = &self.ignored {
            add_to_gitignore(root, path)?;
        }
        self.file.write(before, &self.store)?;
        if let Some((place, text)) = &self.replaced_file {
            TemporaryFolder::open(root)?.write(place, text, Access::Private)?;
        }
        if let Some(place) = self.removed_file.filter(|place| place.exists()) {
            remove_file(&place).map_err(FileError::of("remove", &place))?;
        }
        if let Some(path) = &self.no_longer_ignored {
            remove_from_gitignore(root, path)?;
        }
        Ok(self.changes.into_iter().map(|change| change.path).collect())
    }
}

/// Returns the path from the root of a file that a registered path leads to by a symbolic link; `None` if it leads to
/// none.
fn behind_link(root: &Path, path: &str, place: &Path) -> Option<String> {
    let relative = place.strip_prefix(root.canonicalize().ok()?).ok()?.to_str()?;
    let is_same = normalize(root, path.trim_start_matches('/')).is_ok_and(|path| path == relative);
    (!is_same).then(|| relative.to_owned())
}

fn decrypt_own(entry: &Entry, key: &PublicKey, keys: &OwnKeys) -> Result<Zeroizing<Vec<u8>>, SecretsStoreError> {
    decrypt(&entry.elements, keys.private()?).map_err(|source| SecretsStoreError::Decrypt {
        path: entry.path.clone(),
        key: key.clone(),
        source,
    })
}
