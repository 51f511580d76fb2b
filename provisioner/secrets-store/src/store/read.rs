//! Reads the store. Errors have a line and a column.

use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;

use bridge::yaml::{YamlError, from_str};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_yaml::Value;

use super::{Entry, RecipientEntries, SCHEMA_VERSION, Store, order};
use crate::keys::PublicKey;

/// Reason why the text of a store is not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A newer program has written the store.
    #[error("it is schema version {found}, but this sc supports up to schema version {SCHEMA_VERSION}")]
    TooNew {
        /// Version of the store.
        found: i64,
    },
    /// The text ends too early: a write that failed or an incomplete checkout has left it.
    #[error("the file is {}", if *.is_empty { "empty" } else { "incomplete: it has no `secrets`" })]
    Incomplete {
        /// True if the text has no value at all.
        is_empty: bool,
    },
    /// The text is not YAML, or not that of a store.
    #[error("{0}")]
    Malformed(String),
}

impl ReadError {
    /// Returns the line and the column, from 1, and the problem without them.
    pub fn position(&self) -> Option<(usize, usize, &str)> {
        let Self::Malformed(text) = self else { return None };
        let (problem, position) = text.rsplit_once(" at line ")?;
        let (line, column) = position.split_once(" column ")?;
        Some((line.parse().ok()?, column.parse().ok()?, problem))
    }
}

impl From<YamlError> for ReadError {
    fn from(error: YamlError) -> Self {
        Self::Malformed(error.to_string().replace("expected i64", "expected a whole number"))
    }
}

#[derive(Deserialize)]
struct Version {
    #[serde(rename = "schemaVersion")]
    schema_version: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Document {
    registry: Option<Registry>,
    secrets: Option<UniqueKeys<RecipientNode>>,
}

#[derive(Deserialize)]
struct Registry {
    files: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct RecipientNode {
    secrets: Option<Vec<EntryNode>>,
}

#[derive(Deserialize)]
struct EntryNode {
    path: String,
    #[serde(rename = "encryptedData")]
    encrypted_data: Option<Vec<String>>,
}

/// A mapping whose keys are public keys. Two keys that differ in their comments only are an error, as one of them
/// would be lost.
struct UniqueKeys<T>(Vec<(PublicKey, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for UniqueKeys<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Keys<T> {
            type Value = UniqueKeys<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping from public keys to their secrets")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut known = BTreeSet::new();
                let mut entries = Vec::new();
                while let Some(key) = map.next_key::<String>()? {
                    let key = PublicKey::of_line(&key);
                    if !known.insert(key.clone()) {
                        return Err(A::Error::custom(format!("the key {} is there twice", key.short())));
                    }
                    entries.push((key, map.next_value()?));
                }
                Ok(UniqueKeys(entries))
            }
        }
        deserializer.deserialize_map(Keys(PhantomData))
    }
}

impl Store {
    /// Reads the text of a store.
    ///
    /// # Errors
    /// [`ReadError`]: [`ReadError::Incomplete`] for a text without `secrets`, which each program writes at the end.
    pub fn parse(text: &str) -> Result<Self, ReadError> {
        // First, as a newer store may have another form.
        let version = from_str::<Option<Version>>(text)?.and_then(|version| version.schema_version);
        if let Some(found) = version.filter(|found| *found > SCHEMA_VERSION) {
            return Err(ReadError::TooNew { found });
        }
        let document = from_str::<Option<Document>>(text)?.ok_or(ReadError::Incomplete { is_empty: true })?;
        let recipients = document.secrets.ok_or(ReadError::Incomplete { is_empty: false })?;
        let mut recipients: Vec<RecipientEntries> = recipients
            .0
            .into_iter()
            .map(|(key, node)| {
                let entry =
                    |node: EntryNode| Entry { path: node.path, elements: node.encrypted_data.unwrap_or_default() };
                RecipientEntries { key, entries: node.secrets.unwrap_or_default().into_iter().map(entry).collect() }
            })
            .collect();
        recipients.sort_by(|a, b| order::compare(a.key.as_str(), b.key.as_str()));
        let files = document.registry.and_then(|registry| registry.files).unwrap_or_default();
        Ok(Self { files, recipients, unknown_keys: unknown_keys(text) })
    }
}

/// Returns the keys of a store that have no meaning.
fn unknown_keys(text: &str) -> Vec<String> {
    let document: Value = from_str(text).unwrap_or(Value::Null);
    let mut unknown = Vec::new();
    let mut check = |value: &Value, known: &[&str], place: &str| {
        let keys = value.as_mapping().into_iter().flatten().filter_map(|(key, _)| key.as_str());
        unknown.extend(keys.filter(|key| !known.contains(key)).map(|key| format!("{place}{key}")));
    };
    check(&document, &["schemaVersion", "registry", "secrets"], "");
    check(&document["registry"], &["files"], "registry.");
    for (key, recipient) in document["secrets"].as_mapping().into_iter().flatten() {
        let key = PublicKey::of_line(key.as_str().unwrap_or_default()).short();
        check(recipient, &["secrets", "publicKeys"], &format!("secrets.{key}."));
        check(&recipient["publicKeys"], &["data"], &format!("secrets.{key}.publicKeys."));
        for entry in recipient["secrets"].as_sequence().into_iter().flatten() {
            check(entry, &["path", "encryptedData"], &format!("secrets.{key}.secrets."));
        }
    }
    unknown
}
