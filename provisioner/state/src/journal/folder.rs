//! The folder that holds the journals of a stack.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use bridge::fs::PathError;

use super::error::JournalError;
use crate::store::StackReference;

/// The folder of the journals of a stack.
pub(crate) fn folder(root: &Path, stack: &StackReference) -> PathBuf {
    root.join(".sc/journal").join(stack.project()).join(stack.stack())
}

/// The journals that runs of a stack left behind, oldest name first.
pub(crate) fn left_behind(root: &Path, stack: &StackReference) -> Result<Vec<PathBuf>, JournalError> {
    let folder = folder(root, stack);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(PathError::of("list", &folder)(error).into()),
    };
    let mut journals = Vec::new();
    for entry in entries {
        journals.push(entry.map_err(PathError::of("list", &folder))?.path());
    }
    journals.sort();
    Ok(journals)
}

/// Removes a journal that is settled.
pub(crate) fn remove(path: &Path) -> Result<(), JournalError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(PathError::of("remove", path)(error).into()),
        _ => Ok(()),
    }
}
