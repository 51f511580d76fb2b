//! The rules that resource types on the disk share: the inputs `path` and `mode`, and the path as id.
//!
//! Excluded: access to the disk, which is in [`crate::disk`].

use pulumi_proto::property::{PropertyMap, PropertyValue};
use tonic::Status;

use crate::disk::{parse_mode, show_mode};
use crate::root::RelativePath;
use crate::value::{checked, is_secret, secret_if, text};

/// Checks `path`: returns it normalized, or the reason why it is invalid.
pub(super) fn check_path(value: &PropertyValue) -> Result<PropertyValue, String> {
    if value.is_secret() {
        return Err("a path cannot be secret: it becomes the id, which is shown and stored in plain text".to_owned());
    }
    match value {
        PropertyValue::String(text) => Ok(RelativePath::parse(text)?.as_str().into()),
        unknown => Ok(unknown.clone()),
    }
}

/// Checks `mode`: returns it normalized, or the reason why it is invalid. The bits `needed` must be set; `rule`
/// describes them for the user.
pub(super) fn check_mode(value: &PropertyValue, needed: u32, rule: &str) -> Result<PropertyValue, String> {
    match value {
        PropertyValue::String(text) => match parse_mode(text, needed) {
            Some(mode) => Ok(show_mode(mode).into()),
            None => Err(format!("a mode is octal digits such as \"0750\", and {rule}")),
        },
        unknown => Ok(unknown.clone()),
    }
}

/// Returns `path` of checked inputs.
pub(super) fn get_path(inputs: &PropertyMap) -> Result<RelativePath, Status> {
    parse_id(checked(text(inputs, "path"), "path")?)
}

/// Returns `mode` of checked inputs.
pub(super) fn get_mode(inputs: &PropertyMap) -> Result<u32, Status> {
    let mode = checked(text(inputs, "mode"), "mode")?;
    parse_mode(mode, 0).ok_or_else(|| Status::invalid_argument("property mode is invalid; inputs must come from Check"))
}

/// Parses an id as a path. The id of an import is written by the user.
pub(super) fn parse_id(id: &str) -> Result<RelativePath, Status> {
    RelativePath::parse(id).map_err(Status::invalid_argument)
}

/// Returns a value that was read from the disk, as a secret if the recorded property is one.
pub(super) fn keep_secretness(known: &PropertyMap, name: &str, value: PropertyValue) -> PropertyValue {
    secret_if(is_secret(known, name), value)
}

/// Returns the path of an Update.
///
/// # Errors
/// INVALID_ARGUMENT if the new inputs have another path, which needs a replacement.
pub(super) fn check_same_path(id: &str, news: &PropertyMap) -> Result<RelativePath, Status> {
    let path = parse_id(id)?;
    if get_path(news)? == path {
        Ok(path)
    } else {
        Err(Status::invalid_argument("the path cannot be updated: another path is another resource"))
    }
}

/// Returns the error of a Create whose path exists.
pub(super) fn already_exists(path: &RelativePath) -> Status {
    Status::already_exists(format!(
        "{path} exists already, and was not created by this resource. Import it (its id is {path}) or choose another \
         path; if a replacement has the same path, set deleteBeforeReplace",
        path = path.as_str()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mode_is_normalized_and_must_have_the_needed_bits() {
        assert_eq!(check_mode(&"640".into(), 0o400, ""), Ok("0640".into()));
        assert_eq!(check_mode(&PropertyValue::UNKNOWN, 0o400, ""), Ok(PropertyValue::UNKNOWN));
        assert!(check_mode(&"0040".into(), 0o400, "the owner must be able to read").unwrap_err().contains("owner"));
    }

    #[test]
    fn secret_path_is_refused_even_if_unknown() {
        assert!(check_path(&PropertyValue::secret("a".into())).is_err());
        assert!(check_path(&PropertyValue::secret(PropertyValue::UNKNOWN)).is_err());
    }
}
