//! `files:fs:Directory`: a folder. Its id is its path.

use std::io;

use pulumi_proto::property::{PropertyMap, PropertyValue};
use tonic::Status;

use super::disk_resource::{
    already_exists, check_mode, check_path, check_same_path, get_mode, get_path, keep_secretness, parse_id,
};
use super::resource::{Created, Live, Resource, State, Updated};
use crate::disk::{self, Removal, io_status};
use crate::property::{Default, Kind, Property};
use crate::root::CallContext;
use crate::value::unwrap_secrets;

pub(super) struct Directory;

const INPUTS: [Property; 2] = [
    Property::required(
        "path",
        Kind::String,
        "Path relative to the root of the plugin. Another path is another folder.",
    )
    .replaces(),
    Property::optional("mode", Kind::String, "Permissions as octal digits. The owner must have all permissions.")
        .default(Default::String("0755")),
];

impl Resource for Directory {
    fn token(&self) -> &'static str {
        "files:fs:Directory"
    }

    fn description(&self) -> &'static str {
        "A folder. Its parent folder must exist. It is deleted only when it is empty."
    }

    fn inputs(&self) -> &'static [Property] {
        &INPUTS
    }

    fn outputs(&self) -> &'static [Property] {
        &[]
    }

    fn location(&self) -> Option<&'static str> {
        Some("path")
    }

    fn variables(&self) -> &'static [(&'static str, &'static str)] {
        &[("PATH", "path")]
    }

    fn check(&self, name: &str, value: &PropertyValue) -> Result<PropertyValue, String> {
        match name {
            "path" => check_path(value),
            "mode" => check_mode(unwrap_secrets(value), 0o700, "the owner must be able to read, write and enter"),
            _ => Ok(unwrap_secrets(value).clone()),
        }
    }

    fn preview(&self, news: &PropertyMap, _old: Option<&State>) -> PropertyMap {
        news.clone()
    }

    fn create(&self, ctx: &CallContext, inputs: &PropertyMap) -> Result<Created, Status> {
        let (path, mode) = (get_path(inputs)?, get_mode(inputs)?);
        let create = || {
            ctx.root.create()?;
            disk::create_folder(&ctx.root.open_folder_of(&path)?, path.name(), mode)
        };
        match create() {
            Ok(()) => Ok(Created { id: path.as_str().to_owned(), outputs: inputs.clone() }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(already_exists(&path)),
            Err(error) => Err(io_status("create the folder", &path, &error)),
        }
    }

    fn read(&self, ctx: &CallContext, id: &str, known: &State) -> Result<Option<Live>, Status> {
        let path = parse_id(id)?;
        let mode = match ctx.root.open_folder_of(&path).and_then(|folder| disk::folder_mode(&folder, path.name())) {
            Ok(Some(mode)) => mode,
            Ok(None) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io_status("read the folder", &path, &error)),
        };
        let properties = PropertyMap::from([
            ("path".to_owned(), path.as_str().into()),
            ("mode".to_owned(), keep_secretness(&known.inputs, "mode", disk::show_mode(mode).into())),
        ]);
        Ok(Some(Live { id: path.as_str().to_owned(), inputs: properties.clone(), outputs: properties }))
    }

    fn update(&self, ctx: &CallContext, id: &str, _old: &State, news: &PropertyMap) -> Result<Updated, Status> {
        let (path, mode) = (check_same_path(id, news)?, get_mode(news)?);
        let update = || {
            let folder = ctx.root.open_folder_of(&path)?;
            match disk::folder_mode(&folder, path.name())? {
                Some(found) if found == mode => Ok(()),
                Some(_) => disk::set_folder_mode(&folder, path.name(), mode),
                None => Err(io::Error::new(io::ErrorKind::NotFound, "it does not exist; run a refresh")),
            }
        };
        update().map_err(|error| io_status("change the folder", &path, &error))?;
        Ok(Updated { outputs: news.clone(), notice: None })
    }

    fn delete(&self, ctx: &CallContext, id: &str) -> Result<(), Status> {
        let path = parse_id(id)?;
        match ctx.root.open_folder_of(&path).and_then(|folder| disk::remove_folder(&folder, path.name())) {
            Ok(Removal::Removed) => Ok(()),
            Ok(Removal::NotEmpty(name)) => Err(Status::failed_precondition(format!(
                "cannot delete the folder {path}: it contains {name}, which this resource did not create. Move it \
                 away, or set retainOnDelete to keep the folder",
                path = path.as_str()
            ))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(io_status("delete the folder", &path, &error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use tonic::Code;

    use super::super::tests::{bag, context, empty_state};
    use super::*;

    fn inputs(path: &str, mode: &str) -> PropertyMap {
        bag([("path", path.into()), ("mode", mode.into())])
    }

    #[test]
    fn folder_is_created_read_updated_and_deleted() {
        let (_keep, ctx) = context();
        let created = Directory.create(&ctx, &inputs("a", "0750")).unwrap();
        assert_eq!((created.id.as_str(), &created.outputs), ("a", &inputs("a", "0750")));
        let live = Directory.read(&ctx, "a", &empty_state()).unwrap().unwrap();
        assert_eq!((live.inputs, live.outputs), (inputs("a", "0750"), inputs("a", "0750")));

        let old = State { inputs: created.outputs.clone(), outputs: created.outputs };
        let updated = Directory.update(&ctx, "a", &old, &inputs("a", "0700")).unwrap();
        assert_eq!(updated.outputs, inputs("a", "0700"));
        assert_eq!(fs::metadata(ctx.root.join("a")).unwrap().permissions().mode() & 0o7777, 0o700);

        Directory.delete(&ctx, "a").unwrap();
        assert!(Directory.read(&ctx, "a", &empty_state()).unwrap().is_none());
        Directory.delete(&ctx, "a").unwrap();
    }

    #[test]
    fn existing_folder_is_not_adopted_by_create() {
        let (_keep, ctx) = context();
        fs::create_dir_all(ctx.root.join("a")).unwrap();
        let status = Directory.create(&ctx, &inputs("a", "0755")).unwrap_err();
        assert_eq!(status.code(), Code::AlreadyExists);
        assert!(status.message().contains("Import it (its id is a)"), "{status}");
    }

    #[test]
    fn folder_with_foreign_files_is_not_deleted() {
        let (_keep, ctx) = context();
        Directory.create(&ctx, &inputs("a", "0755")).unwrap();
        fs::write(ctx.root.join("a/theirs.txt"), "").unwrap();
        let status = Directory.delete(&ctx, "a").unwrap_err();
        assert_eq!(status.code(), Code::FailedPrecondition);
        assert!(status.message().contains("it contains theirs.txt"), "{status}");
        assert!(ctx.root.join("a/theirs.txt").exists());
    }

    #[test]
    fn folder_that_became_a_file_reads_as_deleted_and_the_file_is_kept() {
        let (_keep, ctx) = context();
        Directory.create(&ctx, &inputs("a", "0755")).unwrap();
        fs::remove_dir(ctx.root.join("a")).unwrap();
        fs::write(ctx.root.join("a"), "").unwrap();
        assert!(Directory.read(&ctx, "a", &empty_state()).unwrap().is_none());
        let old = State { inputs: inputs("a", "0755"), outputs: inputs("a", "0755") };
        assert_eq!(Directory.update(&ctx, "a", &old, &inputs("a", "0700")).unwrap_err().code(), Code::NotFound);
        Directory.delete(&ctx, "a").unwrap();
        assert!(ctx.root.join("a").exists());
    }

    #[test]
    fn missing_parent_folder_is_an_error() {
        let (_keep, ctx) = context();
        let status = Directory.create(&ctx, &inputs("a/b", "0755")).unwrap_err();
        assert_eq!(status.code(), Code::NotFound);
    }
}
