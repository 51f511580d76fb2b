//! Files of the objects: reads, copies, removes and lists them with their sidecars.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use bridge::fs::{
    Access, FileError, TEMPORARY_PREFIX, TemporaryFiles, calls, create_private_folders, open_regular, read_open,
    withdraw_access,
};
use jiff::Timestamp;

use super::super::layout::{BACKUPS, HISTORY, ROOT};
use super::super::listing::ListedNames;
use super::super::objects::{ListedObject, ObjectError, ObjectVersion, StoredObject};
use super::super::url::FileUrl;
use crate::snapshot::drop_in_background;

/// Suffix of the name of a sidecar, which has the type and the digest of the content as Pulumi's command line writes them.
const SIDECAR: &str = ".attrs";

/// Folder of the objects.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) path: PathBuf,
    pub(super) access: Access,
    /// Permissions of created folders, before the umask.
    mode: u32,
    pub(super) sidecars: bool,
    /// Files that are replaced and still open. They are closed after the next write: the disk frees their blocks then, and the
    /// write would wait for it.
    pub(super) replaced: Mutex<Vec<File>>,
    /// Folders whose abandoned files this process has removed.
    pub(super) cleaned: Mutex<BTreeSet<PathBuf>>,
}

/// Length from which on a file is read into memory that the caller allocates. The allocator returns a large block at once only if
/// the thread that allocated it frees it, and the caller frees the content, not the thread that reads.
const LARGE: u64 = 1024 * 1024;

/// Result of the attempt to read a file.
#[derive(Debug)]
pub(super) enum FileRead {
    /// The object, if there is one.
    Object(Option<StoredObject>),
    /// The file is larger than the given memory. It has to be read again, with this capacity.
    Large(usize),
}

/// Depth of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// The files of the folder.
    Folder,
    /// The files of the folder, and of all folders in it.
    Tree,
}

impl Folder {
    pub(super) fn new(url: &FileUrl, access: Access) -> Self {
        Self {
            path: url.folder.clone(),
            access,
            mode: url.folder_mode,
            sidecars: url.sidecars,
            replaced: Mutex::default(),
            cleaned: Mutex::default(),
        }
    }

    pub(super) fn path_of(&self, key: &str) -> PathBuf {
        self.path.join(key)
    }

    /// Reads a file into the memory of `content`, or of a vector of its own if the file is small.
    pub(super) fn read(&self, key: &str, limit: u64, content: Vec<u8>) -> Result<FileRead, ObjectError> {
        let path = self.path_of(key);
        let read = open_regular(&path).and_then(|file| {
            let metadata = file.metadata()?;
            let needed = usize::try_from(metadata.len() + 1).unwrap_or(usize::MAX);
            if metadata.len() >= LARGE && metadata.len() <= limit && content.capacity() < needed {
                return Ok(FileRead::Large(needed));
            }
            let content = read_open(file, limit, content)?;
            let object = StoredObject { content, version: version_of(&metadata), modified: modified(&metadata)? };
            Ok(FileRead::Object(Some(object)))
        });
        match read {
            Ok(read) => Ok(read),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(FileRead::Object(None)),
            Err(error) => Err(FileError::of("read", &path)(error).into()),
        }
    }

    /// Copies a file and its sidecar. The copies are not flushed to disk.
    pub(super) fn copy(&self, from: &str, to: &str) -> Result<bool, ObjectError> {
        let (from, to) = (self.path_of(from), self.path_of(to));
        if !exists(&from)? {
            return Ok(false);
        }
        self.make_folder(folder_of(&to))?;
        let copied = |from: &Path, to: &Path| {
            write_and_rename(to, |temporary| {
                open_regular(from).and_then(|_| calls::copy(from, temporary))?;
                if self.access == Access::Private {
                    fs::set_permissions(temporary, fs::Permissions::from_mode(Access::Private.file_mode()))
                } else {
                    Ok(())
                }
            })
        };
        match copied(&sidecar(&from), &sidecar(&to)) {
            Err(error) if error.kind() == ErrorKind::NotFound => remove(&sidecar(&to))?,
            copied => copied.map_err(FileError::of("write", &sidecar(&to)))?,
        }
        copied(&from, &to).map_err(FileError::of("write", &to))?;
        Ok(true)
    }

    /// Links a file that will be replaced or removed, with its sidecar, under another name, or copies it if links are not
    /// supported.
    pub(super) fn preserve(&self, from: &str, to: &str) -> Result<bool, ObjectError> {
        let (source, target) = (self.path_of(from), self.path_of(to));
        if !exists(&source)? {
            return Ok(false);
        }
        self.make_private(&source)?;
        self.make_folder(folder_of(&target))?;
        // A file without sidecar must not get the old sidecar of the target.
        remove(&sidecar(&target))?;
        let linked = self.link_over(&source, &target).and_then(|()| {
            match self.link_over(&sidecar(&source), &sidecar(&target)) {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                linked => linked,
            }
        });
        if linked.is_ok() { Ok(true) } else { self.copy(from, to) }
    }

    /// Links a file under a second name. The file that had this name before stays open for a while.
    fn link_over(&self, from: &Path, to: &Path) -> io::Result<()> {
        let replaced = open_regular(to);
        // A rename does nothing if both names already link to the same file; the temporary name is removed then.
        write_and_rename(to, |temporary| calls::hard_link(from, temporary))?;
        self.replaced.lock().unwrap_or_else(PoisonError::into_inner).extend(replaced.ok());
        Ok(())
    }

    /// Closes the replaced files. Must be called within a tokio runtime.
    pub(super) fn close_replaced(&self) {
        let replaced = std::mem::take(&mut *self.replaced.lock().unwrap_or_else(PoisonError::into_inner));
        if !replaced.is_empty() {
            drop_in_background(replaced);
        }
    }

    /// Removes a file and its sidecar, and the folder of a history or of backups with its last file. A file that another
    /// process has open may keep its name for a while on some file systems, so the file is moved out of its folder first. It is
    /// closed in the background, because the disk frees its blocks then.
    pub(super) fn remove(&self, key: &str) -> Result<(), ObjectError> {
        let path = self.path_of(key);
        let removed = self.path_of(&format!("{ROOT}/.lock-{}", uuid::Uuid::new_v4()));
        match calls::rename(&path, &removed) {
            Ok(()) => {
                let open = open_regular(&removed);
                remove(&removed)?;
                drop_in_background(open);
            }
            // There is no such file, or no folder to move it to.
            Err(error) if error.kind() == ErrorKind::NotFound => remove(&path)?,
            Err(error) => return Err(FileError::of("remove", &path)(error).into()),
        }
        remove(&sidecar(&path))?;
        if [HISTORY, BACKUPS].iter().any(|folder| key.starts_with(folder)) {
            // A folder with files stays.
            fs::remove_dir(folder_of(&path)).ok();
        }
        Ok(())
    }

    /// Returns the files of a folder except sidecars, sorted; none if it does not exist.
    pub(super) fn list(&self, folder: &str, depth: Depth) -> Result<Vec<ListedObject>, ObjectError> {
        let (mut found, mut names) = (Vec::new(), ListedNames::default());
        let mut folders = vec![String::new()];
        while let Some(prefix) = folders.pop() {
            let path = self.path_of(format!("{folder}/{prefix}").trim_end_matches('/'));
            let failed = |error: io::Error| FileError::of("list", &path)(error);
            let entries = match fs::read_dir(&path) {
                Ok(entries) => entries,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(failed(error).into()),
            };
            for entry in entries {
                let entry = entry.map_err(failed)?;
                let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
                names.add(&name).map_err(|reason| failed(io::Error::other(reason)))?;
                if entry.file_type().map_err(failed)?.is_dir() {
                    folders.extend((depth == Depth::Tree).then(|| format!("{name}/")));
                } else if !name.ends_with(SIDECAR) {
                    // A file that was removed since it was found is listed without its time.
                    let modified = entry.metadata().and_then(|metadata| modified(&metadata));
                    found.push(ListedObject { name, modified: modified.unwrap_or(Timestamp::UNIX_EPOCH) });
                }
            }
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// Returns the time by the clock of the file system.
    pub(super) fn time(&self) -> Result<Timestamp, ObjectError> {
        let path = self.path_of(&format!("{ROOT}/.lock-{}", uuid::Uuid::new_v4()));
        let created = self.create_new(&path).and_then(|file| modified(&file.metadata()?));
        calls::remove_file(&path).ok();
        Ok(created.map_err(FileError::of("write", &path))?)
    }

    /// Flushes a file, which may be missing, and its folder. Errors are ignored: nobody waits for the result.
    pub(super) fn flush(&self, key: &str) {
        let path = self.path_of(key);
        for opened in [open_regular(&path), open_folder(folder_of(&path))] {
            opened.and_then(|file| file.sync_all()).ok();
        }
    }

    /// Creates a folder and its missing parents. If the store is private, removes the permissions of other users from
    /// the folder that contains all files of the store.
    pub(super) fn make_folder(&self, folder: &Path) -> Result<(), FileError> {
        if self.access == Access::Private {
            create_private_folders(folder)?;
            return self.make_private(&self.path_of(ROOT));
        }
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(self.mode);
        calls::create_folder(&builder, folder).map_err(FileError::of("create folder", folder))
    }

    /// Removes the permissions of other users from a file and its sidecar, or from a folder, if the store is private.
    fn make_private(&self, path: &Path) -> Result<(), FileError> {
        if self.access != Access::Private {
            return Ok(());
        }
        withdraw_access(path)?;
        withdraw_access(&sidecar(path))
    }
}

fn exists(path: &Path) -> Result<bool, FileError> {
    path.try_exists().map_err(FileError::of("read", path))
}

/// Returns the version of a file: its number in the file system, its time and its size. Each write creates a new file.
pub(super) fn version_of(metadata: &fs::Metadata) -> ObjectVersion {
    let (number, size) = (metadata.ino(), metadata.size());
    let generation = format!("{number}-{}.{:09}-{size}", metadata.mtime(), metadata.mtime_nsec());
    ObjectVersion { tag: None, generation: Some(generation) }
}

/// Returns the time at which a file was written.
fn modified(metadata: &fs::Metadata) -> io::Result<Timestamp> {
    Timestamp::try_from(metadata.modified()?).map_err(io::Error::other)
}

#[expect(clippy::disallowed_methods, reason = "a folder is opened, not a file")]
pub(super) fn open_folder(folder: &Path) -> io::Result<File> {
    File::open(folder)
}

/// Removes a file; a missing file is no error.
pub(super) fn remove(path: &Path) -> Result<(), FileError> {
    match calls::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(FileError::of("remove", path)(error)),
        _ => Ok(()),
    }
}

/// Creates a file under a temporary name and renames it once it is complete, so that no reader sees a part of it.
fn write_and_rename(to: &Path, create: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let _writing = TemporaryFiles::begin(folder_of(to));
    let temporary = temporary_path(to, folder_of(to));
    let written = create(&temporary).and_then(|()| calls::rename(&temporary, to));
    calls::remove_file(&temporary).ok();
    written
}

pub(super) fn temporary_path(path: &Path, folder: &Path) -> PathBuf {
    let suffix = if path.as_os_str().as_encoded_bytes().ends_with(SIDECAR.as_bytes()) { SIDECAR } else { "" };
    folder.join(format!("{TEMPORARY_PREFIX}{}{suffix}", uuid::Uuid::new_v4()))
}

pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

pub(super) fn sidecar(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(SIDECAR);
    name.into()
}
