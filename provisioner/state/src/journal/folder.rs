//! Folder of the journals of a stack.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use bridge::fs::FileError;

use super::error::JournalError;
use crate::store::StackReference;

/// Returns the folder of the journals of a stack.
pub(crate) fn folder(root: &Path, stack: &StackReference) -> PathBuf {
    root.join(".sc/journal").join(stack.project()).join(stack.stack())
}

/// Returns the paths of the journals of a stack, sorted by name. Runs that ended normally have removed theirs.
pub(crate) fn list(root: &Path, stack: &StackReference) -> Result<Vec<PathBuf>, JournalError> {
    let folder = folder(root, stack);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(FileError::of("list", &folder)(error).into()),
    };
    let mut journals = Vec::new();
    for entry in entries {
        journals.push(entry.map_err(FileError::of("list", &folder))?.path());
    }
    journals.sort();
    Ok(journals)
}

/// Removes a journal whose records are saved; a missing file is no error.
pub(crate) fn remove(path: &Path) -> Result<(), JournalError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(FileError::of("remove", path)(error).into()),
        _ => Ok(()),
    }
}
