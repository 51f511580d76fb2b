//! Atomic writes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::calls::{self, may_fail};
use super::temporary::{TEMPORARY_PREFIX, TemporaryFiles};
use super::{Access, FileCall, FileError, sync_folder};

/// Replaces a file atomically: a reader sees the old content or the new content, even after a power failure.
///
/// Writes the content to a temporary file in the same folder, flushes it, renames it over the target and flushes the
/// folder. The folder must exist. Removes the temporary files that killed processes have left in it.
///
/// # Errors
/// [`FileError`]. The old file is unchanged, unless only the flush of the folder failed.
pub fn write_atomically(path: &Path, content: &[u8], access: Access) -> Result<(), FileError> {
    let folder = folder_of(path);
    let _writing = TemporaryFiles::begin(folder);
    write_atomically_from(folder, path, content, access)
}

/// Replaces a file atomically like [`write_atomically`], with the temporary file in another folder of the same file system,
/// from which the caller keeps other processes.
///
/// # Errors
/// [`FileError`]. The old file is unchanged, unless only the flush of the folder failed.
pub fn write_atomically_from(folder: &Path, path: &Path, content: &[u8], access: Access) -> Result<(), FileError> {
    let mut options = tempfile::Builder::new();
    options.prefix(TEMPORARY_PREFIX);
    options.permissions(fs::Permissions::from_mode(access.file_mode()));
    let file = may_fail(FileCall::Open, path).and_then(|()| options.tempfile_in(folder));
    let file = file.map_err(FileError::of("create a file in", folder))?;
    // The error names the target file: the name of the temporary file is meaningless to the user.
    let written = calls::write_all(file.as_file(), path, content).and_then(|()| calls::sync_all(file.as_file(), path));
    written.map_err(FileError::of("write", path))?;
    let replaced = may_fail(FileCall::Rename, path).and_then(|()| file.persist(path).map_err(|error| error.error));
    replaced.map_err(FileError::of("replace", path))?;
    sync_folder(folder_of(path))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
