//! Reads files and folders: small, bounded, UTF-8. No other module of the crate touches the file system.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::str::Utf8Error;

use bridge::fs::{MAX_DOCUMENT_BYTES, read_regular};

use crate::diagnostics::{Code, Diagnostic, Sensitivity, SourceFiles, Span};

/// Reasons why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    /// The system call failed, or the file is larger than [`MAX_DOCUMENT_BYTES`], or not a regular file.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The text is not UTF-8.
    #[error("the file is not UTF-8")]
    NotUtf8 {
        /// Text with `\u{fffd}` in place of what is not UTF-8.
        text: String,
        /// Position of the first invalid byte.
        source: Utf8Error,
    },
}

impl ReadError {
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }

    /// Returns the diagnostic at the first byte that is not UTF-8; `None` for other errors. Adds the file to the sources.
    pub(super) fn not_utf8(
        &self,
        code: Code,
        display_path: &str,
        sensitivity: Sensitivity,
        sources: &mut SourceFiles,
    ) -> Option<Diagnostic> {
        let Self::NotUtf8 { text, source } = self else { return None };
        let file = sources.add(display_path, text, sensitivity);
        // A byte order mark is no part of the text in the sources.
        let at = source.valid_up_to() - (text.len() - sources.get(file).text().len());
        // Files are at most 4 MiB, so offsets fit into 32 bits.
        let byte = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        let span = Span { file, start: byte(at), end: byte(at + char::REPLACEMENT_CHARACTER.len_utf8()) };
        Some(Diagnostic::error(code, span, self.to_string()).help("save the file with the encoding UTF-8"))
    }
}

/// Reads a text file.
pub(super) fn read(path: &Path) -> Result<String, ReadError> {
    let bytes = read_regular(path, MAX_DOCUMENT_BYTES)?;
    String::from_utf8(bytes).map_err(|error| ReadError::NotUtf8 {
        text: String::from_utf8_lossy(error.as_bytes()).into_owned(),
        source: error.utf8_error(),
    })
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

/// Returns true if there is nothing at a path, not even a link without a target.
pub(super) fn is_missing(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Returns true for the folder of a client stack of Simple Container: it has a `client.yaml` and no `server.yaml`.
pub(super) fn is_client_stack(folder: &Path) -> bool {
    is_missing(&folder.join("server.yaml")) && folder.join("client.yaml").is_file()
}

/// Returns the name of a file in the same folder that differs from a missing one by its case or extension: `server.yml`.
pub(super) fn other_spelling(path: &Path) -> Option<String> {
    let stem = path.file_stem()?.to_str()?;
    let names = list_paths(path.parent()?).into_iter().filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
    names.into_iter().find(|name| name.split('.').next().is_some_and(|other| other.eq_ignore_ascii_case(stem)))
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
    use super::*;

    #[test]
    fn non_utf8_file_is_rejected_with_position_of_first_invalid_byte() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("server.yaml");
        let mut sources = SourceFiles::default();
        for start in ["", "\u{feff}"] {
            fs::write(&file, [start.as_bytes(), b"a: \xc3\xbc\nb: \xfc\xff\n"].concat()).unwrap();
            let error = read(&file).unwrap_err();
            assert!(!error.is_missing());
            let found = error.not_utf8(Code("file"), "server.yaml", Sensitivity::Public, &mut sources).unwrap();
            let position = sources.position(found.span.unwrap());
            assert_eq!((found.summary.as_str(), position.line, position.column), ("the file is not UTF-8", 2, 4));
            assert_eq!(sources.slice(found.span.unwrap()), "\u{fffd}");
        }
    }
}
