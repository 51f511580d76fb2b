//! File system access: bounded reads of regular files, atomic writes, folders for the current user only, temporary
//! folders, a check of owners and permissions, and errors that name the path; whether `/proc` shows our processes.
//!
//! Excluded: the formats of files.

mod below;
pub mod calls;
#[cfg(debug_assertions)]
pub mod faults;
mod file_call;
mod private;
mod proc;
mod read;
mod scratch;
mod temporary;
mod trust;
mod write;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

pub use below::place_below;
pub use file_call::FileCall;
pub use private::{create_private_folder, is_own_file, is_private_folder};
pub use proc::{ProcessStat, has_own_proc};
pub(crate) use read::without_waiting;
pub use read::{
    MAX_DOCUMENT_BYTES, open_regular, read_if_exists, read_named, read_open, read_regular, read_to_limit, utf8,
};
pub use scratch::{RANDOM_CHARACTERS, ScratchFolder, shared_name};
pub use temporary::{TEMPORARY_PREFIX, TemporaryFiles, is_day_old};
pub use trust::{PathOrigin, TrustError, check_trusted, check_trusted_below};
pub(crate) use trust::{check_trusted_target, check_trusted_tree};
pub use write::{write_atomically, write_atomically_from};

use calls::may_fail;

/// Failed operation on a path.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}", path.display())]
pub struct FileError {
    /// The path.
    pub path: PathBuf,
    /// Attempted operation in the form that follows "cannot": `read`, `create folder`.
    pub action: &'static str,
    /// Error of the operating system.
    #[source]
    pub source: io::Error,
}

impl FileError {
    /// Returns a function for `map_err` that makes the error of `action` on `path`.
    pub fn of(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self { path, action, source }
    }
}

/// Permissions of a new file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Readable and writable for all, minus the umask of the process.
    #[default]
    Shared,
    /// Readable and writable for the owner only.
    Private,
}

impl Access {
    /// Returns the mode of a new file, before the umask.
    pub fn file_mode(self) -> u32 {
        match self {
            Self::Shared => 0o666,
            Self::Private => 0o600,
        }
    }
}

/// Flushes a folder to disk, so that files created, renamed or removed in it survive a power failure.
///
/// # Errors
/// [`FileError`].
#[expect(clippy::disallowed_methods, reason = "a folder is opened, not a file")]
pub fn sync_folder(folder: &Path) -> Result<(), FileError> {
    let opened = may_fail(FileCall::Open, folder).and_then(|()| File::open(folder));
    let flushed = opened.and_then(|opened| calls::sync_all(&opened, folder));
    flushed.map_err(FileError::of("flush folder", folder))
}

/// Creates a folder and its missing parents.
///
/// # Errors
/// [`FileError`].
pub fn create_folders(path: &Path) -> Result<(), FileError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    calls::create_folder(&builder, path).map_err(FileError::of("create folder", path))
}

/// Creates a folder and its missing parents with access for the current user only, whatever the umask. Folders that
/// exist keep their permissions.
///
/// # Errors
/// [`FileError`].
pub fn create_private_folders(path: &Path) -> Result<(), FileError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    calls::create_folder(&builder, path).map_err(FileError::of("create folder", path))
}

/// Removes the permissions of other users from a file or folder, if it exists.
///
/// # Errors
/// [`FileError`].
pub fn withdraw_access(path: &Path) -> Result<(), FileError> {
    let failed = || FileError::of("make private", path);
    match fs::metadata(path).map(|metadata| metadata.permissions().mode()) {
        Ok(mode) if mode & 0o077 != 0 => {
            fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o700)).map_err(failed())
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed()(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaced_file_leaves_no_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        write_atomically(&path, b"one", Access::Shared).unwrap();
        write_atomically(&path, b"two", Access::Private).unwrap();
        assert_eq!(read_if_exists(&path, 100).unwrap().unwrap(), b"two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn private_file_is_accessible_to_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        write_atomically(&path, b"", Access::Private).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn private_folders_are_accessible_to_their_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        create_private_folders(&folder.path().join("a/b")).unwrap();
        for created in ["a", "a/b"] {
            assert_eq!(fs::metadata(folder.path().join(created)).unwrap().permissions().mode() & 0o777, 0o700);
        }
    }

    #[test]
    fn access_of_other_users_is_withdrawn() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        withdraw_access(&path).unwrap();
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o654)).unwrap();
        withdraw_access(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn failed_write_names_the_path_and_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("there");
        fs::create_dir(&path).unwrap();
        let error = write_atomically(&path, b"x", Access::Shared).unwrap_err();
        assert_eq!(error.to_string(), format!("cannot replace {}", path.display()));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(read_if_exists(&folder.path().join("not there"), 100).unwrap(), None);
    }
}
