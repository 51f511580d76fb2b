//! Reads files and folders: small, bounded, UTF-8. No other module of the crate touches the file system.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::str::Utf8Error;

use bridge::fs::{MAX_DOCUMENT_BYTES, read_regular};

/// Reasons why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    /// The system call failed, or the file is larger than [`MAX_DOCUMENT_BYTES`], or not a regular file.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The text is not UTF-8.
    #[error("the file is not UTF-8")]
    NotUtf8(#[source] Utf8Error),
}

impl ReadError {
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

/// Reads a text file.
pub(super) fn read(path: &Path) -> Result<String, ReadError> {
    let bytes = read_regular(path, MAX_DOCUMENT_BYTES)?;
    String::from_utf8(bytes).map_err(|error| ReadError::NotUtf8(error.utf8_error()))
}

/// Reads a text file; `None` if it cannot be read.
pub(super) fn read_optional(path: &Path) -> Option<String> {
    read(path).ok()
}

/// Returns true if the path is a folder or a link to a folder.
pub(super) fn is_folder(path: &Path) -> bool {
    path.is_dir()
}

/// Returns the user ids of the owners of a path: of a symbolic link, and of its target. Empty if the path is missing.
pub(super) fn owners(path: &Path) -> impl Iterator<Item = u32> + use<> {
    [fs::symlink_metadata(path), fs::metadata(path)].into_iter().flatten().map(|found| found.uid())
}

/// Lists the paths in a folder, sorted; empty if the folder cannot be read.
pub(super) fn list_paths(folder: &Path) -> Vec<PathBuf> {
    list_entries(folder).map(|entries| entries.into_iter().map(|entry| entry.path).collect()).unwrap_or_default()
}

/// An entry of a folder.
pub(super) struct FolderEntry {
    /// Path of the entry.
    pub(super) path: PathBuf,
    /// The entry is a folder, or a symbolic link to any target.
    pub(super) is_folder_or_link: bool,
}

/// Lists the entries of a folder, sorted by name.
pub(super) fn list_entries(folder: &Path) -> io::Result<Vec<FolderEntry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        entries.push(FolderEntry { path: entry.path(), is_folder_or_link: kind.is_dir() || kind.is_symlink() });
    }
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn non_utf8_file_is_rejected_with_offset_of_first_invalid_byte() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("server.yaml");
        fs::write(&file, b"name: \xff").unwrap();
        let error = read(&file).unwrap_err();
        assert_eq!(error.to_string(), "the file is not UTF-8");
        assert!(error.source().unwrap().to_string().contains("index 6"));
        assert!(!error.is_missing());
    }
}
