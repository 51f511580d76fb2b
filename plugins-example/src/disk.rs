//! Operations on files and folders. Files are written atomically.
//!
//! Each function takes an open folder and a name in it ([`crate::root`]). A failed operation changes no file, and its
//! status code is neither UNKNOWN nor INTERNAL, which means "unchanged" to an engine
//! (docs/spec/provider-protocol.md#6.2).

use std::io::{self, Read as _, Write as _};

use cap_std::fs::{Dir, DirBuilder, File, OpenOptions, OpenOptionsExt as _, Permissions, PermissionsExt as _};
use tokio_util::sync::CancellationToken;
use tonic::Status;
use uuid::Uuid;

use crate::root::{RelativePath, leads_out};

/// Maximum size of a content in bytes, slightly below the size of a message.
pub(crate) const MAX_CONTENT: u64 = 300 * 1024 * 1024;

/// Suffix of the names of temporary files.
const TEMPORARY: &str = ".pulumi-files-tmp";

/// Content and mode of a regular file.
pub(crate) struct FileContent {
    pub(crate) content: Vec<u8>,
    pub(crate) mode: u32,
}

/// Treatment of an existing file with the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    /// Keeps the existing file and fails with `AlreadyExists`.
    Keep,
    /// Replaces the existing file.
    Replace,
}

/// Writes a temporary file and moves it to its name, so that no process reads an incomplete file.
///
/// # Errors
/// `Interrupted` if cancelled before the move; errors of the system.
pub(crate) fn write(
    folder: &Dir,
    name: &str,
    content: &[u8],
    mode: u32,
    existing: Existing,
    cancelled: &CancellationToken,
) -> io::Result<()> {
    let temporary = format!(".{}{TEMPORARY}", Uuid::new_v4().simple());
    let mut file = folder.open_with(&temporary, OpenOptions::new().write(true).create_new(true).mode(0o600))?;
    let written = write_and_sync(&mut file, content, mode).and_then(|()| {
        if cancelled.is_cancelled() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        match existing {
            // Unlike a rename, a hard link fails if the name exists.
            Existing::Keep => folder.hard_link(&temporary, folder, name),
            Existing::Replace => folder.rename(&temporary, folder, name),
        }
    });
    if written.is_err() || existing == Existing::Keep {
        // If this fails, `remove_folder` recognizes the file by its suffix and removes it.
        folder.remove_file(&temporary).ok();
    }
    written?;
    // Optional, because not every file system supports it. The content is flushed already.
    folder.open(".").and_then(|folder| folder.sync_all()).ok();
    Ok(())
}

fn write_and_sync(file: &mut File, content: &[u8], mode: u32) -> io::Result<()> {
    file.write_all(content)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    file.sync_all()
}

/// Reads a regular file. Returns `None` if the name does not exist or is not a regular file.
pub(crate) fn read(folder: &Dir, name: &str) -> io::Result<Option<FileContent>> {
    let metadata = match folder.symlink_metadata(name) {
        Ok(metadata) if metadata.is_file() => metadata,
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut content = Vec::new();
    folder.open(name)?.take(MAX_CONTENT + 1).read_to_end(&mut content)?;
    if content.len() as u64 > MAX_CONTENT {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {MAX_CONTENT} bytes")));
    }
    Ok(Some(FileContent { content, mode: permission_bits(&metadata) }))
}

/// Removes a regular file. Succeeds without effect if the name does not exist or is not a regular file.
pub(crate) fn remove_file(folder: &Dir, name: &str) -> io::Result<()> {
    match folder.symlink_metadata(name) {
        Ok(metadata) if metadata.is_file() => folder.remove_file(name),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Creates a folder with exactly this mode.
pub(crate) fn create_folder(folder: &Dir, name: &str, mode: u32) -> io::Result<()> {
    folder.create_dir_with(name, &DirBuilder::new())?;
    // Set after the creation, because the umask of the process restricts the mode of a new folder.
    folder.set_permissions(name, Permissions::from_mode(mode)).inspect_err(|_| drop(folder.remove_dir(name)))
}

/// Returns the mode of a folder. `None` if the name does not exist or is not a folder.
pub(crate) fn folder_mode(folder: &Dir, name: &str) -> io::Result<Option<u32>> {
    match folder.symlink_metadata(name) {
        Ok(metadata) if metadata.is_dir() => Ok(Some(permission_bits(&metadata))),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Sets the mode of a folder.
pub(crate) fn set_folder_mode(folder: &Dir, name: &str, mode: u32) -> io::Result<()> {
    folder.set_permissions(name, Permissions::from_mode(mode))
}

/// Result of the removal of a folder.
pub(crate) enum Removal {
    /// The folder is removed, or did not exist.
    Removed,
    /// The folder contains an entry with this name.
    NotEmpty(String),
}

/// Removes a folder that is empty, or contains only temporary files, which a killed process may leave.
pub(crate) fn remove_folder(folder: &Dir, name: &str) -> io::Result<Removal> {
    if folder_mode(folder, name)?.is_none() {
        return Ok(Removal::Removed);
    }
    let inside = folder.open_dir(name)?;
    for entry in inside.entries()? {
        let entry = entry?.file_name();
        let entry = entry.to_string_lossy();
        if !entry.ends_with(TEMPORARY) {
            return Ok(Removal::NotEmpty(entry.into_owned()));
        }
        inside.remove_file(entry.as_ref())?;
    }
    folder.remove_dir(name)?;
    Ok(Removal::Removed)
}

fn permission_bits(metadata: &cap_std::fs::Metadata) -> u32 {
    metadata.permissions().mode() & 0o7777
}

/// Parses a mode: three octal digits, or four with a leading 0. The bits `needed` must be set.
pub(crate) fn parse_mode(text: &str, needed: u32) -> Option<u32> {
    let digits = if text.len() == 4 { text.strip_prefix('0')? } else { text };
    if digits.len() != 3 || !digits.bytes().all(|digit| matches!(digit, b'0'..=b'7')) {
        return None;
    }
    u32::from_str_radix(digits, 8).ok().filter(|mode| mode & needed == needed)
}

/// Formats a mode like Check.
pub(crate) fn show_mode(mode: u32) -> String {
    format!("{mode:04o}")
}

/// Returns the status for an I/O error. `action` is the failed action: "write the file".
pub(crate) fn io_status(action: &str, path: &RelativePath, error: &io::Error) -> Status {
    let path = path.as_str();
    if leads_out(error) {
        return Status::permission_denied(format!("cannot {action} {path}: a symbolic link leads out of the root"));
    }
    let message = format!("cannot {action} {path}: {error}");
    match error.kind() {
        io::ErrorKind::NotFound => Status::not_found(message),
        io::ErrorKind::PermissionDenied => Status::permission_denied(message),
        io::ErrorKind::Interrupted => Status::aborted(format!("cancelled; {path} is unchanged")),
        _ => Status::failed_precondition(message),
    }
}

#[cfg(test)]
mod tests {
    use cap_std::ambient_authority;

    use super::*;

    fn folder() -> (tempfile::TempDir, Dir) {
        let temporary = tempfile::tempdir().unwrap();
        let folder = Dir::open_ambient_dir(temporary.path(), ambient_authority()).unwrap();
        (temporary, folder)
    }

    fn names(folder: &Dir) -> Vec<String> {
        folder.entries().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn file_is_written_with_its_mode_and_without_temporary_files() {
        let (_keep, folder) = folder();
        let token = CancellationToken::new();
        write(&folder, "a", b"one", 0o640, Existing::Keep, &token).unwrap();
        write(&folder, "a", b"two", 0o400, Existing::Replace, &token).unwrap();
        let found = read(&folder, "a").unwrap().unwrap();
        assert_eq!((found.content.as_slice(), found.mode), (&b"two"[..], 0o400));
        assert_eq!(names(&folder), ["a"]);
    }

    #[test]
    fn existing_file_is_kept_unless_replaced() {
        let (_keep, folder) = folder();
        folder.write("a", "theirs").unwrap();
        let error = write(&folder, "a", b"ours", 0o600, Existing::Keep, &CancellationToken::new()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(folder.read_to_string("a").unwrap(), "theirs");
        assert_eq!(names(&folder), ["a"]);
    }

    #[test]
    fn cancelled_write_keeps_the_file() {
        let (_keep, folder) = folder();
        folder.write("a", "old").unwrap();
        let cancelled = CancellationToken::new();
        cancelled.cancel();
        let error = write(&folder, "a", b"new", 0o600, Existing::Replace, &cancelled).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
        assert_eq!(folder.read_to_string("a").unwrap(), "old");
        assert_eq!(names(&folder), ["a"]);
    }

    #[test]
    fn folder_is_removed_only_if_empty_except_for_temporary_files() {
        let (_keep, folder) = folder();
        create_folder(&folder, "d", 0o750).unwrap();
        assert_eq!(folder_mode(&folder, "d").unwrap(), Some(0o750));
        folder.write(format!("d/.0{TEMPORARY}"), "").unwrap();
        folder.write("d/theirs", "").unwrap();
        assert!(matches!(remove_folder(&folder, "d").unwrap(), Removal::NotEmpty(name) if name == "theirs"));
        folder.remove_file("d/theirs").unwrap();
        assert!(matches!(remove_folder(&folder, "d").unwrap(), Removal::Removed));
        assert!(matches!(remove_folder(&folder, "d").unwrap(), Removal::Removed));
        assert_eq!(names(&folder), [""; 0]);
    }

    #[test]
    fn mode_is_three_octal_digits_with_optional_leading_zero() {
        assert_eq!(parse_mode("644", 0), Some(0o644));
        assert_eq!(parse_mode("0600", 0o400), Some(0o600));
        for bad in ["", "64", "0o644", "1644", "00644", "888", "rw-", "+44", "0044"] {
            assert_eq!(parse_mode(bad, 0o400), None, "{bad}");
        }
        assert_eq!(show_mode(0o44), "0044");
    }
}
