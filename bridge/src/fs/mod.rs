//! The file system: files that are there whole or not at all, and errors that name the path.
//!
//! Never here: what a file holds.

mod scratch;

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

pub use scratch::Scratch;

/// Something that could not be done with a path.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}", path.display())]
pub struct PathError {
    /// The path.
    pub path: PathBuf,
    /// What was tried, to follow "cannot": `read`, `create folder`.
    pub action: &'static str,
    /// Why it did not work.
    #[source]
    pub source: io::Error,
}

impl PathError {
    /// For `map_err`: the error of doing `action` with `path`.
    pub fn of(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self { path, action, source }
    }
}

/// Who may read and write a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everybody whom the process's umask lets.
    Shared,
    /// Its owner alone.
    Private,
}

/// Replaces a file as a whole: whoever reads it sees the old content or the new one, also after a loss of power.
///
/// The new content is written beside the target, flushed, renamed over it, and the folder is flushed. The folder must
/// exist.
///
/// # Errors
/// [`PathError`]; the old file is untouched then, unless only the last flush failed.
pub fn write_atomically(path: &Path, content: &[u8], access: Access) -> Result<(), PathError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut options = tempfile::Builder::new();
    options.prefix(".tmp-");
    set_mode(&mut options, access);
    let mut file = options.tempfile_in(folder).map_err(PathError::of("create a file in", folder))?;
    // What it is called meanwhile says nothing to anybody: an error names the file that was to be written.
    let written = file.as_file_mut().write_all(content).and_then(|()| file.as_file().sync_all());
    written.map_err(PathError::of("write", path))?;
    file.persist(path).map_err(|error| PathError::of("replace", path)(error.error))?;
    sync_folder(folder)
}

#[cfg(unix)]
fn set_mode(options: &mut tempfile::Builder<'_, '_>, access: Access) {
    use std::os::unix::fs::PermissionsExt;
    let mode = match access {
        Access::Shared => 0o666,
        Access::Private => 0o600,
    };
    options.permissions(fs::Permissions::from_mode(mode));
}

#[cfg(not(unix))]
fn set_mode(_: &mut tempfile::Builder<'_, '_>, _: Access) {}

/// Flushes a folder, so that a file created, renamed or removed in it stays so.
///
/// # Errors
/// [`PathError`].
pub fn sync_folder(folder: &Path) -> Result<(), PathError> {
    if cfg!(unix) {
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(PathError::of("flush folder", folder))?;
    }
    Ok(())
}

/// Reads a file; `None` where there is none.
///
/// # Errors
/// [`PathError`] where there is one that cannot be read.
pub fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, PathError> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(PathError::of("read", path)(error)),
    }
}

/// Creates a folder and those above it.
///
/// # Errors
/// [`PathError`].
pub fn create_folders(path: &Path) -> Result<(), PathError> {
    fs::create_dir_all(path).map_err(PathError::of("create folder", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        write_atomically(&path, b"one", Access::Shared).unwrap();
        write_atomically(&path, b"two", Access::Private).unwrap();
        assert_eq!(read_if_there(&path).unwrap().unwrap(), b"two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_private_file_is_its_owners_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        write_atomically(&path, b"", Access::Private).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn an_error_names_the_path_and_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("there");
        fs::create_dir(&path).unwrap();
        let error = write_atomically(&path, b"x", Access::Shared).unwrap_err();
        assert_eq!(error.to_string(), format!("cannot replace {}", path.display()));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(read_if_there(&folder.path().join("not there")).unwrap(), None);
    }
}
