//! Files that hold keys of the store: profiles, files of private keys, and texts with a private key that opens the store.
//!
//! Anybody who writes the store could register them, and add a recipient that receives them.

use std::fs::{Metadata, metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use bridge::fs::{MAX_DOCUMENT_BYTES, read_regular, utf8};
use serde::Deserialize;
use zeroize::Zeroizing;

use crate::keys::{OwnKeys, Recipient, key_file, private_keys, public_part};
use crate::paths::{FOLDER, PathError, is_profile_name, locate};
use crate::store::Store;

/// Files that are never encrypted, overwritten or shown.
pub(crate) struct KeyFiles<'k> {
    root: &'k Path,
    profiles: Vec<FileIdentity>,
    private_keys: Vec<FileIdentity>,
    /// Keys that open the store.
    recipients: Vec<Recipient>,
    keys: &'k OwnKeys,
}

/// Identity of a file, whatever its name: a link of either kind leads to the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    fn of(path: &Path) -> Option<Self> {
        metadata(path).ok().map(|found: Metadata| Self { device: found.dev(), inode: found.ino() })
    }
}

/// The field of a profile that names another file with a private key.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ProfileFields {
    private_key_path: Option<String>,
}

impl<'k> KeyFiles<'k> {
    /// Finds the profiles of a repository, and the private keys that they name.
    pub(crate) fn of(root: &'k Path, store: &Store, keys: &'k OwnKeys) -> Self {
        let profiles = profiles(root);
        let named = profiles.iter().filter_map(|profile| private_key_path(profile));
        let private_keys = named.filter_map(|path| key_file(root, keys.home(), &path).ok());
        let own = keys.public().ok();
        let recipients = store.recipients().iter().map(|recipient| &recipient.key).chain(own);
        Self {
            root,
            private_keys: private_keys
                .chain(keys.private_key_file())
                .filter_map(|file| FileIdentity::of(&file))
                .collect(),
            profiles: profiles.iter().filter_map(|file| FileIdentity::of(file)).collect(),
            recipients: recipients.filter_map(|key| key.recipient().ok()).collect(),
            keys,
        }
    }

    /// Returns the place of a registered path, unless a key of the store is there.
    ///
    /// # Errors
    /// [`PathError`].
    pub(crate) fn locate(&self, path: &str) -> Result<PathBuf, PathError> {
        let place = locate(self.root, path)?;
        let Some(identity) = FileIdentity::of(&place) else { return Ok(place) };
        if self.profiles.contains(&identity) {
            return Err(PathError::Profile(path.to_owned()));
        }
        if self.private_keys.contains(&identity) {
            return Err(PathError::PrivateKey(path.to_owned()));
        }
        Ok(place)
    }

    /// Checks that the text of a file has no private key that opens the store.
    ///
    /// # Errors
    /// [`PathError::PrivateKey`].
    pub(crate) fn check_text(&self, path: &str, text: &[u8]) -> Result<(), PathError> {
        let opens = |key: &Zeroizing<String>| {
            public_part(key, self.keys.passphrase()).is_some_and(|public| self.recipients.contains(&public))
        };
        if private_keys(text).iter().any(opens) { Err(PathError::PrivateKey(path.to_owned())) } else { Ok(()) }
    }
}

/// Returns the profiles of a repository.
fn profiles(root: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root.join(FOLDER)).into_iter().flatten().flatten();
    entries.filter(|entry| is_profile_name(&entry.file_name())).map(|entry| entry.path()).collect()
}

/// Returns `privateKeyPath` of a profile; `None` if there is none, or the profile cannot be read.
fn private_key_path(profile: &Path) -> Option<String> {
    let text = Zeroizing::new(read_regular(profile, MAX_DOCUMENT_BYTES).and_then(utf8).ok()?);
    bridge::yaml::from_str::<ProfileFields>(&text).ok()?.private_key_path
}
