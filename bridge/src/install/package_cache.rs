//! Cache of packages, addressed by the digest of their files and shared by all runs on this machine.
//!
//! ```text
//! packages/<digest>/    files of a package, read-only; the digest covers the files and their executable bits
//! fingerprints/<digest> what the file system says about them, see `fingerprint`
//! locals/<key>          the same for a local folder or file with a checksum, see `local_files`
//! names/<key>.json      entry of a declaration: revision, digest of the download, digest of the package
//! downloads/<digest>    archive that was unpacked into a package; the digest is that of its bytes
//! locks/<key>           lock file, held while a run fetches the package of the key
//! folders/<digest>      list of the files of a local folder with this checksum, for the message of a later mismatch
//! uses/<digest>         mark of a package: the time of its last use, locked while a process uses it
//! types/<key>           information about the types of a package, written by `host::package_types`
//! work/                 unfinished packages, see `ScratchFolder`
//! ```
//! A package is created in `work` and renamed into `packages`, so it is complete or absent. It is flushed to disk before its
//! fingerprint is written. Each run that opens it compares its files with the fingerprint, and hashes those that differ: a package
//! that was damaged, by a power failure or by hand, is fetched again and never executed. An entry is written after its package.
//!
//! The evidence that a package has a declared checksum is the package itself, or the archive: it has the checksum, and contains the
//! same files. The fingerprint records that the archive was compared. Whoever can write it can write the package as well.
//!
//! Everything in the cache is created for the current user only. A cache that another user could have changed is
//! refused, see [`crate::fs::check_trusted`].

use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

use super::InstallError;
use super::cache_key::{CacheEntry, CacheKey};
use super::file_digests::{FileDigests, hash_while_reading};
use super::fingerprint::{FileTime, Fingerprint, FingerprintScope};
use super::package_use::{PACKAGES, PackageUse, USES, package_folders};
use super::unpack::DownloadedFile;
use crate::fs::{
    Access, FileError, MAX_DOCUMENT_BYTES, ScratchFolder, check_trusted_below, create_private_folders, open_regular,
    read_if_exists, withdraw_access, without_waiting, write_atomically,
};
use crate::json;
use crate::plugin::Sha256Digest;

/// Name of the folder for unfinished packages.
const WORK: &str = "work";
/// Name of the folder for lists of files.
const FOLDERS: &str = "folders";
/// Name of the folder for fingerprints.
const FINGERPRINTS: &str = "fingerprints";
/// Maximum size of a fingerprint, which has a line for each file.
pub(super) const MAX_FINGERPRINT_BYTES: u64 = 256 << 20;
/// Interval between two attempts to take a lock.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Cache of packages.
#[derive(Clone, Debug)]
pub(super) struct PackageCache {
    root: PathBuf,
}

/// Rule for which files of packages in the cache a start reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verification {
    /// Files that differ from the fingerprint of their package.
    #[default]
    Changed,
    /// All files.
    Always,
    /// No file of a package that has a fingerprint, even if they differ from it.
    Never,
}

/// Cached package with verified files.
#[derive(Debug)]
pub(super) struct CachedPackage {
    /// Folder of the package.
    pub(super) folder: PathBuf,
    /// Digests of its files.
    pub(super) files: FileDigests,
    /// Digests of archives that were found to have exactly these files.
    pub(super) downloads: Vec<Sha256Digest>,
    /// Use of the package, so that it is not removed.
    pub(super) package_use: Option<PackageUse>,
}

/// Result of a search for a key.
#[derive(Debug)]
pub(super) enum Lookup {
    Missing,
    /// The files of the package have changed.
    Damaged,
    Valid(CacheEntry, CachedPackage),
}

impl PackageCache {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Returns the folder of the cache.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the entry of a key. Returns `None` if the entry is missing or malformed.
    pub(super) fn entry(&self, key: &CacheKey) -> Result<Option<CacheEntry>, InstallError> {
        let path = self.entry_path(key);
        check_trusted_below(&self.root, &path)?;
        let Some(text) = read_if_exists(&path, MAX_DOCUMENT_BYTES)? else { return Ok(None) };
        let entry: Option<CacheEntry> = json::from_slice(&text).ok();
        Ok(entry.filter(|entry| entry.key == key.0))
    }

    /// Returns all entries with their keys. Malformed ones are left out.
    pub(super) fn entries(&self) -> Result<Vec<(CacheKey, CacheEntry)>, InstallError> {
        let folder = self.root.join("names");
        check_trusted_below(&self.root, &folder)?;
        let names = match fs::read_dir(&folder) {
            Ok(names) => names,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(FileError::of("list", &folder)(error).into()),
        };
        let mut entries = Vec::new();
        for name in names {
            let path = name.map_err(FileError::of("list", &folder))?.path();
            let Some(text) = read_if_exists(&path, MAX_DOCUMENT_BYTES)? else { continue };
            let Ok(CacheEntry { key, .. }) = json::from_slice(&text) else { continue };
            let key = CacheKey(key);
            let entry = self.entry(&key)?;
            entries.extend(entry.map(|entry| (key, entry)));
        }
        Ok(entries)
    }

    /// Returns the list of the files of a folder with a checksum, if it was kept.
    pub(super) fn folder_files(&self, checksum: Sha256Digest) -> Option<String> {
        let path = self.folder_files_path(checksum);
        check_trusted_below(&self.root, &path).ok()?;
        let text = String::from_utf8(read_if_exists(&path, MAX_DOCUMENT_BYTES).ok()??).ok()?;
        (Sha256Digest::of(&text) == checksum).then_some(text)
    }

    /// Keeps the list of the files of a folder whose checksum was verified.
    ///
    /// # Errors
    /// [`InstallError`].
    pub(super) fn keep_folder_files(&self, files: &FileDigests) -> Result<(), InstallError> {
        let lines = files.checksum_lines();
        let path = self.folder_files_path(files.checksum_digest());
        if path.exists() || lines.len() as u64 > MAX_DOCUMENT_BYTES {
            return Ok(());
        }
        create_private_folders(&self.root.join(FOLDERS))?;
        Ok(write_atomically(&path, lines.as_bytes(), Access::Private)?)
    }

    fn folder_files_path(&self, checksum: Sha256Digest) -> PathBuf {
        self.root.join(FOLDERS).join(checksum.to_hex())
    }

    /// Returns the entry of a key whose package is there. Does not read the files of the package.
    pub(super) fn find_entry(&self, key: &CacheKey) -> Result<Option<CacheEntry>, InstallError> {
        let entry = self.entry(key)?;
        Ok(entry.filter(|entry| self.package_path(entry.package_digest).is_dir()))
    }

    /// Finds the package of a key and verifies its files, by a rule for what is read. Reading takes time for a large package.
    pub(super) fn open(&self, key: &CacheKey, verification: Verification) -> Result<Lookup, InstallError> {
        let Some(entry) = self.entry(key)? else { return Ok(Lookup::Missing) };
        let folder = self.package_path(entry.package_digest);
        check_trusted_below(&self.root, &folder)?;
        if !folder.is_dir() {
            return Ok(Lookup::Missing);
        }
        let package_use = PackageUse::begin(&self.root, entry.package_digest);
        match self.verified_files(&folder, entry.package_digest, verification) {
            Ok(Some((files, downloads))) => {
                Ok(Lookup::Valid(entry, CachedPackage { folder, files, downloads, package_use }))
            }
            Ok(None) | Err(InstallError::NotHashable { .. }) => Ok(Lookup::Damaged),
            Err(InstallError::Path(error)) if error.source.kind() == io::ErrorKind::NotFound => Ok(Lookup::Damaged),
            // A read error does not mean that the package is damaged.
            Err(error) => Err(error),
        }
    }

    /// Returns the digests of the files of a package, and of the archives that have them; `None` if they are not those of the package
    /// digest. Takes the fingerprint anew if files had to be read.
    fn verified_files(
        &self,
        folder: &Path,
        package_digest: Sha256Digest,
        verification: Verification,
    ) -> Result<Option<(FileDigests, Vec<Sha256Digest>)>, InstallError> {
        let known = self.fingerprint(package_digest)?;
        let is_current = |known: &Fingerprint| match verification {
            Verification::Changed => known.is_current(FingerprintScope::Package, folder),
            Verification::Always => Ok(false),
            Verification::Never => Ok(true),
        };
        let known = match known {
            Some(known) if is_current(&known)? => {
                let downloads = known.downloads.clone();
                return Ok(Some((known.into_digests(), downloads)));
            }
            known => known,
        };
        // They are about digests, which the file system does not change.
        let downloads = known.as_ref().map(|known| known.downloads.clone()).unwrap_or_default();
        let known = known.filter(|_| verification == Verification::Changed);
        // A cache that cannot be written, such as that of an image, keeps its fingerprint.
        let scratch = self.scratch().ok();
        let begun = scratch.as_ref().and_then(|scratch| FileTime::now(scratch.path()).ok());
        let files = FileDigests::of_changed(folder, &|path, metadata| known.as_ref()?.known(path, metadata))?;
        if files.cache_digest() != package_digest {
            return Ok(None);
        }
        if let Some(begun) = begun {
            self.keep_fingerprint(folder, package_digest, &files, begun, downloads.clone()).ok();
        }
        Ok(Some((files, downloads)))
    }

    /// Returns the fingerprint of a package, if there is one.
    fn fingerprint(&self, package_digest: Sha256Digest) -> Result<Option<Fingerprint>, InstallError> {
        let path = self.fingerprint_path(package_digest);
        check_trusted_below(&self.root, &path)?;
        let Some(text) = read_if_exists(&path, MAX_FINGERPRINT_BYTES)? else { return Ok(None) };
        Ok(std::str::from_utf8(&text).ok().and_then(Fingerprint::parse))
    }

    /// Takes the fingerprint of a package, as [`Fingerprint::take`], and flushes its files first.
    fn keep_fingerprint(
        &self,
        folder: &Path,
        package_digest: Sha256Digest,
        files: &FileDigests,
        begun: FileTime,
        downloads: Vec<Sha256Digest>,
    ) -> Result<(), InstallError> {
        let fingerprint = Fingerprint::take(FingerprintScope::Package, folder, files.clone(), begun, downloads)?;
        // A loss of power must not leave the fingerprint of files that are not there.
        flush_files(folder)?;
        self.write_fingerprint(package_digest, &fingerprint)
    }

    fn write_fingerprint(&self, package_digest: Sha256Digest, fingerprint: &Fingerprint) -> Result<(), InstallError> {
        create_private_folders(&self.root.join(FINGERPRINTS))?;
        let path = self.fingerprint_path(package_digest);
        Ok(write_atomically(&path, fingerprint.to_text().as_bytes(), Access::Private)?)
    }

    /// Records that an archive has exactly the files of a package.
    pub(super) fn add_download(
        &self,
        package_digest: Sha256Digest,
        download: Sha256Digest,
    ) -> Result<(), InstallError> {
        let Some(mut fingerprint) = self.fingerprint(package_digest)? else { return Ok(()) };
        if !fingerprint.downloads.contains(&download) {
            fingerprint.downloads.push(download);
            self.write_fingerprint(package_digest, &fingerprint)?;
        }
        Ok(())
    }

    /// Returns the digests of the files in the archive that has the digest `download`. Hashes and decompresses the
    /// archive. Returns `None` if the cache does not have it, or if its bytes or its format are damaged.
    pub(super) fn files_of_download(&self, download: Sha256Digest) -> Result<Option<FileDigests>, InstallError> {
        let path = self.download_path(download);
        check_trusted_below(&self.root, &path)?;
        let mut file = match open_regular(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(FileError::of("read", &path)(error).into()),
        };
        if hash_while_reading(&mut file, &path, |_| Ok(()))? != download {
            return Ok(None);
        }
        match (DownloadedFile { name: "the archive in the cache", path: &path }).file_digests() {
            Ok(files) => Ok(Some(files)),
            Err(InstallError::Archive { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Moves an archive that has the digest `download` from a scratch folder into the cache.
    pub(super) fn keep_download(&self, archive: &Path, download: Sha256Digest) -> Result<(), InstallError> {
        let path = self.download_path(download);
        create_private_folders(&self.root.join("downloads"))?;
        fs::set_permissions(archive, Permissions::from_mode(0o400)).map_err(FileError::of("make private", archive))?;
        Ok(rename(archive, &path).map_err(FileError::of("create", &path))?)
    }

    /// Removes the entry of a key, and its package if it is damaged: another run may have replaced it since. Running processes keep
    /// their open files.
    pub(super) fn remove_damaged(&self, key: &CacheKey) -> Result<(), InstallError> {
        let entry = self.entry(key)?;
        let _lock = entry.as_ref().map(|entry| self.lock_package(entry.package_digest)).transpose()?;
        if let Some(entry) = entry
            && !matches!(self.open(key, Verification::Changed), Ok(Lookup::Valid(..)))
        {
            let removed = self.scratch()?;
            let package = self.package_path(entry.package_digest);
            let moved = rename(&package, &removed.path().join("package"));
            ignore_missing(moved).map_err(FileError::of("remove", &package))?;
            let fingerprint = self.fingerprint_path(entry.package_digest);
            ignore_missing(fs::remove_file(&fingerprint)).map_err(FileError::of("remove", &fingerprint))?;
        }
        let name = self.entry_path(key);
        Ok(ignore_missing(fs::remove_file(&name)).map_err(FileError::of("remove", &name))?)
    }

    /// Creates a folder for an unfinished package.
    pub(super) fn scratch(&self) -> Result<ScratchFolder, InstallError> {
        self.create()?;
        Ok(ScratchFolder::new(&self.root.join(WORK))?)
    }

    /// Creates the folder of the cache with access for the current user only.
    ///
    /// # Errors
    /// [`InstallError::Trust`] if another user could have added files to the cache.
    fn create(&self) -> Result<(), InstallError> {
        create_private_folders(&self.root)?;
        for folder in [WORK, PACKAGES, FINGERPRINTS, "names", "locks", "downloads", USES] {
            check_trusted_below(&self.root, &self.root.join(folder))?;
        }
        let metadata = fs::metadata(&self.root).map_err(FileError::of("read", &self.root))?;
        // The permissions of a cache that belongs to root cannot be changed.
        if metadata.uid() == rustix::process::geteuid().as_raw() {
            withdraw_access(&self.root)?;
        }
        Ok(())
    }

    /// Moves a package from a scratch folder to `packages`, flushes it to disk and takes its fingerprint. An identical package that
    /// exists already is kept; a damaged one is replaced. `begun` is a time before its files were read, and `download` the digest of
    /// its archive.
    pub(super) fn publish(
        &self,
        source: &Path,
        files: FileDigests,
        begun: FileTime,
        download: Option<Sha256Digest>,
    ) -> Result<CachedPackage, InstallError> {
        let digest = files.cache_digest();
        let folder = self.package_path(digest);
        create_private_folders(&package_folders(&self.root))?;
        let _lock = self.lock_package(digest)?;
        let package_use = PackageUse::begin(&self.root, digest);
        match rename(source, &folder) {
            Ok(()) => {}
            Err(error) if is_existing_folder(&error) => {
                let is_valid = FileDigests::of(&folder).is_ok_and(|existing| existing.cache_digest() == digest);
                if !is_valid {
                    let removed = self.scratch()?;
                    let moved = rename(&folder, &removed.path().join("package"));
                    ignore_missing(moved).map_err(FileError::of("remove", &folder))?;
                    match rename(source, &folder) {
                        // Another run has published it meanwhile.
                        Err(error) if is_existing_folder(&error) => {}
                        other => other.map_err(FileError::of("create", &folder))?,
                    }
                }
            }
            Err(error) => return Err(FileError::of("create", &folder)(error).into()),
        }
        // The package may be there because another archive has the same files.
        let mut downloads = self.fingerprint(digest)?.map(|known| known.downloads).unwrap_or_default();
        downloads.extend(download.filter(|download| !downloads.contains(download)));
        self.keep_fingerprint(&folder, digest, &files, begun, downloads.clone())?;
        Ok(CachedPackage { folder, files, downloads, package_use })
    }

    /// Writes the entry of a key.
    pub(super) fn write_entry(&self, key: &CacheKey, entry: &CacheEntry) -> Result<(), InstallError> {
        let path = self.entry_path(key);
        create_private_folders(&self.root.join("names"))?;
        let text = serde_json::to_string_pretty(entry).expect("texts are always JSON") + "\n";
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
        create_private_folders(&folder)?;
        let path = folder.join(key.file_name());
        let mut options = File::options();
        options.create(true).truncate(false).write(true).mode(0o600);
        without_waiting(&mut options);
        let file = options.open(&path).map_err(FileError::of("open", &path))?;
        let mut waiting = Some(waiting);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Lock { _file: file }),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(FileError::of("lock", &path)(error).into()),
            }
            if let Some(waiting) = waiting.take() {
                waiting();
            }
            // A blocking wait for the lock could not be cancelled.
            tokio::time::sleep(LOCK_POLL_INTERVAL).await;
        }
    }

    /// Takes the lock of a package, which several keys may have, so that one run at a time replaces it. Waits for a rename and a read at
    /// most.
    fn lock_package(&self, package_digest: Sha256Digest) -> Result<Lock, InstallError> {
        let folder = self.root.join("locks");
        create_private_folders(&folder)?;
        let path = folder.join(package_digest.to_hex());
        let mut options = File::options();
        options.create(true).truncate(false).write(true).mode(0o600);
        without_waiting(&mut options);
        let file = options.open(&path).map_err(FileError::of("open", &path))?;
        file.lock().map_err(FileError::of("lock", &path))?;
        Ok(Lock { _file: file })
    }

    /// Returns the folder of a package.
    pub(super) fn package_path(&self, digest: Sha256Digest) -> PathBuf {
        package_folders(&self.root).join(digest.to_hex())
    }

    pub(super) fn fingerprint_path(&self, package_digest: Sha256Digest) -> PathBuf {
        self.root.join(FINGERPRINTS).join(package_digest.to_hex())
    }

    pub(super) fn download_path(&self, digest: Sha256Digest) -> PathBuf {
        self.root.join("downloads").join(digest.to_hex())
    }

    pub(super) fn entry_path(&self, key: &CacheKey) -> PathBuf {
        self.root.join("names").join(key.file_name() + ".json")
    }
}

/// Lock of a key. Released when it is dropped, or when the process ends.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

#[expect(
    clippy::disallowed_methods,
    reason = "packages and archives; a renamed one is complete or absent, and is verified when it is opened"
)]
pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

/// Flushes the file system of a package to disk: one call, however many files it has.
#[cfg(target_os = "linux")]
fn flush_files(package: &Path) -> Result<(), InstallError> {
    let flushed = open_folder(package).and_then(rustix::fs::syncfs);
    Ok(flushed.map_err(io::Error::from).map_err(FileError::of("flush", package))?)
}

/// Flushes the files of a package to disk: its folders, and what is in them.
#[cfg(not(target_os = "linux"))]
fn flush_files(package: &Path) -> Result<(), InstallError> {
    for member in fs::read_dir(package).map_err(FileError::of("list", package))? {
        let member = member.map_err(FileError::of("list", package))?;
        let (path, kind) = (member.path(), member.file_type().map_err(FileError::of("read", package))?);
        if kind.is_dir() {
            flush_files(&path)?;
        } else if kind.is_file() {
            open_regular(&path).and_then(|file| file.sync_all()).map_err(FileError::of("flush", &path))?;
        }
    }
    let flushed = open_folder(package).and_then(rustix::fs::fsync);
    Ok(flushed.map_err(io::Error::from).map_err(FileError::of("flush", package))?)
}

fn open_folder(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

fn is_existing_folder(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists)
}

pub(super) fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
