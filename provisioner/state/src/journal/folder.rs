//! Folders of the journals of a stack: that of the backend, and fallbacks for a backend that cannot be written.

use std::borrow::Cow;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use bridge::fs::calls::remove_file;
use bridge::fs::{
    FileError, create_private_folder, create_private_folders, is_own_file, is_private_folder, withdraw_access,
};

use super::error::JournalError;
use crate::digest::digest;
use crate::store::StackReference;

/// Prefix of files that are being written.
const TEMPORARY: &str = ".tmp-";
/// Number of hexadecimal digits that name a backend in a fallback folder.
const BACKEND_DIGITS: usize = 16;

/// Folders for the journals of the stacks of a backend.
#[derive(Clone, Debug)]
pub struct JournalFolders {
    backend: PathBuf,
    /// Private folders of the user, and the name of the backend in them.
    fallbacks: Vec<PathBuf>,
    name: String,
    is_remote: bool,
}

/// Place of a journal: one of the folders of [`JournalFolders`]. A later place is used if the earlier ones fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct JournalPlace(usize);

impl JournalPlace {
    /// The folder of the backend.
    pub(crate) const BACKEND: Self = Self(0);
}

/// Files of the journal of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JournalFiles {
    /// The journal.
    pub(crate) path: PathBuf,
    /// `true` if it is in a fallback folder.
    pub(crate) is_fallback: bool,
    /// Older copies of it, which lack its last records.
    pub(super) older: Vec<PathBuf>,
}

impl JournalFolders {
    /// Creates the folders of a backend: journals are in `.sc/journal` of this folder.
    pub fn of_backend(folder: impl Into<PathBuf>) -> Self {
        Self { backend: folder.into(), fallbacks: Vec::new(), name: String::new(), is_remote: false }
    }

    /// Creates the folders of a store that is not on this machine: journals are below a folder of this machine, in one for
    /// the location of the store.
    pub fn of_remote_store(folder: &Path, location: &str) -> Self {
        Self { is_remote: true, ..Self::of_backend(folder.join("stores").join(name_of(location))) }
    }

    /// Returns `true` if the store is not on this machine, so that its runs have journals in it, too.
    pub fn is_remote(&self) -> bool {
        self.is_remote
    }

    /// Adds private folders of the user, in which a run writes its journal if it cannot write to the backend. A run of
    /// the same user finds it there by the canonical path of the backend. Folders that belong to another user, or that
    /// others can write to, are not used.
    #[must_use]
    pub fn with_fallbacks(self, canonical_backend: &Path, folders: Vec<PathBuf>) -> Self {
        Self { fallbacks: folders, name: name_of(&canonical_backend.to_string_lossy()), ..self }
    }

    /// Returns the places, in the order in which a run tries them.
    pub(super) fn places(&self) -> impl DoubleEndedIterator<Item = JournalPlace> + use<> {
        (0..=self.fallbacks.len()).map(JournalPlace)
    }

    pub(super) fn folder(&self, place: JournalPlace, stack: &StackReference) -> PathBuf {
        let root = match self.fallback(place) {
            None => self.backend.join(".sc/journal"),
            Some(private) => private.join("journal").join(&self.name),
        };
        root.join(stack.project()).join(stack.stack())
    }

    /// Creates the folder of the journals of a stack, with access for the current user only. Removes the permissions of
    /// other users from an existing folder.
    pub(super) fn create(&self, place: JournalPlace, stack: &StackReference) -> Result<PathBuf, FileError> {
        let folder = self.folder(place, stack);
        if let Some(private) = self.fallback(place) {
            create_private_folder(private)?;
        }
        create_private_folders(&folder)?;
        withdraw_access(&folder)?;
        Ok(folder)
    }

    /// Removes a journal from a place; a missing file is no error.
    pub(super) fn remove(&self, place: JournalPlace, stack: &StackReference, name: &str) -> Result<(), JournalError> {
        match self.fallback(place) {
            Some(private) if !is_private_folder(private)? => Ok(()),
            _ => remove(&self.folder(place, stack).join(name)),
        }
    }

    fn fallback(&self, place: JournalPlace) -> Option<&Path> {
        self.fallbacks.get(place.0.checked_sub(1)?).map(PathBuf::as_path)
    }

    /// Returns the files in the folder of a stack. Others cannot have put a file into a fallback folder.
    fn files(&self, place: JournalPlace, stack: &StackReference) -> Result<Vec<PathBuf>, FileError> {
        let fallback = self.fallback(place);
        if let Some(private) = fallback
            && !is_private_folder(private)?
        {
            return Ok(Vec::new());
        }
        let folder = self.folder(place, stack);
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(FileError::of("list", &folder)(error)),
        };
        let mut files = Vec::new();
        for entry in entries {
            let entry = entry.map_err(FileError::of("list", &folder))?;
            let is_temporary = entry.file_name().to_string_lossy().starts_with(TEMPORARY);
            if !is_temporary && (fallback.is_none() || is_own_file(&entry.path())) {
                files.push(entry.path());
            }
        }
        Ok(files)
    }
}

/// Returns the files of the journals of a stack, sorted by name. Runs that ended normally have removed theirs.
pub(super) fn list_files(folders: &JournalFolders, stack: &StackReference) -> Result<Vec<JournalFiles>, JournalError> {
    let mut journals: Vec<JournalFiles> = Vec::new();
    // A run writes its journal anew in a later place, under the same name, if an earlier place fails.
    for place in folders.places().rev() {
        for path in folders.files(place, stack)? {
            match journals.iter_mut().find(|journal| journal.path.file_name() == path.file_name()) {
                Some(newer) => newer.older.push(path),
                None => {
                    let is_fallback = place != JournalPlace::BACKEND;
                    journals.push(JournalFiles { path, is_fallback, older: Vec::new() });
                }
            }
        }
    }
    journals.sort_by(|a, b| a.path.file_name().cmp(&b.path.file_name()));
    Ok(journals)
}

impl JournalFiles {
    /// Returns the id of the run.
    pub(super) fn run(&self) -> Cow<'_, str> {
        self.path.file_name().unwrap_or_default().to_string_lossy()
    }

    /// Removes a journal whose records are saved; a missing file is no error.
    ///
    /// # Errors
    /// [`JournalError::Path`].
    pub(crate) fn remove(&self) -> Result<(), JournalError> {
        // The older copies first: alone, they would be taken for the journal.
        self.older.iter().chain([&self.path]).try_for_each(|path| remove(path))
    }
}

/// Returns the name of a backend in a folder that has the journals of several.
fn name_of(location: &str) -> String {
    let mut name = digest(location);
    name.truncate(BACKEND_DIGITS);
    name
}

/// Removes a file; a missing file is no error.
fn remove(path: &Path) -> Result<(), JournalError> {
    match remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(FileError::of("remove", path)(error).into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn folders_of_journals_are_accessible_to_their_owner_only() {
        let root = tempfile::tempdir().unwrap();
        let stack = StackReference::new("tank", "reef").unwrap();
        let folders = JournalFolders::of_backend(root.path());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let folder = folders.create(JournalPlace::BACKEND, &stack).unwrap();
        for created in [".sc", ".sc/journal", ".sc/journal/tank", ".sc/journal/tank/reef"] {
            assert_eq!(mode(&root.path().join(created)), 0o700, "{created}");
        }
        // The folder of an earlier version.
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        folders.create(JournalPlace::BACKEND, &stack).unwrap();
        assert_eq!(mode(&folder), 0o700);
    }
}
