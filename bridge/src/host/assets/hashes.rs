//! Hashes of the assets and archives that a program writes, each computed once.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pulumi_proto::property::{Archive, ArchiveContent, Asset, AssetContent, OutputValue, PropertyMap, PropertyValue};
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

use super::content::AssetReader;
use super::error::AssetError;
use super::value_with_hashes;
use crate::error::chain;

/// Hashes of assets and archives below a folder, which is the working directory of the plugins. Files and folders stay below it,
/// also behind links. An asset with the same place as an earlier one has its hash, also if the file was changed meanwhile.
#[derive(Debug)]
pub struct AssetHashes {
    folder: PathBuf,
    known: Mutex<HashMap<String, Computed>>,
}

/// Hash of one asset or archive, or the reason why it has none.
type Computed = Arc<OnceCell<Result<PropertyValue, String>>>;

impl AssetHashes {
    /// Computes hashes below a folder, at which relative paths start.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), known: Mutex::default() }
    }

    /// Checks the place of an asset or archive: that a file or a folder exists, that it is of the right kind and below the folder,
    /// and that a URL has a scheme that is read. Reads no content.
    ///
    /// # Errors
    /// Message without the path of the folder.
    pub fn check(&self, value: &PropertyValue) -> Result<(), String> {
        let reader = AssetReader::below(&self.folder);
        let checked = match value {
            PropertyValue::Asset(asset) => reader.check_place_of_asset(asset),
            PropertyValue::Archive(archive) => reader.check_place_of_archive(archive),
            _ => Ok(()),
        };
        checked.map_err(|error| self.shown(&chain(&error)))
    }

    /// Adds the hashes of all assets and archives in a property map. Absolute paths become relative ones.
    ///
    /// # Errors
    /// Name of the property, and the reason, if the content of an asset or archive cannot be read.
    pub async fn add_to(&self, bag: PropertyMap) -> Result<PropertyMap, (String, String)> {
        let mut found = BTreeMap::new();
        for (name, value) in &bag {
            self.collect(value, name, &mut found);
        }
        if found.is_empty() {
            return Ok(bag);
        }
        let mut hashed = HashMap::new();
        for (key, (name, value)) in found {
            let value = self.hashed(&key, value).await.map_err(|reason| (name, reason))?;
            hashed.insert(key, value);
        }
        Ok(bag.into_iter().map(|(name, value)| (name, self.fill(value, &hashed))).collect())
    }

    /// Returns an asset or archive with its hash, which is computed by the first caller.
    async fn hashed(&self, key: &str, value: PropertyValue) -> Result<PropertyValue, String> {
        let cell = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(known.entry(key.to_owned()).or_default())
        };
        let compute = async {
            let reader = AssetReader::below(&self.folder);
            let hashed = spawn_blocking(move || with_all_hashes(value, &reader)).await;
            let hashed = hashed.map_err(|error| error.to_string())?;
            hashed.map_err(|error| self.shown(&chain(&error)))
        };
        cell.get_or_init(|| compute).await.clone()
    }

    /// Collects the assets and archives without a hash in a value, with the name of the property.
    fn collect(&self, value: &PropertyValue, name: &str, found: &mut BTreeMap<String, (String, PropertyValue)>) {
        match value {
            PropertyValue::Asset(Asset { hash: None, .. }) | PropertyValue::Archive(Archive { hash: None, .. }) => {
                let value = self.relative(value.clone());
                found.entry(key(&value)).or_insert((name.to_owned(), value));
            }
            PropertyValue::List(items) => items.iter().for_each(|item| self.collect(item, name, found)),
            PropertyValue::Map(members) => members.values().for_each(|member| self.collect(member, name, found)),
            PropertyValue::Secret(secret) => self.collect(secret.expose(), name, found),
            PropertyValue::Output(output) => output.value.iter().for_each(|value| self.collect(value, name, found)),
            _ => {}
        }
    }

    fn fill(&self, value: PropertyValue, hashed: &HashMap<String, PropertyValue>) -> PropertyValue {
        match value {
            PropertyValue::Asset(_) | PropertyValue::Archive(_) => {
                let value = self.relative(value);
                hashed.get(&key(&value)).cloned().unwrap_or(value)
            }
            PropertyValue::List(items) => {
                PropertyValue::List(items.into_iter().map(|item| self.fill(item, hashed)).collect())
            }
            PropertyValue::Map(members) => PropertyValue::Map(
                members.into_iter().map(|(name, member)| (name, self.fill(member, hashed))).collect(),
            ),
            PropertyValue::Secret(secret) => PropertyValue::secret_verbatim(self.fill(secret.into_exposed(), hashed)),
            PropertyValue::Output(output) => {
                let value = output.value.map(|value| self.fill(value, hashed));
                PropertyValue::Output(Box::new(OutputValue { value, ..*output }))
            }
            other => other,
        }
    }

    /// Makes the paths of an asset or archive relative to the folder.
    fn relative(&self, value: PropertyValue) -> PropertyValue {
        match value {
            PropertyValue::Asset(Asset { hash, content: AssetContent::Path(path) }) => {
                PropertyValue::Asset(Asset { hash, content: AssetContent::Path(self.relative_path(path)) })
            }
            PropertyValue::Archive(Archive { hash, content }) => {
                let content = match content {
                    ArchiveContent::Path(path) => ArchiveContent::Path(self.relative_path(path)),
                    ArchiveContent::Assets(members) => ArchiveContent::Assets(
                        members.into_iter().map(|(name, member)| (name, self.relative(member))).collect(),
                    ),
                    other => other,
                };
                PropertyValue::Archive(Archive { hash, content })
            }
            other => other,
        }
    }

    fn relative_path(&self, path: String) -> String {
        let relative = match Path::new(&path).strip_prefix(&self.folder) {
            Ok(relative) if Path::new(&path).is_absolute() => relative,
            _ => return path,
        };
        if relative.as_os_str().is_empty() { ".".to_owned() } else { relative.display().to_string() }
    }

    /// Returns a message with paths that start at the folder.
    fn shown(&self, message: &str) -> String {
        message.replace(&format!("{}/", self.folder.display()), "")
    }
}

/// Returns a text that is equal for assets and archives of the same content or place.
fn key(value: &PropertyValue) -> String {
    match value {
        PropertyValue::Asset(asset) => format!("asset {:?}", asset.content),
        PropertyValue::Archive(archive) => match &archive.content {
            ArchiveContent::Assets(members) => {
                let members: Vec<String> =
                    members.iter().map(|(name, member)| format!("{name:?}: {}", key(member))).collect();
                format!("archive {{{}}}", members.join(", "))
            }
            content => format!("archive {content:?}"),
        },
        _ => String::new(),
    }
}

/// Returns an asset or archive with its hash, and those of the members of an archive, as the host of Pulumi's YAML sends them.
fn with_all_hashes(value: PropertyValue, reader: &AssetReader) -> Result<PropertyValue, AssetError> {
    let value = match value {
        PropertyValue::Archive(Archive { hash, content: ArchiveContent::Assets(members) }) => {
            let members = members.into_iter().map(|(name, member)| Ok((name, with_all_hashes(member, reader)?)));
            let members = members.collect::<Result<_, AssetError>>()?;
            PropertyValue::Archive(Archive { hash, content: ArchiveContent::Assets(members) })
        }
        value => value,
    };
    value_with_hashes(value, reader)
}
