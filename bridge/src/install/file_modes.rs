//! Modes of the files of packages: private and read-only in the cache, writable in the copy that is built.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::InstallError;
use crate::fs::FileError;

/// Makes a folder accessible for the current user only, whatever the umask was when it was made. Makes all files of the
/// folder read-only, so that they stay as they were verified.
pub(super) fn make_private_and_read_only(folder: &Path) -> Result<(), InstallError> {
    let set_mode = |path: &Path, mode| {
        fs::set_permissions(path, Permissions::from_mode(mode)).map_err(FileError::of("make private", path))
    };
    set_mode(folder, 0o700)?;
    for member in fs::read_dir(folder).map_err(FileError::of("list", folder))? {
        let member = member.map_err(FileError::of("list", folder))?;
        let path = member.path();
        let metadata = path.symlink_metadata().map_err(FileError::of("read", &path))?;
        if metadata.is_dir() {
            make_private_and_read_only(&path)?;
        } else if metadata.is_file() {
            let executable = metadata.permissions().mode() & 0o111 != 0;
            set_mode(&path, if executable { 0o500 } else { 0o400 })?;
        }
    }
    Ok(())
}

/// Makes all files of a copy writable for the current user.
pub(super) fn make_writable(folder: &Path) -> Result<(), InstallError> {
    for member in fs::read_dir(folder).map_err(FileError::of("list", folder))? {
        let path = member.map_err(FileError::of("list", folder))?.path();
        let metadata = path.symlink_metadata().map_err(FileError::of("read", &path))?;
        if metadata.is_dir() {
            make_writable(&path)?;
        } else if metadata.is_file() {
            let mode = metadata.permissions().mode() | 0o200;
            fs::set_permissions(&path, Permissions::from_mode(mode)).map_err(FileError::of("change", &path))?;
        }
    }
    Ok(())
}
