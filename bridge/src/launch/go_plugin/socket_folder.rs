//! The private folder of a plugin's sockets.

use std::fs::Permissions;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::error::GoPluginError;
use super::handshake_line::SOCKET_PATH_LIMIT;

/// Longest name of a socket that the library chooses, with the separator and the final NUL: `/plugin` and ten digits.
const SOCKET_NAME: usize = "/plugin0123456789".len() + 1;
/// Name of the folder with its separator: `/sc-` and six characters.
const FOLDER_NAME: usize = "/sc-abcdef".len();

/// Creates a folder with mode 0700 in the first parent in which the path of a socket is short enough. Dropping it removes
/// the folder.
///
/// # Errors
/// [`GoPluginError::SocketFolder`] with the error of the last parent.
pub(super) fn create(parents: &[PathBuf]) -> Result<TempDir, GoPluginError> {
    let mut reason = "no folder for temporary files is known".to_owned();
    for parent in parents {
        if !is_short_enough(parent) {
            reason = format!("the path of a socket in {} would be longer than 107 bytes", parent.display());
            continue;
        }
        let mut options = tempfile::Builder::new();
        match options.prefix("sc-").rand_bytes(6).permissions(Permissions::from_mode(0o700)).tempdir_in(parent) {
            Ok(folder) => return Ok(folder),
            Err(error) => reason = error.to_string(),
        }
    }
    Err(GoPluginError::SocketFolder(reason))
}

fn is_short_enough(parent: &Path) -> bool {
    parent.is_absolute() && parent.as_os_str().as_bytes().len() + FOLDER_NAME + SOCKET_NAME <= SOCKET_PATH_LIMIT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_is_private_and_short_and_removed() {
        let parent = tempfile::tempdir().unwrap();
        let long = parent.path().join("x".repeat(100));
        std::fs::create_dir(&long).unwrap();
        let folder = create(&[long.clone(), parent.path().to_owned()]).unwrap();
        assert_eq!(folder.path().parent(), Some(parent.path()));
        assert_eq!(std::fs::metadata(folder.path()).unwrap().permissions().mode() & 0o777, 0o700);
        let path = folder.path().to_owned();
        drop(folder);
        assert!(!path.exists());
        let error = create(&[long]).unwrap_err().to_string();
        assert!(error.contains("longer than 107 bytes"), "{error}");
    }
}
