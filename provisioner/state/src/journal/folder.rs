//! Folder of the journals of a stack.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use bridge::fs::{FileError, create_private_folders};

use super::error::JournalError;
use crate::store::StackReference;

/// Returns the folder of the journals of a stack.
pub(crate) fn folder(root: &Path, stack: &StackReference) -> PathBuf {
    root.join(".sc/journal").join(stack.project()).join(stack.stack())
}

/// Returns the paths of the journals of a stack, sorted by name. Runs that ended normally have removed theirs.
pub(crate) fn list(root: &Path, stack: &StackReference) -> Result<Vec<PathBuf>, JournalError> {
    let folder = folder(root, stack);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(FileError::of("list", &folder)(error).into()),
    };
    let mut journals = Vec::new();
    for entry in entries {
        journals.push(entry.map_err(FileError::of("list", &folder))?.path());
    }
    journals.sort();
    Ok(journals)
}

/// Creates the file of a journal, and its folder if it is missing, with access for the current user only. Removes the
/// permissions of other users from an existing folder.
///
/// # Errors
/// [`FileError`]; its source has the kind `AlreadyExists` if the file exists.
pub(super) fn create_file(path: &Path) -> Result<File, FileError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    create_private_folders(folder)?;
    let mode = fs::metadata(folder).map_err(FileError::of("read", folder))?.permissions().mode();
    if mode & 0o077 != 0 {
        let private = fs::set_permissions(folder, Permissions::from_mode(0o700));
        private.map_err(FileError::of("make private", folder))?;
    }
    let file = OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(path);
    file.map_err(FileError::of("create", path))
}

/// Removes a journal whose records are saved; a missing file is no error.
pub(crate) fn remove(path: &Path) -> Result<(), JournalError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(FileError::of("remove", path)(error).into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journal_and_its_folder_are_accessible_to_their_owner_only() {
        let root = tempfile::tempdir().unwrap();
        let stack = StackReference::new("tank", "reef").unwrap();
        let folder = folder(root.path(), &stack);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let first = folder.join("first");
        create_file(&first).unwrap();
        assert_eq!(mode(&first), 0o600);
        for created in [".sc", ".sc/journal", ".sc/journal/tank", ".sc/journal/tank/reef"] {
            assert_eq!(mode(&root.path().join(created)), 0o700, "{created}");
        }
        // The folder of an earlier version.
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        create_file(&folder.join("second")).unwrap();
        assert_eq!(mode(&folder), 0o700);
        assert_eq!(create_file(&first).unwrap_err().source.kind(), ErrorKind::AlreadyExists);
    }
}
