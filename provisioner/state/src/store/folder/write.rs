//! Writes of objects, on a condition and with a sidecar.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bridge::fs::{FileError, TemporaryFiles, calls, open_regular, sync_folder};
use md5::{Digest as _, Md5};

use super::super::compression::content_type;
use super::super::layout::{LOCKS, META, ROOT};
use super::super::objects::{
    Durability, Effect, ObjectError, ObjectErrorKind, ObjectVersion, WriteCondition, WriteError,
};
use super::files::{Folder, folder_of, open_folder, remove, sidecar, temporary_path, version_of};

/// Number of attempts to lock the folder for a write on a condition, and the time between them. A process has the lock for
/// the time of a few renames.
const ATTEMPTS: u32 = 2000;
const PAUSE: Duration = Duration::from_millis(5);

/// File under a temporary name. Dropping it removes that name.
struct Temporary {
    path: PathBuf,
    file: File,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        calls::remove_file(&self.path).ok();
    }
}

impl Folder {
    /// Writes a file whole or not at all, after its sidecar: Pulumi's command line does not check the digest in a sidecar, but
    /// it cannot read a file whose sidecar is incomplete.
    ///
    /// Both are complete under temporary names, and on the disk if the durability requests it, before the condition is
    /// checked. For the check and the renames the store is locked, so that no other process that writes on a condition changes
    /// the file between them. Programs that do not take that lock, such as `pulumi`, are kept away by the lock of the stack
    /// only.
    pub(super) fn write(
        &self,
        key: &str,
        content: &[u8],
        condition: &WriteCondition,
        durability: Durability,
    ) -> Result<ObjectVersion, WriteError> {
        let path = self.path_of(key);
        let folder = folder_of(&path);
        self.make_folder(folder)?;
        // An incomplete file in a folder of locks would count as a lock.
        let staging = if key.starts_with(LOCKS) { self.path_of(ROOT) } else { folder.to_owned() };
        self.remove_abandoned_once(&staging);
        let _writing = TemporaryFiles::begin(&staging);
        let _writing_sidecar = (staging != folder).then(|| TemporaryFiles::begin(folder));
        let sidecar_path = sidecar(&path);
        let prepared = match self.sidecars && key.starts_with(ROOT) {
            true => Some(self.prepare(&sidecar_path, folder, sidecar_of(content).as_bytes(), durability)?),
            false => None,
        };
        let written = self.prepare(&path, &staging, content, durability)?;
        let locked = match condition {
            WriteCondition::None => None,
            WriteCondition::Missing | WriteCondition::Unchanged(_) => Some(self.lock_for_condition(&path)?),
        };
        if !is_met(&path, condition)? {
            return Err(WriteError::Condition);
        }
        let version = written.file.metadata().map(|metadata| version_of(&metadata));
        let version = version.map_err(FileError::of("read", &path))?;
        match prepared {
            Some(prepared) => rename(&prepared, &sidecar_path)?,
            None => remove(&sidecar_path)?,
        }
        place(&written, &path, condition)?;
        drop((written, locked));
        if durability == Durability::Immediate {
            let flushed = sync_folder(folder);
            flushed.map_err(|error| ObjectError { effect: Effect::Made, ..error.into() })?;
        }
        self.close_replaced();
        Ok(version)
    }

    /// Writes the content of a file under a temporary name.
    fn prepare(
        &self,
        path: &Path,
        staging: &Path,
        content: &[u8],
        durability: Durability,
    ) -> Result<Temporary, FileError> {
        let temporary = temporary_path(path, staging);
        let file = self.create_new(&temporary).map_err(FileError::of("create a file in", staging))?;
        let temporary = Temporary { path: temporary, file };
        // The error names the target file: the name of the temporary file is meaningless to the user.
        let written = calls::write_all(&temporary.file, path, content).and_then(|()| match durability {
            Durability::Immediate => calls::sync_all(&temporary.file, path),
            Durability::Eventual => Ok(()),
        });
        written.map_err(FileError::of("write", path))?;
        Ok(temporary)
    }

    /// Creates a file with the permissions of the store.
    pub(super) fn create_new(&self, path: &Path) -> io::Result<File> {
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true).mode(self.access.file_mode());
        calls::open(&options, path)
    }

    /// Takes the lock of the operating system (flock(2)) on the metadata of the store, which every store has before it has
    /// anything that is written on a condition except the metadata; without them on the folder of the store, in which no
    /// temporary file is written. A file system without locks has no protection but the locks of the stacks.
    fn lock_for_condition(&self, path: &Path) -> Result<Option<File>, ObjectError> {
        let metadata = self.path_of(META);
        // Over NFS, only a file that is open for writing can be locked.
        let opened = calls::open(fs::OpenOptions::new().read(true).write(true), &metadata);
        let Ok(file) = opened.or_else(|_| open_regular(&metadata)).or_else(|_| open_folder(&self.path)) else {
            return Ok(None);
        };
        for _ in 0..ATTEMPTS {
            match file.try_lock() {
                Ok(()) => return Ok(Some(file)),
                // Polls: a wait in flock(2) has no limit.
                Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
                Err(TryLockError::Error(_)) => return Ok(None),
            }
        }
        let seconds = (PAUSE * ATTEMPTS).as_secs();
        let source = format!("another process has locked {} for {seconds} s", metadata.display()).into();
        let location = path.display().to_string();
        let (kind, effect) = (ObjectErrorKind::Unreachable, Effect::None);
        Err(ObjectError { operation: "write", location, kind, effect, source })
    }
}

fn is_met(path: &Path, condition: &WriteCondition) -> Result<bool, FileError> {
    if *condition == WriteCondition::None {
        return Ok(true);
    }
    let found = match fs::metadata(path) {
        Ok(metadata) => Some(version_of(&metadata)),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(FileError::of("read", path)(error)),
    };
    Ok(match condition {
        WriteCondition::None => true,
        WriteCondition::Missing => found.is_none(),
        WriteCondition::Unchanged(version) => found.as_ref() == Some(version),
    })
}

/// Gives a complete file its name. A link fails if another program has created a file of this name meanwhile; not every file
/// system has links.
fn place(written: &Temporary, path: &Path, condition: &WriteCondition) -> Result<(), WriteError> {
    if *condition == WriteCondition::Missing {
        match calls::hard_link(&written.path, path) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(WriteError::Condition),
            Err(_) => {}
        }
    }
    Ok(rename(written, path)?)
}

fn rename(written: &Temporary, path: &Path) -> Result<(), FileError> {
    calls::rename(&written.path, path).map_err(FileError::of("replace", path))
}

/// Returns the text of the sidecar of a file, as Pulumi's command line writes it.
fn sidecar_of(content: &[u8]) -> String {
    let (content_type, md5) = (content_type(content), BASE64.encode(Md5::digest(content)));
    format!(
        "{{\"user.cache_control\":\"\",\"user.content_disposition\":\"\",\"user.content_encoding\":\"\",\
         \"user.content_language\":\"\",\"user.content_type\":\"{content_type}\",\
         \"user.metadata\":null,\"md5\":\"{md5}\"}}\n"
    )
}
