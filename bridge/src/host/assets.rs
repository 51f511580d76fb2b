//! Hashes of the assets and archives in registrations of programs and component plugins (docs/spec/provider-protocol.md#5.6). SDKs
//! leave the hashes to the engine, which detects changed files by them.
//!
//! Input: a property map, and the folder that relative paths start at. Output: the property map with all hashes.
//! Contents are read for the hash and not kept: providers open the files again.

mod access;
mod content;
mod error;
mod hashes;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use pulumi_proto::property::hash::{ArchiveHasher, hash_content, member_name};
use pulumi_proto::property::{Archive, Asset, OutputValue, PropertyMap, PropertyValue};
use tokio::task::spawn_blocking;

pub(super) use access::AssetAccess;
use content::{ArchiveSource, AssetReader, Blob, for_each_packed, list_files};
use error::AssetError;
pub use hashes::AssetHashes;

use crate::error::chain;

/// Adds the missing hashes of all assets and archives in a property map. Members of an archive that is a map get no
/// hashes of their own. Checks all assets and archives if the plugin that sends them is held to `access`: the provider of the
/// resource reads those with a hash.
///
/// # Errors
/// Message with the name of the property, if the content of an asset or archive cannot be read.
pub(super) async fn with_hashes(
    bag: PropertyMap,
    folder: &Path,
    access: Option<Arc<AssetAccess>>,
) -> Result<PropertyMap, String> {
    let is_read = |hash: &Option<String>| hash.is_none() || access.is_some();
    if !bag.values().any(|value| has_asset(value, &is_read)) {
        return Ok(bag);
    }
    let reader = AssetReader::new(folder.to_owned(), access);
    let hashed = move || {
        let hashed = |(key, value)| match value_with_hashes(value, &reader) {
            Ok(value) => Ok((key, value)),
            Err(error) => Err(format!("{key}: {}", chain(&error))),
        };
        bag.into_iter().map(hashed).collect()
    };
    spawn_blocking(hashed).await.unwrap_or_else(|error| Err(error.to_string()))
}

/// Returns whether a value has an asset or archive with such a hash.
fn has_asset(value: &PropertyValue, is_read: &impl Fn(&Option<String>) -> bool) -> bool {
    match value {
        PropertyValue::Asset(asset) => is_read(&asset.hash),
        PropertyValue::Archive(archive) => is_read(&archive.hash),
        PropertyValue::List(items) => items.iter().any(|item| has_asset(item, is_read)),
        PropertyValue::Map(members) => members.values().any(|member| has_asset(member, is_read)),
        PropertyValue::Secret(secret) => has_asset(secret.expose(), is_read),
        PropertyValue::Output(output) => output.value.as_ref().is_some_and(|value| has_asset(value, is_read)),
        _ => false,
    }
}

fn value_with_hashes(value: PropertyValue, reader: &AssetReader) -> Result<PropertyValue, AssetError> {
    Ok(match value {
        PropertyValue::Asset(asset) if asset.hash.is_none() => {
            let hash = hash_blob(reader.open_asset(&asset)?, reader)?;
            PropertyValue::Asset(Asset { hash: Some(hash), ..asset })
        }
        PropertyValue::Archive(archive) if archive.hash.is_none() => {
            let hash = hash_archive(&archive, reader)?;
            PropertyValue::Archive(Archive { hash: Some(hash), ..archive })
        }
        PropertyValue::Asset(asset) => {
            reader.check_asset(&asset)?;
            PropertyValue::Asset(asset)
        }
        PropertyValue::Archive(archive) => {
            reader.check_archive(&archive)?;
            PropertyValue::Archive(archive)
        }
        PropertyValue::List(items) => PropertyValue::List(
            items.into_iter().map(|item| value_with_hashes(item, reader)).collect::<Result<_, _>>()?,
        ),
        PropertyValue::Map(members) => {
            let members = members.into_iter().map(|(key, member)| Ok((key, value_with_hashes(member, reader)?)));
            PropertyValue::Map(members.collect::<Result<_, AssetError>>()?)
        }
        PropertyValue::Secret(secret) => {
            PropertyValue::secret_verbatim(value_with_hashes(secret.into_exposed(), reader)?)
        }
        PropertyValue::Output(output) => {
            let value = output.value.map(|value| value_with_hashes(value, reader)).transpose()?;
            PropertyValue::Output(Box::new(OutputValue { value, ..*output }))
        }
        other => other,
    })
}

fn hash_archive(archive: &Archive, reader: &AssetReader) -> Result<String, AssetError> {
    match reader.open_archive(archive)? {
        // A packed archive that is not a member has the hash of its bytes.
        ArchiveSource::Packed(_, file) => hash_blob(file, reader),
        source => {
            let mut hasher = ArchiveHasher::new();
            add_archive(&mut hasher, None, source, reader)?;
            Ok(hasher.finish())
        }
    }
}

fn hash_blob(blob: Blob<'_>, reader: &AssetReader) -> Result<String, AssetError> {
    reader.count(&blob)?;
    hash_content(blob.content)
        .map_err(|error| AssetError::Unreadable { location: blob.location, problem: error.to_string() })
}

/// Adds the files of an archive. `parent` is its name if it is a member of another archive.
fn add_archive(
    hasher: &mut ArchiveHasher,
    parent: Option<&str>,
    source: ArchiveSource<'_>,
    reader: &AssetReader,
) -> Result<(), AssetError> {
    let full_name = |name: &str| parent.map_or_else(|| name.to_owned(), |parent| member_name(parent, name));
    match source {
        ArchiveSource::Folder(folder) => {
            for (name, path) in list_files(&folder)? {
                add_file(hasher, &full_name(&name), reader.open_file(&path)?, reader)?;
            }
        }
        ArchiveSource::Packed(format, file) => {
            for_each_packed(format, file, &mut |name, blob| add_file(hasher, &full_name(name), blob, reader))?;
        }
        ArchiveSource::Members(members) => {
            for (name, member) in members {
                let name = full_name(name);
                match member {
                    PropertyValue::Asset(asset) => add_file(hasher, &name, reader.open_asset(asset)?, reader)?,
                    PropertyValue::Archive(archive) => {
                        add_archive(hasher, Some(&name), reader.open_archive(archive)?, reader)?;
                    }
                    _ => return Err(AssetError::InvalidMember(name)),
                }
            }
        }
    }
    Ok(())
}

fn add_file(hasher: &mut ArchiveHasher, name: &str, blob: Blob<'_>, reader: &AssetReader) -> Result<(), AssetError> {
    reader.count(&blob)?;
    Ok(hasher.add_member(name, blob.size, blob.content)?)
}
