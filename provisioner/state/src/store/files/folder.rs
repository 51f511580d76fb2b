//! The folder of a store: its files as they are written, copied, kept and removed, sidecars with them.

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bridge::fs::{Access, PathError, sync_folder, write_atomically};
use md5::{Digest as _, Md5};

use super::super::compression::Compression;
use super::super::error::StoreError;
use super::super::layout::Layout;
use super::super::options::FileOptions;

/// Whether something is to outlive a loss of power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lasting {
    Yes,
    No,
}

#[derive(Debug)]
pub(super) struct Folder {
    pub(super) path: PathBuf,
    pub(super) mode: u32,
    pub(super) sidecars: bool,
    pub(super) options: FileOptions,
    pub(super) layout: Layout,
}

impl Folder {
    pub(super) fn at(&self, key: &str) -> PathBuf {
        self.path.join(key)
    }

    pub(super) fn write(&self, key: &str, content: &[u8]) -> Result<(), StoreError> {
        let path = self.at(key);
        if let Some(folder) = path.parent() {
            self.make_folder(folder)?;
        }
        self.write_sidecar(&path, content, Lasting::Yes)?;
        Ok(write_atomically(&path, content, Access::Shared)?)
    }

    /// Keeps a file that is about to be replaced, and its sidecar, under another name. Nothing is written, for what replaces
    /// it is another file; where names cannot share a file it is copied. What had the other names goes with the result.
    pub(super) fn keep(&self, from: &str, to: &str) -> Result<Vec<fs::File>, StoreError> {
        let (source, kept) = (self.at(from), self.at(to));
        // Without a sidecar of its own it must not come by that of another.
        remove(&sidecar(&kept))?;
        let mut replaced = Vec::new();
        let linked = link_over(&source, &kept).and_then(|file| {
            replaced.extend(file);
            match link_over(&sidecar(&source), &sidecar(&kept)) {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                linked => linked.map(|file| replaced.extend(file)),
            }
        });
        linked.or_else(|_| self.copy(from, to))?;
        Ok(replaced)
    }

    /// Copies a file and its sidecar. Unlike what is written, a copy is not flushed: no promise hangs on it.
    pub(super) fn copy(&self, from: &str, to: &str) -> Result<(), StoreError> {
        let (from, to) = (self.at(from), self.at(to));
        let folder = to.parent().unwrap_or(&self.path);
        self.make_folder(folder)?;
        let copied =
            |from: &Path, to: &Path, unfinished: &Path| put(to, unfinished, |path| fs::copy(from, path).map(drop));
        let unfinished = unfinished_beside(&to);
        match copied(&sidecar(&from), &sidecar(&to), &sidecar(&unfinished)) {
            Err(error) if error.kind() == ErrorKind::NotFound => remove(&sidecar(&to))?,
            copied => copied.map_err(PathError::of("write", &sidecar(&to)))?,
        }
        Ok(copied(&from, &to, &unfinished).map_err(PathError::of("write", &to))?)
    }

    /// Flushes a file that may be gone, and its folder.
    pub(super) fn flush(&self, key: &str) {
        let path = self.at(key);
        if let Ok(file) = fs::File::open(&path)
            && file.sync_all().is_ok()
        {
            sync_folder(path.parent().unwrap_or(&self.path)).ok();
        }
    }

    /// The sidecar comes first, as the command line has it; nobody checks it against the content. One that is not whole would
    /// make the file unreadable for that command line.
    pub(super) fn write_sidecar(&self, path: &Path, content: &[u8], lasting: Lasting) -> Result<(), StoreError> {
        let (sidecar, unfinished) = (sidecar(path), sidecar(&unfinished_beside(path)));
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
        // A new file: the old one may go by another name, too.
        let put = put(&sidecar, &unfinished, |path| {
            let mut file = fs::File::create_new(path)?;
            file.write_all(text.as_bytes())?;
            if lasting == Lasting::Yes { file.sync_data() } else { Ok(()) }
        });
        Ok(put.map_err(PathError::of("write", &sidecar))?)
    }

    pub(super) fn remove(&self, key: &str) -> Result<(), StoreError> {
        let path = self.at(key);
        remove(&path)?;
        remove(&sidecar(&path))
    }

    pub(super) fn make_folder(&self, folder: &Path) -> Result<(), StoreError> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        set_mode(&mut builder, self.mode);
        Ok(builder.create(folder).map_err(PathError::of("create folder", folder))?)
    }
}

#[cfg(unix)]
fn set_mode(builder: &mut fs::DirBuilder, mode: u32) {
    use std::os::unix::fs::DirBuilderExt as _;
    builder.mode(mode);
}

#[cfg(not(unix))]
fn set_mode(_: &mut fs::DirBuilder, _: u32) {}

pub(super) struct Entry {
    pub(super) name: String,
    pub(super) is_folder: bool,
}

/// What is in a folder, sorted; nothing if it is not there.
pub(super) fn list(folder: &Path) -> Result<Vec<Entry>, StoreError> {
    let failed = |error: io::Error| PathError::of("list", folder)(error);
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error).into()),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let is_folder = entry.file_type().map_err(failed)?.is_dir();
        found.push(Entry { name: entry.file_name().to_string_lossy().into_owned(), is_folder });
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(PathError::of("read", path)(error).into()),
    }
}

/// Removes a file that may not be there.
pub(super) fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(PathError::of("remove", path)(error).into()),
        _ => Ok(()),
    }
}

/// Gives a file a second name, in place of whatever had it: that is gone once it is closed.
fn link_over(from: &Path, to: &Path) -> io::Result<Option<fs::File>> {
    let unfinished = unfinished_beside(to);
    let replaced = fs::File::open(to);
    let linked = put(to, &unfinished, |path| fs::hard_link(from, path));
    // Still there where the two names were of one file already: a rename does nothing then.
    fs::remove_file(&unfinished).ok();
    linked.map(|()| replaced.ok())
}

/// Has a file made under another name, and gives it its own once it is whole.
#[allow(clippy::disallowed_methods, reason = "it is `bridge::fs` for what need not outlive a loss of power")]
fn put(to: &Path, unfinished: &Path, make: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let put = make(unfinished).and_then(|()| fs::rename(unfinished, to));
    if put.is_err() {
        fs::remove_file(unfinished).ok();
    }
    put
}

/// Where a file is made that takes its name once it is whole.
fn unfinished_beside(path: &Path) -> PathBuf {
    path.with_file_name(format!(".tmp-{}", uuid::Uuid::new_v4()))
}

pub(super) fn sidecar(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".attrs");
    name.into()
}
