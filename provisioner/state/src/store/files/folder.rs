//! Folder of a store: writes, copies, backs up and removes files with their sidecars.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bridge::fs::{
    Access, FileError, TEMPORARY_PREFIX, TemporaryFiles, calls, create_private_folders, open_regular, sync_folder,
    withdraw_access, write_atomically,
};
use md5::{Digest as _, Md5};

use super::super::compression::Compression;
use super::super::error::StoreError;
use super::super::layout::{Layout, ROOT};
use super::super::listing::ListedNames;
use super::super::options::StoreOptions;

/// Durability of a written file across a loss of power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Durability {
    Flushed,
    Unflushed,
}

#[derive(Debug)]
pub(super) struct Folder {
    pub(super) path: PathBuf,
    pub(super) mode: u32,
    pub(super) sidecars: bool,
    pub(super) options: StoreOptions,
    pub(super) layout: Layout,
}

impl Folder {
    pub(super) fn path_of(&self, key: &str) -> PathBuf {
        self.path.join(key)
    }

    pub(super) fn write(&self, key: &str, content: &[u8]) -> Result<(), StoreError> {
        let path = self.path_of(key);
        if let Some(folder) = path.parent() {
            self.make_folder(folder)?;
        }
        self.write_sidecar(&path, content, Durability::Flushed)?;
        Ok(write_atomically(&path, content, self.options.access)?)
    }

    /// Backs up a file that is about to be replaced, with its sidecar, under another name: by a hard link, or by a copy
    /// if links are not supported. Returns the replaced backups, still open; the disk frees them when they are closed.
    pub(super) fn back_up(&self, from: &str, to: &str) -> Result<Vec<fs::File>, StoreError> {
        let (source, backup) = (self.path_of(from), self.path_of(to));
        self.make_private(&source)?;
        // A file without sidecar must not get the old sidecar of its backup.
        remove(&sidecar(&backup))?;
        let mut replaced = Vec::new();
        let linked = link_over(&source, &backup).and_then(|file| {
            replaced.extend(file);
            match link_over(&sidecar(&source), &sidecar(&backup)) {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                linked => linked.map(|file| replaced.extend(file)),
            }
        });
        linked.or_else(|_| self.copy(from, to))?;
        Ok(replaced)
    }

    /// Copies a file and its sidecar. The copies are not flushed to disk.
    pub(super) fn copy(&self, from: &str, to: &str) -> Result<(), StoreError> {
        let (from, to) = (self.path_of(from), self.path_of(to));
        let folder = to.parent().unwrap_or(&self.path);
        self.make_folder(folder)?;
        let copied = |from: &Path, to: &Path, temporary: &Path| {
            write_and_rename(to, temporary, |path| {
                open_regular(from).and_then(|_| calls::copy(from, path))?;
                if self.options.access == Access::Private {
                    fs::set_permissions(path, fs::Permissions::from_mode(Access::Private.file_mode()))
                } else {
                    Ok(())
                }
            })
        };
        let temporary = temporary_path_beside(&to);
        match copied(&sidecar(&from), &sidecar(&to), &sidecar(&temporary)) {
            Err(error) if error.kind() == ErrorKind::NotFound => remove(&sidecar(&to))?,
            copied => copied.map_err(FileError::of("write", &sidecar(&to)))?,
        }
        Ok(copied(&from, &to, &temporary).map_err(FileError::of("write", &to))?)
    }

    /// Flushes a file, which may be missing, and its folder.
    pub(super) fn flush(&self, key: &str) {
        let path = self.path_of(key);
        if let Ok(file) = open_regular(&path)
            && calls::sync_all(&file, &path).is_ok()
        {
            sync_folder(path.parent().unwrap_or(&self.path)).ok();
        }
    }

    /// Writes the sidecar of a file before the file, as Pulumi's command line does. The digest in it is not checked
    /// against the content, but an incomplete sidecar would make the file unreadable for the command line.
    pub(super) fn write_sidecar(&self, path: &Path, content: &[u8], durability: Durability) -> Result<(), StoreError> {
        let (sidecar, temporary) = (sidecar(path), sidecar(&temporary_path_beside(path)));
        if !self.sidecars {
            return remove(&sidecar);
        }
        let content_type = Compression::of(content).content_type();
        let md5 = BASE64.encode(Md5::digest(content));
        let text = format!(
            "{{\"user.cache_control\":\"\",\"user.content_disposition\":\"\",\"user.content_encoding\":\"\",\
             \"user.content_language\":\"\",\"user.content_type\":\"{content_type}\",\
             \"user.metadata\":null,\"md5\":\"{md5}\"}}\n"
        );
        // A new file is created, because the old one may be linked under another name.
        let written = write_and_rename(&sidecar, &temporary, |path| {
            let file = self.create_new(path)?;
            calls::write_all(&file, path, text.as_bytes())?;
            if durability == Durability::Flushed { calls::sync_data(&file, path) } else { Ok(()) }
        });
        Ok(written.map_err(FileError::of("write", &sidecar))?)
    }

    pub(super) fn remove(&self, key: &str) -> Result<(), StoreError> {
        let path = self.path_of(key);
        remove(&path)?;
        remove(&sidecar(&path))
    }

    /// Creates a file with the permissions of the options.
    pub(super) fn create_new(&self, path: &Path) -> io::Result<fs::File> {
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true).mode(self.options.access.file_mode());
        calls::open(&options, path)
    }

    /// Creates a folder and its missing parents. If the store is private, removes the permissions of other users from
    /// the folder that contains all files of the store.
    pub(super) fn make_folder(&self, folder: &Path) -> Result<(), StoreError> {
        if self.options.access == Access::Private {
            create_private_folders(folder)?;
            return self.make_private(&self.path_of(ROOT));
        }
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(self.mode);
        Ok(calls::create_folder(&builder, folder).map_err(FileError::of("create folder", folder))?)
    }

    /// Removes the permissions of other users from a file and its sidecar, or from a folder, if the store is private.
    fn make_private(&self, path: &Path) -> Result<(), StoreError> {
        if self.options.access != Access::Private {
            return Ok(());
        }
        withdraw_access(path)?;
        Ok(withdraw_access(&sidecar(path))?)
    }
}

pub(super) struct Entry {
    pub(super) name: String,
    pub(super) is_folder: bool,
}

/// Returns the entries of a folder, sorted; none if it does not exist.
pub(super) fn list(folder: &Path) -> Result<Vec<Entry>, StoreError> {
    let failed = |error: io::Error| FileError::of("list", folder)(error);
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error).into()),
    };
    let (mut found, mut names) = (Vec::new(), ListedNames::default());
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let is_folder = entry.file_type().map_err(failed)?.is_dir();
        let name = entry.file_name().to_string_lossy().into_owned();
        names.add(&name).map_err(|reason| failed(io::Error::other(reason)))?;
        found.push(Entry { name, is_folder });
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// Removes a file; a missing file is no error.
pub(super) fn remove(path: &Path) -> Result<(), StoreError> {
    match calls::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(FileError::of("remove", path)(error).into()),
        _ => Ok(()),
    }
}

/// Links a file under a second name. Returns the file that had this name before, still open.
fn link_over(from: &Path, to: &Path) -> io::Result<Option<fs::File>> {
    let temporary = temporary_path_beside(to);
    let replaced = open_regular(to);
    let linked = write_and_rename(to, &temporary, |path| calls::hard_link(from, path));
    // A rename does nothing if both names already link to the same file; the temporary name then remains.
    calls::remove_file(&temporary).ok();
    linked.map(|()| replaced.ok())
}

/// Creates a file under a temporary name and renames it once it is complete, so that no reader sees a part of it.
fn write_and_rename(to: &Path, temporary: &Path, create: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let _writing = temporary.parent().map(TemporaryFiles::begin);
    let written = create(temporary).and_then(|()| calls::rename(temporary, to));
    if written.is_err() {
        calls::remove_file(temporary).ok();
    }
    written
}

/// Returns a temporary path in the folder of a file.
fn temporary_path_beside(path: &Path) -> PathBuf {
    path.with_file_name(format!("{TEMPORARY_PREFIX}{}", uuid::Uuid::new_v4()))
}

pub(super) fn sidecar(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".attrs");
    name.into()
}
