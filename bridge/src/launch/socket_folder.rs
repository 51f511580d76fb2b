//! Private folders for sockets, and the limit on the paths of sockets.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::error::chain;
use crate::fs::{RANDOM_CHARACTERS, ScratchFolder, shared_name};

/// Length of `sun_path`, the path of a Unix socket with its final NUL, on Linux.
const SOCKET_PATH_LIMIT: usize = 108;
/// Beginning of the name of a folder.
const PREFIX: &str = "sockets-";
/// Longest name of a socket that go-plugin chooses, with the separator and the final NUL: `/plugin` and ten digits.
const SOCKET_NAME: usize = "/plugin0123456789".len() + 1;
/// Length of the name of a folder with its separators.
const FOLDER_NAME: usize = 2 + PREFIX.len() + RANDOM_CHARACTERS;

/// Creates a folder with mode 0700 in the first parent in which the path of a socket is short enough. Dropping it removes
/// the folder; those of killed processes are removed by the next one that creates a folder.
///
/// # Errors
/// The reason why the last parent was not used.
pub fn create_socket_folder(parents: &[PathBuf]) -> Result<ScratchFolder, String> {
    let mut reason = "no folder for temporary files is known".to_owned();
    for parent in parents {
        if !is_short_enough(parent) {
            reason = format!("the path of a socket in {} would be longer than 107 bytes", parent.display());
            continue;
        }
        match ScratchFolder::in_shared(parent, PREFIX) {
            Ok(folder) => return Ok(folder),
            Err(error) => reason = chain(&error),
        }
    }
    Err(reason)
}

/// Returns whether a text is an absolute path that the system accepts as the path of a socket.
pub fn is_usable_socket_path(path: &str) -> bool {
    path.starts_with('/') && path.len() < SOCKET_PATH_LIMIT && !path.contains('\0')
}

fn is_short_enough(parent: &Path) -> bool {
    let length = parent.as_os_str().as_bytes().len() + shared_name().len() + FOLDER_NAME + SOCKET_NAME;
    parent.is_absolute() && length <= SOCKET_PATH_LIMIT
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn folder_is_private_and_short_and_removed() {
        let parent = tempfile::tempdir().unwrap();
        let long = parent.path().join("x".repeat(100));
        std::fs::create_dir(&long).unwrap();
        let folder = create_socket_folder(&[long.clone(), parent.path().to_owned()]).unwrap();
        assert_eq!(folder.path().parent(), Some(&*parent.path().join(shared_name())));
        assert_eq!(std::fs::metadata(folder.path()).unwrap().permissions().mode() & 0o777, 0o700);
        let path = folder.path().to_owned();
        drop(folder);
        assert!(!path.exists());
        let error = create_socket_folder(&[long]).unwrap_err();
        assert!(error.contains("longer than 107 bytes"), "{error}");
    }
}
