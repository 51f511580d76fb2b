//! Configuration of the provider: `root`.

use std::collections::BTreeMap;

use pulumi_proto::property::{PropertyMap, PropertyValue};
use tonic::Status;

use crate::PACKAGE;
use crate::property::{Default, Kind, Property};
use crate::root::Root;
use crate::value::{text, unwrap_secrets};

/// Properties for users.
pub(crate) const PROPERTIES: [Property; 1] = [Property::optional(
    "root",
    Kind::String,
    "Root folder of all paths, which cannot leave it. A relative root starts at the working directory of the plugin, \
     which is the root of the project. The folder is created when needed, and never deleted.",
)
.default(Default::String("."))
.replaces()];

/// Property that engines add: the version of the package. Returned unchanged.
pub(crate) const VERSION: Property = Property::optional("version", Kind::String, "");

/// Checks a value.
pub(crate) fn check(name: &str, value: &PropertyValue) -> Result<PropertyValue, String> {
    match (name, unwrap_secrets(value)) {
        ("root", PropertyValue::String(root)) if root.is_empty() => {
            Err("the root must name a folder; \".\" is the working directory of the plugin".to_owned())
        }
        ("root", PropertyValue::String(root)) if root.contains('\0') => {
            Err("the path of a folder cannot contain a zero byte".to_owned())
        }
        (_, value) => Ok(value.clone()),
    }
}

/// Returns the configured root. `variables` is the older form of `args`, for engines that send only variables.
///
/// # Errors
/// FAILED_PRECONDITION if the root is not usable.
pub(crate) fn read(args: Option<&PropertyMap>, variables: &BTreeMap<String, String>) -> Result<Root, Status> {
    let root = match args {
        Some(args) => text(args, "root"),
        None => variables.get(&format!("{PACKAGE}:config:root")).map(String::as_str),
    };
    let root = Root::new(root.filter(|root| !root.is_empty()).unwrap_or("."));
    root.check_usable().map_err(Status::failed_precondition)?;
    Ok(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_read_from_args_or_variables_and_has_a_default() {
        let joined = |args: Option<&PropertyMap>, variables: &[(&str, &str)]| {
            let variables = variables.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            read(args, &variables).unwrap().join("a").display().to_string()
        };
        let args: PropertyMap = [("root".to_owned(), PropertyValue::secret("site".into()))].into();
        assert_eq!(joined(Some(&args), &[("files:config:root", "other")]), "site/a");
        assert_eq!(joined(None, &[("files:config:root", "other")]), "other/a");
        assert_eq!(joined(Some(&PropertyMap::new()), &[]), "a");
    }

    #[test]
    fn root_that_is_not_a_folder_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let args = [("root".to_owned(), file.path().to_str().unwrap().into())].into();
        let status = read(Some(&args), &BTreeMap::new()).unwrap_err();
        assert!(status.message().ends_with("is not a folder"), "{status}");
    }
}
