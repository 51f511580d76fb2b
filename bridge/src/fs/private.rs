//! Folders for files that only the current user may read or replace.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;

use super::calls::create_folder;
use super::{FileError, create_folders};

/// Permission bits with which others could replace files of a folder.
const WRITABLE_FOR_OTHERS: u32 = 0o022;

/// Creates a folder with mode 0700, and its missing parents. An existing folder must be private.
///
/// # Errors
/// [`FileError`] if the folder cannot be created, is a symbolic link, belongs to another user, or is writable for
/// others.
pub fn create_private_folder(path: &Path) -> Result<(), FileError> {
    if let Some(parent) = path.parent() {
        create_folders(parent)?;
    }
    match create_folder(DirBuilder::new().mode(0o700), path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(FileError::of("create folder", path)(error));
        }
        _ => {}
    }
    if is_private_folder(path)? {
        return Ok(());
    }
    let reason = "it is not a folder of this user that only this user can write to";
    Err(FileError::of("use", path)(io::Error::new(ErrorKind::PermissionDenied, reason)))
}

/// Returns whether a path is a folder, not a symbolic link, that belongs to the user of this process and is not writable
/// for others. A missing folder is not private.
///
/// # Errors
/// [`FileError`] if the path cannot be examined.
pub fn is_private_folder(path: &Path) -> Result<bool, FileError> {
    match fs::symlink_metadata(path) {
        Ok(found) => {
            let is_own = found.uid() == rustix::process::geteuid().as_raw();
            Ok(found.is_dir() && is_own && found.mode() & WRITABLE_FOR_OTHERS == 0)
        }
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(false),
        Err(error) => Err(FileError::of("examine", path)(error)),
    }
}

/// Returns whether a path is a regular file, not a symbolic link, that belongs to the user of this process.
pub fn is_own_file(path: &Path) -> bool {
    let is_own = |found: fs::Metadata| found.is_file() && found.uid() == rustix::process::geteuid().as_raw();
    fs::symlink_metadata(path).is_ok_and(is_own)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn folder_that_others_can_write_to_or_that_is_a_link_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let private = folder.path().join("state/private");
        create_private_folder(&private).unwrap();
        create_private_folder(&private).unwrap();
        assert_eq!(fs::metadata(&private).unwrap().mode() & 0o777, 0o700);
        let link = folder.path().join("link");
        symlink(&private, &link).unwrap();
        let shared = folder.path().join("shared");
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).unwrap();
        for refused in [&link, &shared] {
            let error = create_private_folder(refused).unwrap_err();
            assert_eq!(error.to_string(), format!("cannot use {}", refused.display()));
            assert!(!is_private_folder(refused).unwrap());
        }
        assert!(!is_private_folder(&folder.path().join("missing")).unwrap());
    }

    #[test]
    fn symbolic_link_is_no_own_file() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "").unwrap();
        symlink(&file, &link).unwrap();
        assert!(is_own_file(&file) && !is_own_file(&link) && !is_own_file(folder.path()));
    }
}
