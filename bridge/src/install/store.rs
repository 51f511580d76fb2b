//! Cache of packages, addressed by the digest of their files and shared by all runs on this machine.
//!
//! ```text
//! packages/<digest>/    files of a package, read-only; the digest covers the files and their executable bits
//! names/<key>.json      record of a fetched declaration: revision, digest of the download, digest of the package
//! locks/<key>           lock file, held while a run fetches the package of the key
//! components/<digest>   component types of a package (written by the host)
//! work/                 unfinished packages, see `ScratchFolder`
//! ```
//! A package is created in `work` and renamed into `packages`, so it is complete or absent. Each run that opens it
//! hashes all its files: a package that was damaged, by a power failure or by hand, is fetched again and never
//! executed. Therefore files are not flushed to disk. A record is written after its package.

use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::InstallError;
use super::tree::FileDigests;
use crate::fs::{Access, PathError, ScratchFolder, create_folders, read_if_exists, write_atomically};
use crate::plugin::Sha256Digest;

/// Name of the folder for unfinished packages.
pub(super) const WORK: &str = "work";
/// Interval between two attempts to take a lock.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Cache of packages.
#[derive(Clone, Debug)]
pub(super) struct Store {
    root: PathBuf,
}

/// Key of a declaration. Stored in plain text, so it must not contain credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CacheKey(String);

impl CacheKey {
    /// Creates a key from the parts that identify the declaration.
    pub(super) fn new<'a>(parts: impl IntoIterator<Item = &'a str>) -> Self {
        Self(parts.into_iter().collect::<Vec<_>>().join("\n"))
    }

    /// Creates the record of a fetched package.
    pub(super) fn record(&self, revision: &str, download: Option<Sha256Digest>, package: Sha256Digest) -> Record {
        Record { of: self.0.clone(), revision: revision.to_owned(), download, package }
    }

    fn file_name(&self) -> String {
        Sha256Digest::of(&self.0).to_hex()
    }
}

/// Record of a fetched declaration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// Text of the key.
    pub(super) of: String,
    /// Tag of the release, or full id of the commit.
    pub(super) revision: String,
    /// Digest of the downloaded file. `None` for git.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) download: Option<Sha256Digest>,
    /// Digest of its files, see [`FileDigests::identity`].
    pub(super) package: Sha256Digest,
}

/// Cached package with verified files.
#[derive(Debug)]
pub(super) struct StoredPackage {
    /// Folder of the package.
    pub(super) folder: PathBuf,
    /// Digests of its files.
    pub(super) files: FileDigests,
}

/// Result of a search for a key.
#[derive(Debug)]
pub(super) enum Lookup {
    Missing,
    /// The files of the package have changed.
    Damaged,
    Valid(Record, StoredPackage),
}

impl Store {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Returns the record of a key. Returns `None` for a malformed record.
    pub(super) fn record(&self, key: &CacheKey) -> Result<Option<Record>, InstallError> {
        let Some(text) = read_if_exists(&self.record_path(key))? else { return Ok(None) };
        let record: Option<Record> = serde_json::from_slice(&text).ok();
        Ok(record.filter(|record| record.of == key.0))
    }

    /// Finds the package of a key and hashes its files, which takes time for a large package.
    pub(super) fn open(&self, key: &CacheKey) -> Result<Lookup, InstallError> {
        let Some(record) = self.record(key)? else { return Ok(Lookup::Missing) };
        let folder = self.package_path(record.package);
        if !folder.is_dir() {
            return Ok(Lookup::Missing);
        }
        match FileDigests::of(&folder) {
            Ok(files) if files.identity() == record.package => {
                Ok(Lookup::Valid(record, StoredPackage { folder, files }))
            }
            Ok(_) | Err(InstallError::NotHashable { .. }) => Ok(Lookup::Damaged),
            Err(InstallError::Path(error)) if error.source.kind() == io::ErrorKind::NotFound => Ok(Lookup::Damaged),
            // A read error does not mean that the package is damaged.
            Err(error) => Err(error),
        }
    }

    /// Removes the package and the record of a key. Running processes keep their open files.
    pub(super) fn remove(&self, key: &CacheKey) -> Result<(), InstallError> {
        if let Some(record) = self.record(key)? {
            let removed = self.scratch()?;
            let package = self.package_path(record.package);
            let moved = rename(&package, &removed.path().join("package"));
            ignore_missing(moved).map_err(PathError::of("remove", &package))?;
        }
        let name = self.record_path(key);
        Ok(ignore_missing(fs::remove_file(&name)).map_err(PathError::of("remove", &name))?)
    }

    /// Creates a folder for an unfinished package.
    pub(super) fn scratch(&self) -> Result<ScratchFolder, InstallError> {
        self.create()?;
        Ok(ScratchFolder::new(&self.root.join(WORK))?)
    }

    /// Creates the folder of the cache with access for the current user only.
    fn create(&self) -> Result<(), InstallError> {
        create_folders(&self.root)?;
        let mode = fs::metadata(&self.root).map_err(PathError::of("read", &self.root))?.permissions().mode();
        if mode & 0o077 != 0 {
            let private = fs::set_permissions(&self.root, Permissions::from_mode(0o700));
            private.map_err(PathError::of("make private", &self.root))?;
        }
        Ok(())
    }

    /// Moves a package from a scratch folder to `packages`. An identical package that exists already is kept.
    pub(super) fn publish(&self, source: &Path, files: FileDigests) -> Result<StoredPackage, InstallError> {
        let digest = files.identity();
        let folder = self.package_path(digest);
        create_folders(&self.root.join("packages"))?;
        match rename(source, &folder) {
            Ok(()) => {}
            Err(error) if is_existing_folder(&error) => {
                let is_valid = FileDigests::of(&folder).is_ok_and(|existing| existing.identity() == digest);
                if !is_valid {
                    let removed = self.scratch()?;
                    let moved = rename(&folder, &removed.path().join("package"));
                    ignore_missing(moved).map_err(PathError::of("remove", &folder))?;
                    match rename(source, &folder) {
                        // Another run has published it meanwhile.
                        Err(error) if is_existing_folder(&error) => {}
                        other => other.map_err(PathError::of("create", &folder))?,
                    }
                }
            }
            Err(error) => return Err(PathError::of("create", &folder)(error).into()),
        }
        Ok(StoredPackage { folder, files })
    }

    /// Writes the record of a key.
    pub(super) fn write(&self, key: &CacheKey, record: &Record) -> Result<(), InstallError> {
        let path = self.record_path(key);
        create_folders(&self.root.join("names"))?;
        let text = serde_json::to_string_pretty(record).expect("texts are always JSON") + "\n";
        Ok(write_atomically(&path, text.as_bytes(), Access::Private)?)
    }

    /// Takes the lock of a key, so that one run at a time fetches its package. `waiting` is called once if the lock is
    /// held.
    ///
    /// # Cancellation
    /// The lock is not held.
    pub(super) async fn lock(&self, key: &CacheKey, waiting: impl FnOnce()) -> Result<Lock, InstallError> {
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
            // A blocking wait for the lock could not be cancelled.
            tokio::time::sleep(LOCK_POLL_INTERVAL).await;
        }
    }

    fn package_path(&self, digest: Sha256Digest) -> PathBuf {
        self.root.join("packages").join(digest.to_hex())
    }

    fn record_path(&self, key: &CacheKey) -> PathBuf {
        self.root.join("names").join(key.file_name() + ".json")
    }
}

/// Lock of a key. Released when it is dropped, or when the process ends.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

#[allow(
    clippy::disallowed_methods,
    reason = "folders only; a renamed folder is complete or absent, and is verified when it is opened"
)]
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

fn is_existing_folder(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists)
}

fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
