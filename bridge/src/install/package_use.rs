//! Use of packages in the cache: a mark of each package has the time of its last use, and is locked while a process uses it.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::fs::{ScratchFolder, create_private_folders, without_waiting};
use crate::plugin::Sha256Digest;

/// Name of the folder of the cache with the folders of packages.
pub(super) const PACKAGES: &str = "packages";
/// Name of the folder of the marks.
pub(super) const USES: &str = "uses";
/// Age of a mark from which on it is renewed: the time of a use is not needed more precisely.
const RENEWED_AFTER: Duration = Duration::from_secs(60 * 60);

/// Returns the folder of a cache that has the folders of all packages.
pub fn package_folders(cache: &Path) -> PathBuf {
    cache.join(PACKAGES)
}

/// Use of a package, which is not removed while this value exists.
#[derive(Debug)]
pub(super) struct PackageUse {
    _mark: File,
}

impl PackageUse {
    /// Begins the use of a package. Returns `None` in a cache that cannot be written, from which nobody removes packages either.
    pub(super) fn begin(cache: &Path, package: Sha256Digest) -> Option<Self> {
        let mark = open_mark(cache, package).ok()?;
        // Waits for the removal of a package, which is a rename.
        mark.lock_shared().ok()?;
        let is_old = |time: SystemTime| time.elapsed().unwrap_or_default() >= RENEWED_AFTER;
        if mark.metadata().and_then(|metadata| metadata.modified()).is_ok_and(is_old) {
            mark.set_modified(SystemTime::now()).ok();
        }
        Some(Self { _mark: mark })
    }
}

/// Program that was built from the files of a plugin, which stays while this value exists.
#[derive(Debug)]
pub(super) enum BuiltProgram {
    /// Program in a private folder, which is removed with this value.
    Private { _folder: ScratchFolder },
    /// Program in the cache.
    Kept { _package_use: Option<PackageUse> },
}

/// Mark of a package that nobody uses, locked for its removal.
#[derive(Debug)]
pub(super) struct UnusedPackage {
    _mark: File,
}

impl UnusedPackage {
    /// Takes the mark of a package; `None` if the package is used. A package without a mark, as earlier versions of this program have left
    /// it, gets one with the time of its last use.
    pub(super) fn take(cache: &Path, package: Sha256Digest, last_used: SystemTime) -> io::Result<Option<Self>> {
        let is_new = !mark_path(cache, package).exists();
        let mark = open_mark(cache, package)?;
        match mark.try_lock() {
            Ok(()) => {
                if is_new {
                    mark.set_modified(last_used).ok();
                }
                Ok(Some(Self { _mark: mark }))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// Returns the time of the last use of a package; that of its folder without a mark, as earlier versions of this program have left it.
pub(super) fn last_used(cache: &Path, package: Sha256Digest, folder: &Path) -> io::Result<SystemTime> {
    let marked = fs::metadata(mark_path(cache, package)).and_then(|metadata| metadata.modified());
    marked.or_else(|_| fs::metadata(folder)?.modified())
}

/// Returns the path of the mark of a package.
pub(super) fn mark_path(cache: &Path, package: Sha256Digest) -> PathBuf {
    cache.join(USES).join(package.to_hex())
}

fn open_mark(cache: &Path, package: Sha256Digest) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).truncate(false).write(true).mode(0o600);
    without_waiting(&mut options);
    let path = mark_path(cache, package);
    options.open(&path).or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            create_private_folders(&cache.join(USES)).map_err(|error| error.source)?;
            options.open(&path)
        }
        _ => Err(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_in_use_cannot_be_taken() {
        let cache = tempfile::tempdir().unwrap();
        let package = Sha256Digest::of("package");
        let day_ago = SystemTime::now() - Duration::from_secs(86_400);
        let take = |package| UnusedPackage::take(cache.path(), package, day_ago).unwrap();
        let uses = [PackageUse::begin(cache.path(), package), PackageUse::begin(cache.path(), package)];
        assert!(uses.iter().all(Option::is_some));
        assert!(take(package).is_none());
        let other = Sha256Digest::of("other");
        assert!(take(other).is_some());
        assert_eq!(last_used(cache.path(), other, cache.path()).unwrap(), day_ago, "a look is no use");
        drop(uses);
        assert!(take(package).is_some());
    }

    #[test]
    fn old_mark_is_renewed_by_a_use() {
        let cache = tempfile::tempdir().unwrap();
        let package = Sha256Digest::of("package");
        drop(PackageUse::begin(cache.path(), package));
        let used = || last_used(cache.path(), package, cache.path()).unwrap();
        let day_ago = SystemTime::now() - Duration::from_secs(86_400);
        let mark = File::options().write(true).open(mark_path(cache.path(), package)).unwrap();
        mark.set_modified(day_ago).unwrap();
        assert_eq!(used(), day_ago);
        drop(PackageUse::begin(cache.path(), package));
        assert!(used().elapsed().unwrap() < RENEWED_AFTER);
    }
}
