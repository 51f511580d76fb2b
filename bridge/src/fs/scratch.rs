//! Folders for what is being made: gone when their owner is done with them, and swept by the next one if it died.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use super::{PathError, create_folders};

/// What the names of such folders begin with.
const PREFIX: &str = "work-";
/// How old a folder is that its owner has certainly locked.
const SETTLED: Duration = Duration::from_secs(60);

/// A folder that nobody else can look into. Dropping it removes it with all that is in it.
///
/// # Invariants
/// It is locked as long as its owner lives, however that dies: what is not locked belongs to nobody.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
    _lock: File,
}

impl Scratch {
    /// Makes one within a folder, which is created where it is missing, and removes those that dead processes left there.
    ///
    /// # Errors
    /// [`PathError`].
    pub fn new(parent: &Path) -> Result<Self, PathError> {
        create_folders(parent)?;
        sweep(parent, SETTLED);
        let mut options = tempfile::Builder::new();
        let folder = options.prefix(PREFIX).permissions(Permissions::from_mode(0o700)).tempdir_in(parent);
        let folder = folder.map_err(PathError::of("create a folder in", parent))?;
        let lock = File::open(folder.path()).and_then(|lock| lock.lock().map(|()| lock));
        let lock = lock.map_err(PathError::of("lock", folder.path()))?;
        Ok(Self { folder, _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes what dead processes left. What cannot be removed is left: it is in nobody's way.
fn sweep(parent: &Path, settled: Duration) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        let age = entry.metadata().and_then(|metadata| metadata.modified()).ok().and_then(|at| at.elapsed().ok());
        if !is_ours || age.is_none_or(|age| age < settled) {
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
    fn a_folder_goes_with_its_owner() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(&parent.path().join("new")).unwrap();
        fs::write(scratch.path().join("file"), "x").unwrap();
        assert_eq!(fs::metadata(scratch.path()).unwrap().permissions().mode() & 0o777, 0o700);
        let path = scratch.path().to_owned();
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn what_a_dead_process_left_is_swept_and_what_lives_is_not() {
        let parent = tempfile::tempdir().unwrap();
        let living = Scratch::new(parent.path()).unwrap();
        let dead = parent.path().join("work-dead");
        let strange = parent.path().join("strange");
        fs::create_dir(&dead).unwrap();
        fs::create_dir(&strange).unwrap();
        sweep(parent.path(), SETTLED);
        assert!(dead.exists(), "too young to be certain");
        sweep(parent.path(), Duration::ZERO);
        assert!(!dead.exists() && living.path().exists() && strange.exists());
    }
}
