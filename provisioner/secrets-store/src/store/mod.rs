//! The content of the store, and its form as YAML.
//!
//! Input: the text of `.sc/secrets.yaml`. Output: registered paths, and entries by recipient; or the text that the Go
//! program writes for them, byte by byte. Excluded: files, keys, ciphers.

mod order;
mod read;
mod write;

use std::cmp::Ordering;

pub use read::ReadError;

use crate::keys::PublicKey;

/// Highest version of the schema that is read. The store of it has no `schemaVersion`.
pub const SCHEMA_VERSION: i64 = 0;

/// Content of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Store {
    /// Paths of the registered files, in the order of their registration.
    pub files: Vec<String>,
    /// Recipients with their entries, in the order of the file.
    recipients: Vec<RecipientEntries>,
    /// Keys of the file without a meaning, which an edit would drop.
    pub(crate) unknown_keys: Vec<String>,
}

/// Entries of a recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecipientEntries {
    /// Key of the recipient.
    pub key: PublicKey,
    /// Encrypted files, the one that was changed last at the end.
    pub entries: Vec<Entry>,
}

/// An encrypted file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Path of the file.
    pub path: String,
    /// Elements of the ciphertext, each in base64.
    pub elements: Vec<String>,
}

impl Store {
    /// Returns the recipients, in the order of the file.
    pub fn recipients(&self) -> &[RecipientEntries] {
        &self.recipients
    }

    /// Returns the entries of a recipient.
    pub fn entries(&self, key: &PublicKey) -> Option<&[Entry]> {
        self.recipients.iter().find(|known| known.key == *key).map(|known| known.entries.as_slice())
    }

    /// Returns the entry of a file for a recipient.
    pub fn entry(&self, key: &PublicKey, path: &str) -> Option<&Entry> {
        self.entries(key)?.iter().find(|entry| entry.path == path)
    }

    /// Adds a file to the registered ones, unless it is there.
    pub(crate) fn register(&mut self, path: &str) {
        if !self.files.iter().any(|known| known == path) {
            self.files.push(path.to_owned());
        }
    }

    /// Removes a file, with its entries.
    pub(crate) fn remove_file(&mut self, path: &str) {
        self.files.retain(|known| known != path);
        for recipient in &mut self.recipients {
            recipient.entries.retain(|entry| entry.path != path);
        }
    }

    /// Removes the entries of files that are not registered. Returns their paths.
    pub(crate) fn drop_unregistered(&mut self) -> Vec<String> {
        let mut dropped: Vec<String> = Vec::new();
        for recipient in &mut self.recipients {
            recipient.entries.retain(|entry| {
                let is_registered = self.files.contains(&entry.path);
                if !is_registered && !dropped.contains(&entry.path) {
                    dropped.push(entry.path.clone());
                }
                is_registered
            });
        }
        dropped
    }

    /// Sets the entry of a file for a recipient, who is added if it is new. The entry moves to the end.
    pub(crate) fn set_entry(&mut self, key: &PublicKey, entry: Entry) {
        let recipient = self.add_recipient(key);
        recipient.entries.retain(|known| known.path != entry.path);
        recipient.entries.push(entry);
    }

    /// Removes a recipient. Returns whether there was one.
    pub(crate) fn remove_recipient(&mut self, key: &PublicKey) -> bool {
        let count = self.recipients.len();
        self.recipients.retain(|known| known.key != *key);
        self.recipients.len() < count
    }

    fn add_recipient(&mut self, key: &PublicKey) -> &mut RecipientEntries {
        let compare = |known: &RecipientEntries| order::compare(known.key.as_str(), key.as_str());
        let found = self.recipients.iter().position(|known| compare(known) != Ordering::Less);
        let at = found.unwrap_or(self.recipients.len());
        if self.recipients.get(at).is_none_or(|known| known.key != *key) {
            self.recipients.insert(at, RecipientEntries { key: key.clone(), entries: Vec::new() });
        }
        &mut self.recipients[at]
    }
}

#[cfg(test)]
mod tests;
