//! The folder of temporary files, `.sc/.tmp`: a command that is killed leaves no plaintext that git sees.
//!
//! ```text
//! .sc/.tmp/              mode 0700; locked, shared, by each command that writes
//! .sc/.tmp/.gitignore    `*`
//! .sc/.tmp/.tmp-…        a file that is renamed to its place as soon as it is complete
//! ```

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use bridge::fs::calls::remove_file;
use bridge::fs::{
    Access, FileError, create_private_folders, place_below, read_if_exists, withdraw_access, write_atomically,
    write_atomically_from,
};

use crate::paths::{FOLDER, TEMPORARY};

const IGNORED: &str = ".gitignore";
const EVERYTHING: &[u8] = b"*\n";

/// The folder, for the time in which files are written.
#[derive(Debug)]
pub struct TemporaryFolder {
    folder: PathBuf,
    /// Keeps other commands from removing the files. The lock ends with the process.
    _lock: File,
}

impl TemporaryFolder {
    /// Creates the folder, and removes what killed commands have left in it.
    ///
    /// # Errors
    /// [`FileError`]: the folder is a link, leads out of the repository, or cannot be created.
    pub fn open(root: &Path) -> Result<Self, FileError> {
        let folder = folder(root)?;
        create_private_folders(&folder)?;
        withdraw_access(&folder)?;
        let ignored = folder.join(IGNORED);
        if read_if_exists(&ignored, EVERYTHING.len() as u64).ok().flatten().as_deref() != Some(EVERYTHING) {
            write_atomically(&ignored, EVERYTHING, Access::Private)?;
        }
        remove_abandoned_files(root);
        let lock = open(&folder).and_then(|opened| opened.lock_shared().map(|()| opened));
        let lock = lock.map_err(FileError::of("lock", &folder))?;
        Ok(Self { folder, _lock: lock })
    }

    /// Replaces a file atomically. The folder of the file must exist, on the file system of the repository.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn write(&self, path: &Path, content: &[u8], access: Access) -> Result<(), FileError> {
        write_atomically_from(&self.folder, path, content, access)
    }
}

/// Removes the temporary files of commands that were killed, unless a command is writing. Errors are ignored: the next
/// command tries again, and git does not see the files.
pub fn remove_abandoned_files(root: &Path) {
    let Ok(folder) = folder(root) else { return };
    let Ok(lock) = open(&folder) else { return };
    if lock.try_lock().is_err() {
        return;
    }
    for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
        if entry.file_name() != IGNORED {
            remove_file(&entry.path()).unwrap_or_default();
        }
    }
}

/// Returns the folder, which need not exist.
fn folder(root: &Path) -> Result<PathBuf, FileError> {
    let folder = place_below(root, Path::new(FOLDER))?.join(TEMPORARY);
    match fs::symlink_metadata(&folder) {
        Ok(found) if !found.is_dir() => Err(FileError::of("use", &folder)(io::Error::other("it is not a folder"))),
        _ => Ok(folder),
    }
}

#[expect(clippy::disallowed_methods, reason = "a folder is opened, not a file")]
fn open(folder: &Path) -> io::Result<File> {
    File::open(folder)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn folder_is_private_and_ignored_and_loses_what_killed_commands_left() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let temporary = TemporaryFolder::open(root).unwrap();
        let place = root.join(".sc/.tmp");
        assert_eq!(fs::metadata(&place).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::read_to_string(place.join(".gitignore")).unwrap(), "*\n");
        temporary.write(&root.join("a"), b"text", Access::Private).unwrap();
        assert_eq!(fs::read_to_string(root.join("a")).unwrap(), "text");
        fs::write(place.join(".tmp-left"), "plaintext").unwrap();
        remove_abandoned_files(root);
        assert!(place.join(".tmp-left").exists(), "a command is writing");
        drop(temporary);
        remove_abandoned_files(root);
        assert_eq!(fs::read_dir(&place).unwrap().count(), 1);
    }

    #[test]
    fn folder_that_is_a_link_is_not_followed() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(elsewhere.path().join("kept"), "").unwrap();
        fs::create_dir(folder.path().join(".sc")).unwrap();
        symlink(elsewhere.path(), folder.path().join(".sc/.tmp")).unwrap();
        TemporaryFolder::open(folder.path()).unwrap_err();
        remove_abandoned_files(folder.path());
        let names: Vec<_> = fs::read_dir(elsewhere.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["kept"]);
    }
}
