//! The cache of packages: each by the digest of its files, published whole, shared by all who run on this machine.
//!
//! ```text
//! packages/<digest>/    the files of a package, read-only; the digest is that of the files and of who may be executed
//! names/<key>.json      what a declaration came to when it was fetched: its revision, digest of the download, package
//! locks/<key>           held while somebody fetches what it names
//! components/<digest>   which types of a package are components (the host's)
//! work/                 what is being made, see `Scratch`
//! ```
//! A package is made in `work` and renamed into its place: it is there whole or not at all. Whoever opens it reads all
//! its files and compares, so that what was damaged later, by a loss of power or by hand, is fetched again instead of
//! run. Nothing is flushed for that reason. A name is written after its package.

use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::InstallError;
use super::tree::FileDigests;
use crate::fs::{Access, PathError, Scratch, create_folders, read_if_there, write_atomically};
use crate::plugin::Sha256Digest;

/// The folder for what is being made.
pub(super) const WORK: &str = "work";
/// How often it is tried to get a lock that somebody else holds: who waited in the system for it could not be stopped.
const LOCK_POLL: Duration = Duration::from_millis(50);

/// The cache of packages.
#[derive(Clone, Debug)]
pub(super) struct Store {
    root: PathBuf,
}

/// The name of what a declaration asks for. Shown in the cache, so it holds no credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key(String);

impl Key {
    /// Of parts that together say what is asked for.
    pub(super) fn new<'a>(parts: impl IntoIterator<Item = &'a str>) -> Self {
        Self(parts.into_iter().collect::<Vec<_>>().join("\n"))
    }

    /// What it came to.
    pub(super) fn record(&self, revision: &str, download: Option<Sha256Digest>, package: Sha256Digest) -> Record {
        Record { of: self.0.clone(), revision: revision.to_owned(), download, package }
    }

    fn file_name(&self) -> String {
        Sha256Digest::of(&self.0).to_hex()
    }
}

/// What a declaration came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The key.
    pub(super) of: String,
    /// The tag or the whole id of the commit.
    pub(super) revision: String,
    /// The digest of what was downloaded, if that was one file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) download: Option<Sha256Digest>,
    /// What names its files, see [`FileDigests::identity`].
    pub(super) package: Sha256Digest,
}

/// A package of the cache whose files were read and are what they should be.
#[derive(Debug)]
pub(super) struct Stored {
    /// Where it is.
    pub(super) folder: PathBuf,
    /// Its files.
    pub(super) files: FileDigests,
}

/// What is found under a name.
#[derive(Debug)]
pub(super) enum Found {
    Nothing,
    /// There was something, and it is no longer what it was.
    Damaged,
    Whole(Record, Stored),
}

impl Store {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// What a name came to. A record that cannot be read is none.
    pub(super) fn record(&self, key: &Key) -> Result<Option<Record>, InstallError> {
        let Some(text) = read_if_there(&self.record_path(key))? else { return Ok(None) };
        let record: Option<Record> = serde_json::from_slice(&text).ok();
        Ok(record.filter(|record| record.of == key.0))
    }

    /// Finds and reads the package of a name. Takes as long as it takes to hash its files.
    pub(super) fn open(&self, key: &Key) -> Result<Found, InstallError> {
        let Some(record) = self.record(key)? else { return Ok(Found::Nothing) };
        let folder = self.package_path(record.package);
        if !folder.is_dir() {
            return Ok(Found::Nothing);
        }
        match FileDigests::of(&folder) {
            Ok(files) if files.identity() == record.package => Ok(Found::Whole(record, Stored { folder, files })),
            Ok(_) | Err(InstallError::Uncoverable { .. }) => Ok(Found::Damaged),
            Err(InstallError::Path(error)) if error.source.kind() == io::ErrorKind::NotFound => Ok(Found::Damaged),
            // A disk that cannot be read now says nothing of what is on it.
            Err(error) => Err(error),
        }
    }

    /// Removes the package of a name, and the name. Those who run it keep what they opened.
    pub(super) fn remove(&self, key: &Key) -> Result<(), InstallError> {
        if let Some(record) = self.record(key)? {
            let grave = self.scratch()?;
            let package = self.package_path(record.package);
            let moved = rename(&package, &grave.path().join("package"));
            ignore_missing(moved).map_err(PathError::of("remove", &package))?;
        }
        let name = self.record_path(key);
        Ok(ignore_missing(fs::remove_file(&name)).map_err(PathError::of("remove", &name))?)
    }

    /// A folder to make a package in.
    pub(super) fn scratch(&self) -> Result<Scratch, InstallError> {
        self.create()?;
        Ok(Scratch::new(&self.root.join(WORK))?)
    }

    /// Makes the folder of the cache, for us alone.
    fn create(&self) -> Result<(), InstallError> {
        create_folders(&self.root)?;
        let mode = fs::metadata(&self.root).map_err(PathError::of("read", &self.root))?.permissions().mode();
        if mode & 0o077 != 0 {
            let private = fs::set_permissions(&self.root, Permissions::from_mode(0o700));
            private.map_err(PathError::of("make private", &self.root))?;
        }
        Ok(())
    }

    /// Puts a package that was made in a scratch folder into its place. If the same one is there already, that stays.
    pub(super) fn publish(&self, made: &Path, files: FileDigests) -> Result<Stored, InstallError> {
        let digest = files.identity();
        let folder = self.package_path(digest);
        create_folders(&self.root.join("packages"))?;
        match rename(made, &folder) {
            Ok(()) => {}
            Err(error) if is_there(&error) => {
                let whole = FileDigests::of(&folder).is_ok_and(|there| there.identity() == digest);
                if !whole {
                    let grave = self.scratch()?;
                    let moved = rename(&folder, &grave.path().join("package"));
                    ignore_missing(moved).map_err(PathError::of("remove", &folder))?;
                    match rename(made, &folder) {
                        // Somebody else put it there meanwhile.
                        Err(error) if is_there(&error) => {}
                        other => other.map_err(PathError::of("create", &folder))?,
                    }
                }
            }
            Err(error) => return Err(PathError::of("create", &folder)(error).into()),
        }
        Ok(Stored { folder, files })
    }

    /// Writes down what a name came to.
    pub(super) fn write(&self, key: &Key, record: &Record) -> Result<(), InstallError> {
        let path = self.record_path(key);
        create_folders(&self.root.join("names"))?;
        let text = serde_json::to_string_pretty(record).expect("texts are always JSON") + "\n";
        Ok(write_atomically(&path, text.as_bytes(), Access::Private)?)
    }

    /// Waits until nobody else fetches what a name stands for. `waiting` is called once if that takes time.
    ///
    /// # Cancellation
    /// Nothing is held.
    pub(super) async fn lock(&self, key: &Key, waiting: impl FnOnce()) -> Result<Lock, InstallError> {
        self.create()?;
        let folder = self.root.join("locks");
        create_folders(&folder)?;
        let path = folder.join(key.file_name());
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(PathError::of("open", &path))?;
        let mut waiting = Some(waiting);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Lock { _file: file }),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(PathError::of("lock", &path)(error).into()),
            }
            if let Some(waiting) = waiting.take() {
                waiting();
            }
            // A lock of the system can only be waited for by blocking a thread, which a stop could not end.
            tokio::time::sleep(LOCK_POLL).await;
        }
    }

    fn package_path(&self, digest: Sha256Digest) -> PathBuf {
        self.root.join("packages").join(digest.to_hex())
    }

    fn record_path(&self, key: &Key) -> PathBuf {
        self.root.join("names").join(key.file_name() + ".json")
    }
}

/// Held while a package is fetched. Ends with its value, or with its process.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

#[allow(
    clippy::disallowed_methods,
    reason = "what is renamed here is a folder; it is whole or removed, and checked when it is opened"
)]
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

fn is_there(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists)
}

fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
