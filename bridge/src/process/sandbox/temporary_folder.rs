//! The folder for the temporary files of one program.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::fs::{FileError, ScratchFolder};

/// Variables that name the folder for temporary files: the first one everywhere, the others in Python and Node.
const VARIABLES: [&str; 3] = ["TMPDIR", "TMP", "TEMP"];

/// Beginning of the name of a folder.
const PREFIX: &str = "plugin-";

/// Folder for the temporary files of one program, with access for its account only. Dropping it removes the folder; those of
/// killed processes are removed by the next one that creates a folder.
#[derive(Debug)]
pub(in crate::process) struct TemporaryFolder(ScratchFolder);

impl TemporaryFolder {
    /// Creates a folder in the folder for temporary files that the environment of the program names, else in `/tmp`.
    pub(in crate::process) fn create(environment: &[(OsString, OsString)]) -> Result<Self, FileError> {
        let named = environment.iter().find(|(name, _)| name == VARIABLES[0]).map(|(_, folder)| PathBuf::from(folder));
        let named = named.filter(|folder| folder.is_absolute() && folder.is_dir());
        let parent = named.unwrap_or_else(|| PathBuf::from("/tmp"));
        ScratchFolder::in_shared(&parent, PREFIX).map(Self)
    }

    pub(in crate::process) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the variables that name the folder.
    pub(in crate::process) fn variables(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        VARIABLES.map(|name| (name, self.path())).into_iter()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::fs::shared_name;

    #[test]
    fn folder_is_private_in_the_folder_that_the_environment_names_and_removed() {
        let parent = tempfile::tempdir().unwrap();
        let environment = |folder: &Path| vec![(OsString::from("TMPDIR"), folder.as_os_str().to_owned())];
        let folder = TemporaryFolder::create(&environment(parent.path())).unwrap();
        let path = folder.path().to_owned();
        assert_eq!(path.parent(), Some(&*parent.path().join(shared_name())));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::write(path.join("file"), "x").unwrap();
        drop(folder);
        assert!(!path.exists());
        for unusable in [parent.path().join("missing"), PathBuf::from("relative"), PathBuf::new()] {
            let folder = TemporaryFolder::create(&environment(&unusable)).unwrap();
            assert!(folder.path().starts_with("/tmp"), "{}", unusable.display());
        }
    }
}
