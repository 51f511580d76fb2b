//! Temporary folders for work in progress: removed on drop, or by the next process if their owner was killed.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{FileError, create_private_folders};

/// Prefix of the names of scratch folders in a folder of their own.
const PREFIX: &str = "work-";
/// Length of the rest of a name.
pub const RANDOM_CHARACTERS: usize = 6;
/// Minimum age of a folder before its removal. The owner of an older folder has certainly locked it.
const MIN_AGE: Duration = Duration::from_secs(60);
/// Minimum time between two searches of a folder, which may have many entries.
const SEARCH_PAUSE: Duration = MIN_AGE;

/// Temporary folder with mode 0700. Dropping it removes the folder and its content.
///
/// # Invariants
/// The owner holds a file lock on the folder until it exits or is killed: a folder without lock has no owner.
#[derive(Debug)]
pub struct ScratchFolder {
    folder: TempDir,
    _lock: File,
}

impl ScratchFolder {
    /// Creates a scratch folder below `parent`, which is created if it is missing. Removes scratch folders of dead
    /// processes from `parent`, at most once a minute.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn new(parent: &Path) -> Result<Self, FileError> {
        create_private_folders(parent)?;
        Self::in_shared(parent, PREFIX)
    }

    /// Same as [`ScratchFolder::new`], in an existing folder that other programs use, such as `/tmp`. Only folders of this
    /// account whose names begin with `prefix` are taken for scratch folders.
    ///
    /// # Errors
    /// [`FileError`].
    #[expect(clippy::disallowed_methods, reason = "the folder was created just now")]
    pub fn in_shared(parent: &Path, prefix: &str) -> Result<Self, FileError> {
        if SEARCHES.begin(parent, prefix, Instant::now()) {
            remove_abandoned(parent, prefix, MIN_AGE);
        }
        let mut options = tempfile::Builder::new();
        let folder = options
            .prefix(prefix)
            .rand_bytes(RANDOM_CHARACTERS)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(parent);
        let folder = folder.map_err(FileError::of("create a folder in", parent))?;
        let lock = File::open(folder.path()).and_then(|lock| lock.lock().map(|()| lock));
        let lock = lock.map_err(FileError::of("lock", folder.path()))?;
        Ok(Self { folder, _lock: lock })
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Searches of this process. Static, because they depend on the folders of the system alone, and not on who creates one.
static SEARCHES: Searches = Searches(Mutex::new(BTreeMap::new()));

/// Times of the last searches, by parent and prefix.
struct Searches(Mutex<BTreeMap<(PathBuf, String), Instant>>);

impl Searches {
    /// Returns true if the last search is longer ago than [`SEARCH_PAUSE`], and records that another one begins now.
    fn begin(&self, parent: &Path, prefix: &str, now: Instant) -> bool {
        let (mut last, key) =
            (self.0.lock().unwrap_or_else(PoisonError::into_inner), (parent.to_owned(), prefix.to_owned()));
        let is_due = last.get(&key).is_none_or(|last| now.duration_since(*last) >= SEARCH_PAUSE);
        if is_due {
            last.insert(key, now);
        }
        is_due
    }
}

/// Removes the folders of dead processes. Ignores errors: a remaining folder does no harm.
#[expect(clippy::disallowed_methods, reason = "only folders are opened")]
fn remove_abandoned(parent: &Path, prefix: &str, min_age: Duration) {
    let account = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix)) {
            continue;
        }
        let Ok(metadata) = entry.metadata() else { continue };
        let is_ours = metadata.is_dir() && metadata.uid() == account;
        let age = metadata.modified().ok().and_then(|at| at.elapsed().ok());
        if !is_ours || age.is_none_or(|age| age < min_age) {
            continue;
        }
        let Ok(folder) = File::open(entry.path()) else { continue };
        if folder.try_lock().is_ok() {
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_scratch_folder_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = ScratchFolder::new(&parent.path().join("new")).unwrap();
        fs::write(scratch.path().join("file"), "x").unwrap();
        assert_eq!(fs::metadata(scratch.path()).unwrap().permissions().mode() & 0o777, 0o700);
        let path = scratch.path().to_owned();
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn folder_is_searched_once_in_a_while() {
        let (searches, start) = (Searches(Mutex::default()), Instant::now());
        let begin = |parent: &str, prefix, after| searches.begin(Path::new(parent), prefix, start + after);
        assert!(begin("/a", "x", Duration::ZERO));
        assert!(!begin("/a", "x", SEARCH_PAUSE / 2));
        assert!(begin("/a", "y", SEARCH_PAUSE / 2) && begin("/b", "x", SEARCH_PAUSE / 2));
        assert!(begin("/a", "x", SEARCH_PAUSE) && !begin("/a", "x", SEARCH_PAUSE * 3 / 2));
    }

    #[test]
    fn folder_of_a_dead_process_is_removed_and_a_locked_one_is_kept() {
        let parent = tempfile::tempdir().unwrap();
        let locked = ScratchFolder::new(parent.path()).unwrap();
        let dead = parent.path().join("work-dead");
        let unrelated = parent.path().join("unrelated");
        fs::create_dir(&dead).unwrap();
        fs::create_dir(&unrelated).unwrap();
        remove_abandoned(parent.path(), PREFIX, MIN_AGE);
        assert!(dead.exists(), "younger than the minimum age");
        remove_abandoned(parent.path(), PREFIX, Duration::ZERO);
        assert!(!dead.exists() && locked.path().exists() && unrelated.exists());
    }
}
