//! The resource types: what each is and does. Everything that is the same for all of them is elsewhere.

mod directory;
mod file;
mod password;

use std::sync::Arc;

use pulumi_proto::property::{PropertyMap, PropertyValue};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::disk::{parse_mode, show_mode};
use crate::property::Property;
use crate::root::{RelativePath, Root};
use crate::value::{checked, is_secret, secret_if, text};

/// Every type this plugin serves.
pub(crate) const RESOURCES: [&dyn Resource; 3] = [&directory::Directory, &file::File, &password::Password];

/// A resource type. Its calls may block; each has a thread to itself.
pub(crate) trait Resource: Send + Sync {
    /// The type's token, `package:module:Name`.
    fn token(&self) -> &'static str;
    /// For the schema: sentences, in Markdown.
    fn description(&self) -> &'static str;
    /// What users say.
    fn inputs(&self) -> &'static [Property];
    /// What the resource tells beside its inputs, which are outputs, too.
    fn outputs(&self) -> &'static [Property];
    /// The input that says where the resource is, if no two can be in one place.
    fn place(&self) -> Option<&'static str> {
        None
    }
    /// The outputs that programs see as environment variables: the end of the variable's name, and the output.
    fn variables(&self) -> &'static [(&'static str, &'static str)];

    /// The value to work with, out of all secrets, or why it cannot be. It has the right type, or is unknown.
    fn check(&self, name: &str, value: &PropertyValue) -> Result<PropertyValue, String>;

    /// What Create (`old` is `None`) or Update would answer, with unknowns where that cannot be foretold. No effects.
    fn preview(&self, news: &PropertyMap, old: Option<&State>) -> PropertyMap;

    /// Makes the resource exist. Refuses to take over what exists already.
    fn create(&self, ctx: &Context, inputs: &PropertyMap) -> Result<Created, Status>;

    /// Looks at what is really there; `None` is nothing. A `known` without outputs means an import.
    fn read(&self, ctx: &Context, id: &str, known: &State) -> Result<Option<Live>, Status>;

    /// Makes the resource what the inputs say.
    fn update(&self, ctx: &Context, id: &str, old: &State, news: &PropertyMap) -> Result<Updated, Status>;

    /// Makes the resource not exist. One that is gone already is fine.
    fn delete(&self, ctx: &Context, id: &str) -> Result<(), Status>;
}

/// What every call has at hand.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) root: Arc<Root>,
    pub(crate) cancelled: CancellationToken,
}

/// What is recorded of a resource.
pub(crate) struct State {
    pub(crate) inputs: PropertyMap,
    pub(crate) outputs: PropertyMap,
}

/// A resource that has just come to be.
#[derive(Debug)]
pub(crate) struct Created {
    pub(crate) id: String,
    pub(crate) outputs: PropertyMap,
}

/// A resource as it was found, with the inputs that would make it so.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) id: String,
    pub(crate) inputs: PropertyMap,
    pub(crate) outputs: PropertyMap,
}

/// A resource that has just been changed.
#[derive(Debug)]
pub(crate) struct Updated {
    pub(crate) outputs: PropertyMap,
    /// What the user may want to hear of. Contains no values.
    pub(crate) notice: Option<&'static str>,
}

/// The type of a token.
///
/// # Errors
/// INVALID_ARGUMENT if there is none.
pub(crate) fn find(token: &str) -> Result<&'static dyn Resource, Status> {
    RESOURCES
        .into_iter()
        .find(|resource| resource.token() == token)
        .ok_or_else(|| Status::invalid_argument(format!("there is no resource type {token}")))
}

/// The rule for `path`, which both types on the disk have.
fn check_path(value: &PropertyValue) -> Result<PropertyValue, String> {
    if value.is_secret() {
        return Err("a path cannot be secret: it becomes the id, which is shown and stored in clear".to_owned());
    }
    match value {
        PropertyValue::String(text) => Ok(RelativePath::parse(text)?.as_str().into()),
        unknown => Ok(unknown.clone()),
    }
}

/// The rule for `mode`; `needed` are bits that must be set.
fn check_mode(value: &PropertyValue, needed: u32, why: &str) -> Result<PropertyValue, String> {
    match value {
        PropertyValue::String(text) => match parse_mode(text, needed) {
            Some(mode) => Ok(show_mode(mode).into()),
            None => Err(format!("a mode is octal digits such as \"0750\", and {why}")),
        },
        unknown => Ok(unknown.clone()),
    }
}

/// `path` of checked inputs.
fn path_of(inputs: &PropertyMap) -> Result<RelativePath, Status> {
    id_to_path(checked(text(inputs, "path"), "path")?)
}

/// `mode` of checked inputs.
fn mode_of(inputs: &PropertyMap) -> Result<u32, Status> {
    let mode = checked(text(inputs, "mode"), "mode")?;
    parse_mode(mode, 0).ok_or_else(|| Status::invalid_argument("property mode is none; inputs come out of Check"))
}

/// The path that an id is. Ids of imports are written by users.
fn id_to_path(id: &str) -> Result<RelativePath, Status> {
    RelativePath::parse(id).map_err(Status::invalid_argument)
}

/// A value that was found, secret if the one that is known is.
fn as_secret_as(known: &PropertyMap, name: &str, value: PropertyValue) -> PropertyValue {
    secret_if(is_secret(known, name), value)
}

/// Refuses an Update to another place, which only a replacement could do.
fn same_place(id: &str, news: &PropertyMap) -> Result<RelativePath, Status> {
    let path = id_to_path(id)?;
    if path_of(news)? == path {
        Ok(path)
    } else {
        Err(Status::invalid_argument("the path cannot be updated: another path is another resource"))
    }
}

/// The answer where something is in the way of a Create.
fn occupied(path: &RelativePath) -> Status {
    Status::already_exists(format!(
        "{path} exists already, and was not created by this resource. Import it (its id is {path}) or choose another \
         path; where a resource is replaced by one of the same path, set deleteBeforeReplace",
        path = path.as_str()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A root in a temporary folder, and the folder.
    pub(super) fn context() -> (tempfile::TempDir, Context) {
        let folder = tempfile::tempdir().unwrap();
        let root = Arc::new(Root::new(folder.path().join("root").to_str().unwrap()));
        (folder, Context { root, cancelled: CancellationToken::new() })
    }

    pub(super) fn bag<const N: usize>(members: [(&str, PropertyValue); N]) -> PropertyMap {
        members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Nothing recorded: an import.
    pub(super) fn nothing() -> State {
        State { inputs: PropertyMap::new(), outputs: PropertyMap::new() }
    }

    #[test]
    fn every_token_is_found_and_no_other() {
        for resource in RESOURCES {
            assert_eq!(find(resource.token()).unwrap().token(), resource.token());
        }
        assert!(find("files:fs:Fil").is_err());
    }

    #[test]
    fn modes_are_brought_to_four_digits_and_must_leave_us_access() {
        assert_eq!(check_mode(&"640".into(), 0o400, ""), Ok("0640".into()));
        assert_eq!(check_mode(&PropertyValue::UNKNOWN, 0o400, ""), Ok(PropertyValue::UNKNOWN));
        assert!(check_mode(&"0040".into(), 0o400, "the owner must be able to read").unwrap_err().contains("owner"));
    }

    #[test]
    fn a_secret_path_is_refused_even_while_it_is_unknown() {
        assert!(check_path(&PropertyValue::secret("a".into())).is_err());
        assert!(check_path(&PropertyValue::secret(PropertyValue::UNKNOWN)).is_err());
    }
}
