//! Temporary files that are renamed to their place once they are complete, and those that killed processes have left.
//!
//! A process that writes a temporary file keeps a shared lock (flock(2)) on the folder meanwhile. The kernel ends the lock
//! with the process, also if it is killed, and regardless of PID namespaces. A process that gets the exclusive lock is
//! therefore the only one that writes there, and removes the temporary files of others.
//!
//! Locks of other machines are not certain to be visible: on a file system that may be shared with some, files go once they
//! are a day old.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::calls;
use super::scratch::{RANDOM_CHARACTERS, SEARCHES};

/// Prefix of the names of temporary files. No other program gives such names.
pub const TEMPORARY_PREFIX: &str = ".tmp-sc-";
/// Age from which a temporary file is abandoned in any case. A process renames or removes its file within moments.
const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);
/// Number of attempts to lock a folder, and the time between them.
const ATTEMPTS: usize = 100;
const PAUSE: Duration = Duration::from_millis(5);
/// Number of characters of a UUID with hyphens.
const UUID_CHARACTERS: usize = 36;
/// Kinds of file systems (`f_type` of statfs(2)) of which every process that can use them has the same kernel: ext2 to 4,
/// XFS, Btrfs, F2FS, ZFS, bcachefs, tmpfs, ramfs, overlayfs.
const LOCAL: [i64; 9] =
    [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x2fc1_2fc1, 0xca45_1a4e, 0x0102_1994, 0x8584_58f6, 0x794c_7630];

/// Lock on a folder in which this process writes temporary files. Other processes remove none of them until it is dropped.
#[derive(Debug)]
pub struct TemporaryFiles {
    /// `None`: the file system may be shared with other machines, or has no locks.
    _lock: Option<File>,
}

impl TemporaryFiles {
    /// Locks a folder, and removes what killed processes have left in it, at most once a minute. Errors are ignored: the
    /// files that remain do no harm.
    pub fn begin(folder: &Path) -> Self {
        let opened = open_folder(folder).ok().filter(is_local);
        if SEARCHES.begin(folder, TEMPORARY_PREFIX, Instant::now()) {
            remove_abandoned(folder, opened.as_ref());
        }
        // Another process that removes files now finds none of this one.
        Self { _lock: opened.filter(lock_shared) }
    }
}

/// Takes the shared lock. Another process has the exclusive one for moments only, unless it means harm, and then the file
/// is written without the lock.
fn lock_shared(folder: &File) -> bool {
    for _ in 0..ATTEMPTS {
        match folder.try_lock_shared() {
            Ok(()) => return true,
            // Polls: a wait in flock(2) has no limit.
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
            Err(TryLockError::Error(_)) => return false,
        }
    }
    false
}

/// Removes the temporary files of a folder that no process is writing.
fn remove_abandoned(folder: &Path, opened: Option<&File>) {
    let is_alone = opened.is_some_and(|opened| opened.try_lock().is_ok());
    remove_temporary_files(folder, if is_alone { None } else { Some(SystemTime::now()) });
}

/// Removes the temporary files of a folder: all, or those that are a day old at a time.
fn remove_temporary_files(folder: &Path, abandoned_at: Option<SystemTime>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if !is_file || !entry.file_name().to_str().is_some_and(is_temporary) {
            continue;
        }
        let path = entry.path();
        if abandoned_at.is_none_or(|now| is_day_old(&path, now)) {
            calls::remove_file(&path).ok();
        }
    }
}

/// Returns whether a file was last changed a day before a time.
pub fn is_day_old(path: &Path, now: SystemTime) -> bool {
    let modified = fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
    modified.is_ok_and(|modified| now.duration_since(modified).is_ok_and(|age| age > ABANDONED_AFTER))
}

/// Returns `true` for the name of a temporary file: the prefix, and random characters or a UUID. That of a sidecar has the
/// suffix `.attrs`.
fn is_temporary(name: &str) -> bool {
    let bare = name.strip_suffix(".attrs").unwrap_or(name);
    bare.strip_prefix(TEMPORARY_PREFIX).is_some_and(|rest| {
        let is_random = rest.len() == RANDOM_CHARACTERS && rest.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let is_uuid =
            rest.len() == UUID_CHARACTERS && rest.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        is_random || is_uuid
    })
}

/// Returns whether the file system is one that other machines cannot use at the same time.
fn is_local(folder: &File) -> bool {
    let Ok(found) = rustix::fs::fstatfs(folder) else { return false };
    #[allow(clippy::unnecessary_cast, clippy::cast_lossless, reason = "the type depends on the platform")]
    let kind = found.f_type as i64;
    // Some platforms sign the number.
    LOCAL.contains(&(kind & 0xffff_ffff))
}

#[expect(clippy::disallowed_methods, reason = "a folder is opened, not a file")]
fn open_folder(folder: &Path) -> io::Result<File> {
    File::open(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        names.iter().for_each(|name| fs::write(folder.path().join(name), "").unwrap());
        folder
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    const UUID: &str = ".tmp-sc-0aa1a111-1111-4111-8111-111111111111";

    #[test]
    fn temporary_files_of_killed_processes_are_removed_and_no_others() {
        let sidecar = format!("{UUID}.attrs");
        let others = [".tmp-a1B2c3", ".tmp-sc-a1B2c", ".tmp-sc-notes-of-mine", "state.json", "tmp-sc-a1B2c3"];
        let folder = folder_with(&[&[".tmp-sc-a1B2c3", UUID, &sidecar], &others[..]].concat());
        fs::create_dir(folder.path().join(".tmp-sc-folder")).unwrap();
        drop(TemporaryFiles::begin(folder.path()));
        let mut kept = [&[".tmp-sc-folder"], &others[..]].concat();
        kept.sort_unstable();
        assert_eq!(names(folder.path()), kept);
    }

    /// Shows: state.md#files "it removes the temporary files (`.tmp-sc-…`) of killed ones"
    #[test]
    fn file_of_a_live_process_stays_until_its_lock_ends() {
        let folder = folder_with(&[]);
        let live = TemporaryFiles::begin(folder.path());
        fs::write(folder.path().join(UUID), "").unwrap();
        let search = || remove_abandoned(folder.path(), open_folder(folder.path()).ok().as_ref());
        search();
        assert_eq!(names(folder.path()), [UUID]);
        drop(live);
        search();
        assert_eq!(names(folder.path()), [""; 0]);
    }

    #[test]
    fn without_the_lock_only_files_of_yesterday_are_removed() {
        let folder = folder_with(&[UUID]);
        remove_abandoned(folder.path(), None);
        assert_eq!(names(folder.path()), [UUID]);
        remove_temporary_files(folder.path(), Some(SystemTime::now() + ABANDONED_AFTER + Duration::from_secs(60)));
        assert_eq!(names(folder.path()), [""; 0]);
    }
}
