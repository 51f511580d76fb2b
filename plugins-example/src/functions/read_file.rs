//! `files:fs:readFile`: returns the content of any file below the root.

use std::io;

use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::rpc::CheckFailure;
use tonic::Status;

use super::function::Function;
use crate::disk;
use crate::property::{Kind, Property};
use crate::root::{CallContext, RelativePath, leads_out};
use crate::value::{checked, is_secret, secret_if, text, unwrap_secrets};

pub(super) struct ReadFile;

const ARGUMENTS: [Property; 1] =
    [Property::required("path", Kind::String, "Path of the file, relative to the root of the plugin.")];

const RESULTS: [Property; 1] =
    [Property::required("content", Kind::String, "Content of the file. Secret if the path is.")];

impl Function for ReadFile {
    fn token(&self) -> &'static str {
        "files:fs:readFile"
    }

    fn description(&self) -> &'static str {
        "Reads a file, which must be UTF-8."
    }

    fn arguments(&self) -> &'static [Property] {
        &ARGUMENTS
    }

    fn results(&self) -> &'static [Property] {
        &RESULTS
    }

    fn check(&self, _name: &str, value: &PropertyValue) -> Result<PropertyValue, String> {
        match unwrap_secrets(value) {
            PropertyValue::String(path) => Ok(RelativePath::parse(path)?.as_str().into()),
            value => Ok(value.clone()),
        }
    }

    fn call(&self, ctx: &CallContext, arguments: &PropertyMap) -> Result<Result<PropertyMap, CheckFailure>, Status> {
        let path = checked(text(arguments, "path"), "path")?;
        let path = RelativePath::parse(path).map_err(Status::invalid_argument)?;
        // The path may be a secret, so reasons must not quote it.
        let failure = |reason: &str| Ok(Err(CheckFailure { property: "path".to_owned(), reason: reason.to_owned() }));
        let found = match ctx.root.open_folder_of(&path).and_then(|folder| disk::read(&folder, path.name())) {
            Ok(Some(found)) => found,
            Ok(None) => return failure("there is no file of this path"),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return failure("there is no file of this path"),
            Err(error) if leads_out(&error) => return failure("a symbolic link leads out of the root"),
            Err(error) => return failure(&format!("the file cannot be read: {error}")),
        };
        match String::from_utf8(found.content) {
            Ok(content) => {
                let content = secret_if(is_secret(arguments, "path"), content.into());
                Ok(Ok([("content".to_owned(), content)].into()))
            }
            Err(_) => failure("the content of the file is not UTF-8"),
        }
    }
}
