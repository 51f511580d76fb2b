//! Hashes for the assets and archives that components hand in (provider protocol, section 5.6): SDKs leave them to the
//! engine, and without them nobody could tell that a file has changed.
//!
//! Enters: a bag, and the folder that relative paths start at. Leaves: the same with every hash. Contents are read, never
//! kept: providers open them again, where they say they are.

mod content;
mod error;
#[cfg(test)]
mod tests;

use std::path::Path;

use pulumi_proto::property::hash::{ArchiveHasher, hash_content, member_name};
use pulumi_proto::property::{Archive, Asset, OutputValue, PropertyMap, PropertyValue};
use tokio::task::spawn_blocking;

use content::{Blob, Files, Place, each_packed, file, files_below};
use error::AssetError;

use crate::error::chain;

/// Gives each asset and archive of a bag its hash, where it has none. Of archives that are maps, the members stay without.
///
/// # Errors
/// What cannot be read, with the name of the property.
pub(super) async fn with_hashes(bag: PropertyMap, folder: &Path) -> Result<PropertyMap, String> {
    if !bag.values().any(lacks_hashes) {
        return Ok(bag);
    }
    let files = Files::new(folder.to_owned());
    let hashed = move || {
        let hashed = |(key, value)| match hashed(value, &files) {
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

fn hashed(value: PropertyValue, files: &Files) -> Result<PropertyValue, AssetError> {
    Ok(match value {
        PropertyValue::Asset(asset) if asset.hash.is_none() => {
            let hash = raw(files.asset(&asset)?)?;
            PropertyValue::Asset(Asset { hash: Some(hash), ..asset })
        }
        PropertyValue::Archive(archive) if archive.hash.is_none() => {
            let hash = hash_of_archive(&archive, files)?;
            PropertyValue::Archive(Archive { hash: Some(hash), ..archive })
        }
        PropertyValue::List(items) => {
            PropertyValue::List(items.into_iter().map(|item| hashed(item, files)).collect::<Result<_, _>>()?)
        }
        PropertyValue::Map(members) => {
            let members = members.into_iter().map(|(key, member)| Ok((key, hashed(member, files)?)));
            PropertyValue::Map(members.collect::<Result<_, AssetError>>()?)
        }
        PropertyValue::Secret(secret) => PropertyValue::secret_verbatim(hashed(secret.into_exposed(), files)?),
        PropertyValue::Output(output) => {
            let value = output.value.map(|value| hashed(value, files)).transpose()?;
            PropertyValue::Output(Box::new(OutputValue { value, ..*output }))
        }
        other => other,
    })
}

fn hash_of_archive(archive: &Archive, files: &Files) -> Result<String, AssetError> {
    match files.archive(archive)? {
        // By itself it is the bytes that count.
        Place::Packed(_, file) => raw(file),
        place => {
            let mut hasher = ArchiveHasher::new();
            add_place(&mut hasher, None, place, files)?;
            Ok(hasher.finish())
        }
    }
}

fn raw(blob: Blob<'_>) -> Result<String, AssetError> {
    hash_content(blob.content).map_err(|error| AssetError::Unreadable { place: blob.place, problem: error.to_string() })
}

/// Adds what an archive holds, below the name that it has in another one.
fn add_place(
    hasher: &mut ArchiveHasher,
    parent: Option<&str>,
    place: Place<'_>,
    files: &Files,
) -> Result<(), AssetError> {
    let named = |name: &str| parent.map_or_else(|| name.to_owned(), |parent| member_name(parent, name));
    match place {
        Place::Folder(folder) => {
            for (name, path) in files_below(&folder)? {
                add(hasher, &named(&name), file(&path)?)?;
            }
        }
        Place::Packed(kind, file) => each_packed(kind, file, &mut |name, blob| add(hasher, &named(name), blob))?,
        Place::Members(members) => {
            for (name, member) in members {
                let name = named(name);
                match member {
                    PropertyValue::Asset(asset) => add(hasher, &name, files.asset(asset)?)?,
                    PropertyValue::Archive(archive) => add_place(hasher, Some(&name), files.archive(archive)?, files)?,
                    _ => return Err(AssetError::NoMember(name)),
                }
            }
        }
    }
    Ok(())
}

fn add(hasher: &mut ArchiveHasher, name: &str, blob: Blob<'_>) -> Result<(), AssetError> {
    Ok(hasher.member(name, blob.size, blob.content)?)
}
