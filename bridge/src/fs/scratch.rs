//! Temporary folders for work in progress: removed on drop, or by the next process if their owner was killed.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{FileError, create_private_folder, create_private_folders, is_own_file, is_private_folder};

/// Prefix of the names of scratch folders in a cache.
const PREFIX: &str = "work-";
/// Length of the rest of a name.
pub const RANDOM_CHARACTERS: usize = 6;
/// File in a scratch folder. A folder without it is never removed.
const MARK: &str = ".sc-scratch";
/// Minimum age of a folder before its removal. The owner of an older folder has certainly locked it.
const MIN_AGE: Duration = Duration::from_secs(60);
/// Minimum time between two searches of a folder, which may have many entries.
const SEARCH_PAUSE: Duration = MIN_AGE;

/// Temporary folder with mode 0700. Dropping it removes the folder and its content.
///
/// # Invariants
/// The owner holds a file lock on the folder until it exits or is killed: a folder without lock has no owner. The folder
/// contains a mark, a file that other programs do not create.
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
        Self::with_prefix(parent, PREFIX)
    }

    /// Same as [`ScratchFolder::new`], in the folder that this account has for scratch folders in an existing folder that
    /// other programs use, such as `/tmp`. If the name of that folder is taken by another account, or by a link or a file,
    /// the scratch folder lies beside it, and stays if this process is killed.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn in_shared(shared: &Path, prefix: &str) -> Result<Self, FileError> {
        let own = shared.join(shared_name());
        if shared.is_dir() && create_private_folder(&own).is_ok() {
            return Self::with_prefix(&own, prefix);
        }
        Self::create(shared, &format!("{}-{prefix}", shared_name()))
    }

    /// Removes the scratch folders of dead processes that [`ScratchFolder::in_shared`] has created. A folder is locked before it has its
    /// mark, so that the age of a marked one does not matter.
    pub fn remove_abandoned(shared: &Path, prefix: &str) {
        let own = shared.join(shared_name());
        if is_private_folder(&own).unwrap_or_default() {
            remove_abandoned(&own, prefix, Duration::ZERO);
        }
    }

    fn with_prefix(parent: &Path, prefix: &str) -> Result<Self, FileError> {
        if SEARCHES.begin(parent, prefix, Instant::now()) {
            remove_abandoned(parent, prefix, MIN_AGE);
        }
        Self::create(parent, prefix)
    }

    #[expect(clippy::disallowed_methods, reason = "the folder was created just now")]
    fn create(parent: &Path, prefix: &str) -> Result<Self, FileError> {
        let mut options = tempfile::Builder::new();
        let folder = options
            .prefix(prefix)
            .rand_bytes(RANDOM_CHARACTERS)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(parent);
        let folder = folder.map_err(FileError::of("create a folder in", parent))?;
        let lock = File::open(folder.path()).and_then(|lock| lock.lock().map(|()| lock));
        let lock = lock.map_err(FileError::of("lock", folder.path()))?;
        let mark = folder.path().join(MARK);
        File::create_new(&mark).map_err(FileError::of("create", &mark))?;
        Ok(Self { folder, _lock: lock })
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Searches of this process. Static, because they depend on the folders of the system alone, and not on who creates one.
pub(super) static SEARCHES: Searches = Searches(Mutex::new(BTreeMap::new()));

/// Times of the last searches, by parent and prefix.
pub(super) struct Searches(Mutex<BTreeMap<(PathBuf, String), Instant>>);

impl Searches {
    /// Returns true if the last search is longer ago than [`SEARCH_PAUSE`], and records that another one begins now.
    pub(super) fn begin(&self, parent: &Path, prefix: &str, now: Instant) -> bool {
        let (mut last, key) =
            (self.0.lock().unwrap_or_else(PoisonError::into_inner), (parent.to_owned(), prefix.to_owned()));
        let is_due = last.get(&key).is_none_or(|last| now.duration_since(*last) >= SEARCH_PAUSE);
        if is_due {
            last.insert(key, now);
        }
        is_due
    }
}

/// Returns the name of the folder that this account has for scratch folders in a shared folder.
pub fn shared_name() -> String {
    format!("sc-{}", rustix::process::geteuid().as_raw())
}

/// Returns whether a name is one that [`ScratchFolder`] makes.
fn is_scratch_name(name: &str, prefix: &str) -> bool {
    let random = name.strip_prefix(prefix);
    random.is_some_and(|rest| rest.len() == RANDOM_CHARACTERS && rest.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// Removes the marked folders of dead processes. Ignores errors: a remaining folder does no harm.
#[expect(clippy::disallowed_methods, reason = "only folders are opened")]
fn remove_abandoned(parent: &Path, prefix: &str, min_age: Duration) {
    let account = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_name().to_str().is_some_and(|name| is_scratch_name(name, prefix)) {
            continue;
        }
        let Ok(metadata) = entry.metadata() else { continue };
        let is_ours = metadata.is_dir() && metadata.uid() == account && is_own_file(&entry.path().join(MARK));
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

    fn create_marked(folder: &Path) {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join(MARK), "").unwrap();
    }

    /// Shows: hosting.md#sandbox "That is done only in `sc-UID`, and only with folders whose names `sc` makes"
    #[test]
    fn marked_folder_of_a_dead_process_is_removed_and_no_other() {
        let parent = tempfile::tempdir().unwrap();
        let locked = ScratchFolder::new(parent.path()).unwrap();
        let [dead, other_name, other_prefix, other_random, unmarked, linked] =
            ["work-aB3xY9", "work-mine", "other-aB3xY9", "work-aB3.Y9", "work-aaaaaa", "work-bbbbbb"]
                .map(|name| parent.path().join(name));
        for folder in [&dead, &other_name, &other_prefix, &other_random] {
            create_marked(folder);
        }
        fs::create_dir(&unmarked).unwrap();
        fs::create_dir(&linked).unwrap();
        std::os::unix::fs::symlink(dead.join(MARK), linked.join(MARK)).unwrap();
        remove_abandoned(parent.path(), PREFIX, MIN_AGE);
        assert!(dead.exists(), "younger than the minimum age");
        remove_abandoned(parent.path(), PREFIX, Duration::ZERO);
        assert!(!dead.exists());
        for kept in [locked.path(), &other_name, &other_prefix, &other_random, &unmarked, &linked] {
            assert!(kept.exists(), "{}", kept.display());
        }
    }

    /// A folder of the user whose name looks like one of ours.
    ///
    /// Shows: hosting.md#sandbox "That is done only in `sc-UID`, and only with folders whose names `sc` makes"
    #[test]
    fn shared_folder_keeps_folders_of_others_with_our_names() {
        let shared = tempfile::tempdir().unwrap();
        let own = shared.path().join(shared_name());
        drop(ScratchFolder::in_shared(shared.path(), "plugin-").unwrap());
        let killed = own.join("plugin-aB3xY9");
        let others = ["plugin-aB3xY9", "sc-plugin-aB3xY9", "sc-plugin-acme"].map(|name| shared.path().join(name));
        let long_ago = std::time::SystemTime::now() - Duration::from_secs(3600);
        for folder in others.iter().chain([&killed]) {
            create_marked(folder);
            File::open(folder).unwrap().set_modified(long_ago).unwrap();
        }
        SEARCHES.0.lock().unwrap().retain(|(parent, _), _| *parent != own);
        let scratch = ScratchFolder::in_shared(shared.path(), "plugin-").unwrap();
        assert_eq!((scratch.path().parent(), killed.exists()), (Some(&*own), false));
        assert!(others.iter().all(|folder| folder.exists()));
        assert_eq!(fs::metadata(&own).unwrap().permissions().mode() & 0o777, 0o700);
    }

    /// Shows: hosting.md#sandbox "That is done only in `sc-UID`, and only with folders whose names `sc` makes"
    #[test]
    fn own_folder_that_others_can_write_to_or_that_is_a_link_is_not_used() {
        for is_link in [false, true] {
            let shared = tempfile::tempdir().unwrap();
            let (taken, target) = (shared.path().join(shared_name()), shared.path().join("target"));
            fs::create_dir(&target).unwrap();
            if is_link {
                std::os::unix::fs::symlink(&target, &taken).unwrap();
            } else {
                fs::create_dir(&taken).unwrap();
                fs::set_permissions(&taken, Permissions::from_mode(0o777)).unwrap();
            }
            let scratch = ScratchFolder::in_shared(shared.path(), "plugin-").unwrap();
            assert_eq!(scratch.path().parent(), Some(shared.path()));
            assert_eq!(fs::read_dir(&taken).unwrap().count(), 0);
        }
    }
}
