//! Folder for the plain text of a secret file, while an editor has it open: in memory where the system has such a folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bridge::fs::{FileError, ScratchFolder, is_private_folder};

/// Prefix of the names of the folders.
const PREFIX: &str = "secrets-";
/// Folder of the system whose files are in memory.
const SHARED_MEMORY: &str = "/dev/shm";

/// Folder with mode 0700. Dropping it removes it with all that the editor has left in it, such as swap files and backups. The next
/// command removes that of one that was killed.
pub(crate) struct PlaintextFolder {
    pub(crate) scratch: ScratchFolder,
    /// True if its files are in memory, and never on a disk but that of swap space.
    pub(crate) is_in_memory: bool,
}

impl PlaintextFolder {
    /// Creates a folder: in `XDG_RUNTIME_DIR` or in the shared memory of the system, else in the folder of temporary files.
    ///
    /// # Errors
    /// [`FileError`].
    pub(crate) fn new(environment: &BTreeMap<String, String>) -> Result<Self, FileError> {
        for folder in in_memory(environment) {
            if let Ok(scratch) = ScratchFolder::in_shared(&folder, PREFIX) {
                return Ok(Self { scratch, is_in_memory: true });
            }
        }
        Ok(Self { scratch: ScratchFolder::in_shared(&std::env::temp_dir(), PREFIX)?, is_in_memory: false })
    }
}

/// Removes the folders of commands that were killed.
pub(crate) fn remove_abandoned(environment: &BTreeMap<String, String>) {
    let folders = in_memory(environment).into_iter().chain([std::env::temp_dir()]);
    folders.for_each(|folder| ScratchFolder::remove_abandoned(&folder, PREFIX));
}

/// Returns the folders whose files are in memory.
fn in_memory(environment: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let runtime = environment.get("XDG_RUNTIME_DIR").map(PathBuf::from);
    let runtime = runtime.filter(|folder| folder.is_absolute() && is_private_folder(folder).unwrap_or_default());
    let shared = Some(Path::new(SHARED_MEMORY)).filter(|folder| folder.is_dir()).map(Path::to_owned);
    runtime.into_iter().chain(shared).collect()
}
