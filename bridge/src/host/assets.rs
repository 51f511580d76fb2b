//! Hashes of the assets and archives in registrations of component plugins (docs/spec/provider-protocol.md#5.6). SDKs
//! leave the hashes to the engine, which detects changed files by them.
//!
//! Input: a property map, and the folder that relative paths start at. Output: the property map with all hashes.
//! Contents are read for the hash and not kept: providers open the files again.

mod content;
mod error;
#[cfg(test)]
mod tests;

use std::path::Path;

use pulumi_proto::property::hash::{ArchiveHasher, hash_content, member_name};
use pulumi_proto::property::{Archive, Asset, OutputValue, PropertyMap, PropertyValue};
use tokio::task::spawn_blocking;

use content::{ArchiveSource, AssetReader, Blob, for_each_packed, list_files, open_file};
use error::AssetError;

use crate::error::chain;

/// Adds the missing hashes of all assets and archives in a property map. Members of an archive that is a map get no
/// hashes of their own.
///
/// # Errors
/// Message with the name of the property, if the content of an asset or archive cannot be read.
pub(super) async fn with_hashes(bag: PropertyMap, folder: &Path) -> Result<PropertyMap, String> {
    if !bag.values().any(lacks_hashes) {
        return Ok(bag);
    }
    let reader = AssetReader::new(folder.to_owned());
    let hashed = move || {
        let hashed = |(key, value)| match value_with_hashes(value, &reader) {
            Ok(value) => Ok((key, value)),
            Err(error) => Err(format!("{key}: {}", chain(&error))),
        };
        bag.into_iter().map(hashed).collect()
    };
    spawn_blocking(hashed).await.unwrap_or_else(|error| Err(error.to_string()))
}

fn lacks_hashes(value: &PropertyValue) -> bool {
    match value {
        PropertyValue::Asset(asset) => asset.hash.is_none(),
        PropertyValue::Archive(archive) => archive.hash.is_none(),
        PropertyValue::List(items) => items.iter().any(lacks_hashes),
        PropertyValue::Map(members) => members.values().any(lacks_hashes),
        PropertyValue::Secret(secret) => lacks_hashes(secret.expose()),
        PropertyValue::Output(output) => output.value.as_ref().is_some_and(lacks_hashes),
        _ => false,
    }
}

fn value_with_hashes(value: PropertyValue, reader: &AssetReader) -> Result<PropertyValue, AssetError> {
    Ok(match value {
        PropertyValue::Asset(asset) if asset.hash.is_none() => {
            let hash = hash_blob(reader.open_asset(&asset)?)?;
            PropertyValue::Asset(Asset { hash: Some(hash), ..asset })
        }
        PropertyValue::Archive(archive) if archive.hash.is_none() => {
            let hash = hash_archive(&archive, reader)?;
            PropertyValue::Archive(Archive { hash: Some(hash), ..archive })
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
        ArchiveSource::Packed(_, file) => hash_blob(file),
        source => {
            let mut hasher = ArchiveHasher::new();
            add_archive(&mut hasher, None, source, reader)?;
            Ok(hasher.finish())
        }
    }
}

fn hash_blob(blob: Blob<'_>) -> Result<String, AssetError> {
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
                add_file(hasher, &full_name(&name), open_file(&path)?)?;
            }
        }
        ArchiveSource::Packed(format, file) => {
            for_each_packed(format, file, &mut |name, blob| add_file(hasher, &full_name(name), blob))?;
        }
        ArchiveSource::Members(members) => {
            for (name, member) in members {
                let name = full_name(name);
                match member {
                    PropertyValue::Asset(asset) => add_file(hasher, &name, reader.open_asset(asset)?)?,
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

fn add_file(hasher: &mut ArchiveHasher, name: &str, blob: Blob<'_>) -> Result<(), AssetError> {
    Ok(hasher.add_member(name, blob.size, blob.content)?)
}
