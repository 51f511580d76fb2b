//! The resource types, one file each. Excluded: code that is the same for all types, such as Diff and the schema.

mod directory;
mod disk_resource;
mod file;
mod password;
pub(crate) mod resource;

use tonic::Status;

use resource::Resource;

/// All resource types of this plugin.
pub(crate) const RESOURCES: [&dyn Resource; 3] = [&directory::Directory, &file::File, &password::Password];

/// Returns the resource type of a token.
///
/// # Errors
/// INVALID_ARGUMENT if there is none.
pub(crate) fn find(token: &str) -> Result<&'static dyn Resource, Status> {
    RESOURCES
        .into_iter()
        .find(|resource| resource.token() == token)
        .ok_or_else(|| Status::invalid_argument(format!("there is no resource type {token}")))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pulumi_proto::property::{PropertyMap, PropertyValue};
    use tokio_util::sync::CancellationToken;

    use super::resource::State;
    use super::*;
    use crate::root::CallContext;
    use crate::root::Root;

    /// Returns a root in a temporary folder, and the folder.
    pub(super) fn context() -> (tempfile::TempDir, CallContext) {
        let folder = tempfile::tempdir().unwrap();
        let root = Arc::new(Root::new(folder.path().join("root").to_str().unwrap()));
        (folder, CallContext { root, cancelled: CancellationToken::new() })
    }

    pub(super) fn bag<const N: usize>(members: [(&str, PropertyValue); N]) -> PropertyMap {
        members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Returns the recorded state of an import, which is empty.
    pub(super) fn empty_state() -> State {
        State { inputs: PropertyMap::new(), outputs: PropertyMap::new() }
    }

    #[test]
    fn resource_type_is_found_only_by_its_token() {
        for resource in RESOURCES {
            assert_eq!(find(resource.token()).unwrap().token(), resource.token());
        }
        assert!(find("files:fs:Fil").is_err());
    }
}
