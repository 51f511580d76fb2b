//! `files:fs:File`: a file with a content. Its id is its path.

use std::io;

use pulumi_proto::property::{PropertyMap, PropertyValue, UnknownKind};
use sha2::{Digest as _, Sha256};
use tonic::Status;

use super::disk_resource::{
    already_exists, check_mode, check_path, check_same_path, get_mode, get_path, keep_secretness, parse_id,
};
use super::resource::{Created, Live, Resource, State, Updated};
use crate::disk::{self, Existing, io_status};
use crate::property::{Default, Kind, Property};
use crate::root::{CallContext, RelativePath};
use crate::value::{checked, get, is_secret, secret_if, text, unwrap_secrets};

pub(super) struct File;

const INPUTS: [Property; 3] = [
    Property::required("path", Kind::String, "Path relative to the root of the plugin. Another path is another file.")
        .replaces(),
    Property::required("content", Kind::String, "Content of the file."),
    Property::optional("mode", Kind::String, "Permissions as octal digits. The owner must be able to read.")
        .default(Default::String("0644")),
];

const OUTPUTS: [Property; 2] = [
    Property::required("sha256", Kind::String, "SHA-256 of the content, hexadecimal. Secret if the content is."),
    Property::required("size", Kind::Integer, "Length of the content in bytes. Secret if the content is."),
];

impl Resource for File {
    fn token(&self) -> &'static str {
        "files:fs:File"
    }

    fn description(&self) -> &'static str {
        "A file. Its parent folder must exist. It is written atomically."
    }

    fn inputs(&self) -> &'static [Property] {
        &INPUTS
    }

    fn outputs(&self) -> &'static [Property] {
        &OUTPUTS
    }

    fn location(&self) -> Option<&'static str> {
        Some("path")
    }

    fn variables(&self) -> &'static [(&'static str, &'static str)] {
        &[("PATH", "path"), ("SHA256", "sha256")]
    }

    fn check(&self, name: &str, value: &PropertyValue) -> Result<PropertyValue, String> {
        match name {
            "path" => check_path(value),
            "mode" => check_mode(unwrap_secrets(value), 0o400, "the owner must be able to read"),
            _ => match unwrap_secrets(value) {
                PropertyValue::String(content) if content.len() as u64 > disk::MAX_CONTENT => {
                    Err(format!("a content has at most {} bytes", disk::MAX_CONTENT))
                }
                value => Ok(value.clone()),
            },
        }
    }

    fn preview(&self, news: &PropertyMap, _old: Option<&State>) -> PropertyMap {
        outputs(news)
    }

    fn create(&self, ctx: &CallContext, inputs: &PropertyMap) -> Result<Created, Status> {
        let (path, mode) = (get_path(inputs)?, get_mode(inputs)?);
        let content = checked(text(inputs, "content"), "content")?;
        ctx.root.create().map_err(|error| io_status("create the root for", &path, &error))?;
        let folder = ctx.root.open_folder_of(&path).map_err(|error| no_folder(&path, &error))?;
        match disk::write(&folder, path.name(), content.as_bytes(), mode, Existing::Keep, &ctx.cancelled) {
            Ok(()) => Ok(Created { id: path.as_str().to_owned(), outputs: outputs(inputs) }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(already_exists(&path)),
            Err(error) => Err(io_status("write the file", &path, &error)),
        }
    }

    fn read(&self, ctx: &CallContext, id: &str, known: &State) -> Result<Option<Live>, Status> {
        let path = parse_id(id)?;
        let found = match ctx.root.open_folder_of(&path).and_then(|folder| disk::read(&folder, path.name())) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io_status("read the file", &path, &error)),
        };
        let importing = known.outputs.is_empty();
        let content = match String::from_utf8(found.content) {
            Ok(content) => content,
            // A lossy text shows up as drift, which the next update repairs.
            Err(error) if !importing => String::from_utf8_lossy(error.as_bytes()).into_owned(),
            Err(_) => {
                let message = format!("cannot import the file {}: its content is not UTF-8", path.as_str());
                return Err(Status::failed_precondition(message));
            }
        };
        // A secret content stays secret, even if the file was changed.
        let secret = is_secret(&known.inputs, "content") || is_secret(&known.outputs, "content");
        let inputs = PropertyMap::from([
            ("path".to_owned(), path.as_str().into()),
            ("content".to_owned(), secret_if(secret, content.into())),
            ("mode".to_owned(), keep_secretness(&known.inputs, "mode", disk::show_mode(found.mode).into())),
        ]);
        Ok(Some(Live { id: path.as_str().to_owned(), outputs: outputs(&inputs), inputs }))
    }

    fn update(&self, ctx: &CallContext, id: &str, old: &State, news: &PropertyMap) -> Result<Updated, Status> {
        let (path, mode) = (check_same_path(id, news)?, get_mode(news)?);
        let content = checked(text(news, "content"), "content")?.as_bytes();
        let folder = ctx.root.open_folder_of(&path).map_err(|error| no_folder(&path, &error))?;
        let found = disk::read(&folder, path.name()).map_err(|error| io_status("read the file", &path, &error))?;
        let notice = match &found {
            Some(found) if found.content == content && found.mode == mode => None,
            found => {
                // If the file does not exist, another object with its name must not be replaced.
                let existing = if found.is_some() { Existing::Replace } else { Existing::Keep };
                let written = disk::write(&folder, path.name(), content, mode, existing, &ctx.cancelled);
                written.map_err(|error| io_status("write the file", &path, &error))?;
                notice(found.as_ref().map(|found| &*found.content), content, text(&old.outputs, "sha256"))
            }
        };
        Ok(Updated { outputs: outputs(news), notice })
    }

    fn delete(&self, ctx: &CallContext, id: &str) -> Result<(), Status> {
        let path = parse_id(id)?;
        match ctx.root.open_folder_of(&path).and_then(|folder| disk::remove_file(&folder, path.name())) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(io_status("delete the file", &path, &error)),
        }
    }
}

/// Returns the outputs: the inputs, and digest and size, which are unknown or secret if the content is.
fn outputs(inputs: &PropertyMap) -> PropertyMap {
    let (sha256, size) = match get(inputs, "content") {
        Some(PropertyValue::String(content)) => (digest(content.as_bytes()).into(), (content.len() as f64).into()),
        _ => (PropertyValue::UNKNOWN, PropertyValue::Unknown(UnknownKind::Number)),
    };
    let secret = is_secret(inputs, "content");
    let mut outputs = inputs.clone();
    outputs.insert("sha256".to_owned(), secret_if(secret, sha256));
    outputs.insert("size".to_owned(), secret_if(secret, size));
    outputs
}

fn digest(content: &[u8]) -> String {
    hex::encode(Sha256::digest(content))
}

/// Returns the message about an unexpected state before a write, `None` if the write matches the diff.
fn notice(found: Option<&[u8]>, content: &[u8], recorded: Option<&str>) -> Option<&'static str> {
    match (found, recorded) {
        (None, _) => Some("the file was missing and has been written again"),
        (Some(found), _) if found == content => None,
        (Some(found), Some(recorded)) if digest(found) != recorded => {
            Some("the content has been replaced; it had been changed outside of this resource")
        }
        (Some(_), _) => None,
    }
}

/// Returns the status for a folder that cannot be opened.
fn no_folder(path: &RelativePath, error: &io::Error) -> Status {
    if error.kind() == io::ErrorKind::NotFound {
        return Status::not_found(format!(
            "cannot write the file {}: the folder {} does not exist. Declare it as files:fs:Directory and use the path \
             of that resource",
            path.as_str(),
            path.folder()
        ));
    }
    io_status("open the folder of", path, error)
}

#[cfg(test)]
mod tests;
