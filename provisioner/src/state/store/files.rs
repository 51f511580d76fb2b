//! The store in a folder, as Pulumi's command line lays it out.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bridge::fs::{Access, PathError, sync_folder, write_atomically};
use jiff::Timestamp;
use md5::{Digest as _, Md5};

use super::layout;
use super::lock::{self, LockHolder, LockInfo, StackLock};
use super::reference::StackReference;
use super::url::FileUrl;
use super::{StateStore, StoreError};
use crate::state::free_aside;

/// What the metadata of a store of our layout hold.
const META_TEXT: &str = "version: 1\n";

/// Keeps states in a folder.
#[derive(Clone, Debug)]
pub struct FileStore {
    folder: Arc<Folder>,
}

impl FileStore {
    /// Opens a store. Nothing is written, and the folder is made only if the URL says so.
    ///
    /// # Errors
    /// [`StoreError`] if the folder is not there, or has a layout that is not ours.
    pub async fn open(url: &FileUrl) -> Result<Self, StoreError> {
        let folder = Folder { path: url.folder.clone(), mode: url.folder_mode, sidecars: url.sidecars };
        let create = url.create;
        let opened = in_background(move || {
            if create {
                folder.make_folder(&folder.path)?;
            }
            folder.check_layout()?;
            Ok(folder)
        });
        Ok(Self { folder: Arc::new(opened.await?) })
    }

    /// The folder that holds `.pulumi`.
    pub fn folder(&self) -> &Path {
        &self.folder.path
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Folder) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let folder = Arc::clone(&self.folder);
        in_background(move || work(&folder)).await
    }
}

#[async_trait]
impl StateStore for FileStore {
    fn location(&self) -> String {
        format!("file://{}", self.folder.path.display())
    }

    async fn list(&self) -> Result<Vec<StackReference>, StoreError> {
        self.run(Folder::list).await
    }

    async fn load(&self, stack: &StackReference) -> Result<Option<String>, StoreError> {
        let stack = stack.clone();
        self.run(move |folder| folder.load(&stack)).await
    }

    async fn save(&self, stack: &StackReference, checkpoint: &str) -> Result<(), StoreError> {
        let (stack, checkpoint) = (stack.clone(), checkpoint.to_owned());
        self.run(move |folder| folder.save(&stack, &checkpoint)).await
    }

    async fn archive(&self, stack: &StackReference, update: &str) -> Result<(), StoreError> {
        let (stack, update) = (stack.clone(), update.to_owned());
        self.run(move |folder| folder.archive(&stack, &update)).await
    }

    async fn lock(&self, stack: &StackReference, holder: &LockHolder) -> Result<StackLock, StoreError> {
        let (stack, holder) = (stack.clone(), holder.clone());
        let lock = self.run(move |folder| folder.lock(stack, &holder)).await?;
        let (folder, key) = (Arc::clone(&self.folder), format!("{}/{}", layout::locks(&lock.stack), lock.name));
        // It keeps others out from now on; that it outlives a power cut is nothing to wait for.
        drop(tokio::task::spawn_blocking(move || folder.flush(&key)));
        Ok(lock)
    }

    async fn unlock(&self, lock: StackLock) -> Result<(), StoreError> {
        self.run(move |folder| folder.remove_lock(&format!("{}/{}", layout::locks(&lock.stack), lock.name))).await
    }

    async fn locks(&self, stack: &StackReference) -> Result<Vec<LockInfo>, StoreError> {
        let stack = stack.clone();
        self.run(move |folder| folder.locks(&stack)).await
    }

    async fn break_locks(&self, stack: &StackReference) -> Result<Vec<LockInfo>, StoreError> {
        let stack = stack.clone();
        self.run(move |folder| {
            let locks = folder.locks(&stack)?;
            for lock in &locks {
                folder.remove(&format!("{}/{}", layout::locks(&stack), lock.name))?;
            }
            Ok(locks)
        })
        .await
    }
}

/// Disks block; the tasks of a run must not.
async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => unreachable!("work that blocks is not cancelled once it runs"),
        },
    }
}

#[derive(Debug)]
struct Folder {
    path: PathBuf,
    mode: u32,
    sidecars: bool,
}

impl Folder {
    fn at(&self, key: &str) -> PathBuf {
        self.path.join(key)
    }

    fn check_layout(&self) -> Result<(), StoreError> {
        if !self.path.is_dir() {
            return Err(StoreError::NoFolder(self.path.display().to_string()));
        }
        let path = self.at(layout::META).display().to_string();
        let damaged = |problem: &str| StoreError::Damaged { path: path.clone(), problem: problem.to_owned() };
        match read(&self.at(layout::META))? {
            Some(bytes) => {
                let meta: serde_yaml::Value = serde_yaml::from_slice(&bytes).map_err(|_| damaged("it is not YAML"))?;
                match meta.get("version").and_then(serde_yaml::Value::as_u64) {
                    Some(1) => Ok(()),
                    Some(0) => Err(StoreError::Legacy(self.path.display().to_string())),
                    Some(version) => Err(StoreError::TooNew { path: path.clone(), version }),
                    None => Err(damaged("it names no version")),
                }
            }
            None if self.has_legacy_stacks()? => Err(StoreError::Legacy(self.path.display().to_string())),
            None => Ok(()),
        }
    }

    /// Whether there are checkpoints that belong to no project.
    fn has_legacy_stacks(&self) -> Result<bool, StoreError> {
        let stacks = list(&self.at(layout::STACKS))?;
        Ok(stacks.iter().any(|entry| !entry.is_folder && layout::stack_of_file("legacy", &entry.name).is_some()))
    }

    fn list(&self) -> Result<Vec<StackReference>, StoreError> {
        let mut stacks = Vec::new();
        for project in list(&self.at(layout::STACKS))?.into_iter().filter(|entry| entry.is_folder) {
            let files = list(&self.at(layout::STACKS).join(&project.name))?;
            let files = files.iter().filter(|entry| !entry.is_folder);
            stacks.extend(files.filter_map(|entry| layout::stack_of_file(&project.name, &entry.name)));
        }
        stacks.sort();
        stacks.dedup();
        Ok(stacks)
    }

    fn load(&self, stack: &StackReference) -> Result<Option<String>, StoreError> {
        let Some(key) = self.current_variant(stack)? else { return Ok(None) };
        let path = self.at(&key);
        let Some(bytes) = read(&path)? else { return Ok(None) };
        if key != layout::checkpoint(stack)
            || bytes.starts_with(&[0x1f, 0x8b, 0x08])
            || bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd])
        {
            return Err(StoreError::Compressed(path.display().to_string()));
        }
        String::from_utf8(bytes).map(Some).map_err(|_| StoreError::Damaged {
            path: path.display().to_string(),
            problem: "it is not UTF-8".to_owned(),
        })
    }

    /// The checkpoint that counts: the newest, and of equally new ones the most compressed.
    fn current_variant(&self, stack: &StackReference) -> Result<Option<String>, StoreError> {
        let plain = layout::checkpoint(stack);
        let variants = layout::COMPRESSED.map(|extension| format!("{plain}.{extension}"));
        let mut current: Option<(SystemTime, String)> = None;
        for key in [plain].into_iter().chain(variants) {
            let path = self.at(&key);
            let modified = match fs::metadata(&path).and_then(|metadata| metadata.modified()) {
                Ok(modified) => modified,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(PathError::of("read", &path)(error).into()),
            };
            if current.as_ref().is_none_or(|(newest, _)| modified >= *newest) {
                current = Some((modified, key));
            }
        }
        Ok(current.map(|(_, key)| key))
    }

    fn save(&self, stack: &StackReference, checkpoint: &str) -> Result<(), StoreError> {
        self.write_meta()?;
        let key = layout::checkpoint(stack);
        let replaced = match self.current_variant(stack)? {
            Some(current) if current == key => self.keep(&key, &format!("{key}.bak"))?,
            Some(current) => return Err(StoreError::Compressed(self.at(&current).display().to_string())),
            None => Vec::new(),
        };
        let written = self.write(&key, checkpoint.as_bytes());
        // Not before: the flush would wait for the disk to give back what they took.
        free_aside(replaced);
        written
    }

    fn archive(&self, stack: &StackReference, update: &str) -> Result<(), StoreError> {
        let checkpoint = layout::checkpoint(stack);
        let [entry, copy] = layout::history(stack, Timestamp::now().as_nanosecond());
        self.write(&entry, update.as_bytes())?;
        self.copy(&checkpoint, &copy)?;
        self.copy(&checkpoint, &layout::backup(stack, Timestamp::now().as_nanosecond()))
    }

    /// The command line's order: look, write, look again. Of two that do so at once, at least one sees the other.
    fn lock(&self, stack: StackReference, holder: &LockHolder) -> Result<StackLock, StoreError> {
        self.refuse_if_locked(&stack, None)?;
        self.write_meta()?;
        let name = format!("{}.json", uuid::Uuid::new_v4());
        let key = format!("{}/{name}", layout::locks(&stack));
        self.write_lock(&key, lock::write(holder, Timestamp::now()).as_bytes())?;
        if let Err(error) = self.refuse_if_locked(&stack, Some(&name)) {
            self.remove(&key)?;
            return Err(error);
        }
        Ok(StackLock { stack, name })
    }

    fn refuse_if_locked(&self, stack: &StackReference, own: Option<&str>) -> Result<(), StoreError> {
        let mut holders = self.locks(stack)?;
        holders.retain(|lock| Some(lock.name.as_str()) != own);
        if holders.is_empty() { Ok(()) } else { Err(StoreError::Locked { stack: stack.clone(), holders }) }
    }

    /// Everything in the folder counts, whatever its name, but folders and sidecars.
    fn locks(&self, stack: &StackReference) -> Result<Vec<LockInfo>, StoreError> {
        let folder = self.at(&layout::locks(stack));
        let entries = list(&folder)?.into_iter().filter(|entry| !entry.is_folder && !entry.name.ends_with(".attrs"));
        let mut locks = Vec::new();
        for entry in entries {
            // One that is gone by now was given back, but it was there: whoever looks has to come again.
            let bytes = read(&folder.join(&entry.name))?.unwrap_or_default();
            locks.push(lock::read(&entry.name, &String::from_utf8_lossy(&bytes)));
        }
        Ok(locks)
    }

    fn write_meta(&self) -> Result<(), StoreError> {
        if self.at(layout::META).exists() { Ok(()) } else { self.write(layout::META, META_TEXT.as_bytes()) }
    }

    fn write(&self, key: &str, content: &[u8]) -> Result<(), StoreError> {
        let path = self.at(key);
        if let Some(folder) = path.parent() {
            self.make_folder(folder)?;
        }
        self.write_sidecar(&path, content)?;
        Ok(write_atomically(&path, content, Access::Shared)?)
    }

    /// Writes a lock so that no unfinished file is ever seen in its folder, where it would count as a lock.
    #[allow(clippy::disallowed_methods, reason = "it was written whole, elsewhere: a lock may not be seen half")]
    fn write_lock(&self, key: &str, content: &[u8]) -> Result<(), StoreError> {
        let path = self.at(key);
        let folder = path.parent().unwrap_or(&self.path);
        self.make_folder(folder)?;
        let unfinished = self.at(&format!("{}/.lock-{}", layout::ROOT, uuid::Uuid::new_v4()));
        fs::write(&unfinished, content).map_err(PathError::of("write", &unfinished))?;
        self.write_sidecar(&path, content)?;
        Ok(fs::rename(&unfinished, &path).map_err(PathError::of("write", &path))?)
    }

    /// Removes a lock. Nobody has to wait until the disk has given back what it took, which happens where it is closed; for
    /// what is open and removed may keep a name for a while, it is taken out of its folder first.
    #[allow(clippy::disallowed_methods, reason = "nothing is written")]
    fn remove_lock(&self, key: &str) -> Result<(), StoreError> {
        let path = self.at(key);
        let given_back = self.at(&format!("{}/.lock-{}", layout::ROOT, uuid::Uuid::new_v4()));
        match fs::rename(&path, &given_back) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            renamed => renamed.map_err(PathError::of("remove", &path))?,
        }
        let held = fs::File::open(&given_back);
        let removed = remove(&given_back).and_then(|()| remove(&sidecar(&path)));
        free_aside(held);
        removed
    }

    /// Flushes a file that may be gone, and its folder.
    fn flush(&self, key: &str) {
        let path = self.at(key);
        if let Ok(file) = fs::File::open(&path)
            && file.sync_all().is_ok()
        {
            sync_folder(path.parent().unwrap_or(&self.path)).ok();
        }
    }

    /// The sidecar comes first, as the command line has it; nobody checks it against the content.
    #[allow(clippy::disallowed_methods, reason = "nobody checks it against the content")]
    fn write_sidecar(&self, path: &Path, content: &[u8]) -> Result<(), StoreError> {
        let sidecar = sidecar(path);
        if !self.sidecars {
            return remove(&sidecar);
        }
        let md5 = BASE64.encode(Md5::digest(content));
        let text = format!(
            "{{\"user.cache_control\":\"\",\"user.content_disposition\":\"\",\"user.content_encoding\":\"\",\
             \"user.content_language\":\"\",\"user.content_type\":\"text/plain; charset=utf-8\",\
             \"user.metadata\":null,\"md5\":\"{md5}\"}}\n"
        );
        // A new file: the old one may go by another name, too.
        remove(&sidecar)?;
        Ok(fs::write(&sidecar, text).map_err(PathError::of("write", &sidecar))?)
    }

    /// Keeps a file that is about to be replaced, and its sidecar, under another name. Nothing is written, for what replaces
    /// it is another file; where names cannot share a file it is copied. What had the other names goes with the result.
    fn keep(&self, from: &str, to: &str) -> Result<Vec<fs::File>, StoreError> {
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
    #[allow(clippy::disallowed_methods, reason = "a copy need not outlive a loss of power")]
    fn copy(&self, from: &str, to: &str) -> Result<(), StoreError> {
        let (from, to) = (self.at(from), self.at(to));
        let folder = to.parent().unwrap_or(&self.path);
        self.make_folder(folder)?;
        match fs::copy(sidecar(&from), sidecar(&to)) {
            Err(error) if error.kind() == ErrorKind::NotFound => remove(&sidecar(&to))?,
            copied => drop(copied.map_err(PathError::of("write", &sidecar(&to)))?),
        }
        let unfinished = unfinished_beside(&to);
        let copied = fs::copy(&from, &unfinished).and_then(|_| fs::rename(&unfinished, &to));
        if copied.is_err() {
            remove(&unfinished)?;
        }
        Ok(copied.map_err(PathError::of("write", &to))?)
    }

    fn remove(&self, key: &str) -> Result<(), StoreError> {
        let path = self.at(key);
        remove(&path)?;
        remove(&sidecar(&path))
    }

    fn make_folder(&self, folder: &Path) -> Result<(), StoreError> {
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

struct Entry {
    name: String,
    is_folder: bool,
}

/// What is in a folder, sorted; nothing if it is not there.
fn list(folder: &Path) -> Result<Vec<Entry>, StoreError> {
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

fn read(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(PathError::of("read", path)(error).into()),
    }
}

/// Removes a file that may not be there.
fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(PathError::of("remove", path)(error).into()),
        _ => Ok(()),
    }
}

/// Gives a file a second name, in place of whatever had it: that is gone once it is closed.
#[allow(clippy::disallowed_methods, reason = "nothing is written: the file is whole already")]
fn link_over(from: &Path, to: &Path) -> io::Result<Option<fs::File>> {
    let unfinished = unfinished_beside(to);
    let replaced = fs::File::open(to);
    let linked = fs::hard_link(from, &unfinished).and_then(|()| fs::rename(&unfinished, to));
    // Still there after a failure, and where the two names were of one file already: a rename does nothing then.
    fs::remove_file(&unfinished).ok();
    linked.map(|()| replaced.ok())
}

/// Where a file is made that takes its name once it is whole.
fn unfinished_beside(path: &Path) -> PathBuf {
    path.with_file_name(format!(".tmp-{}", uuid::Uuid::new_v4()))
}

fn sidecar(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".attrs");
    name.into()
}
