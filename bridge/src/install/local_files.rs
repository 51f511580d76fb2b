//! Files of local plugins: their digests, for which only changed files are read, and verified copies of them, which are kept in the
//! cache.

use std::path::{Path, PathBuf};

use super::InstallError;
use super::cache_key::CacheKey;
use super::file_digests::{FileDigests, FileKind};
use super::fingerprint::{FileTime, Fingerprint, FingerprintScope};
use super::package_cache::{CachedPackage, Lookup, MAX_FINGERPRINT_BYTES, PackageCache, Verification};
use super::verify::{hash_file, read_folder};
use crate::fs::{Access, ScratchFolder, check_trusted_below, create_private_folders, read_if_exists, write_atomically};
use crate::plugin::Sha256Digest;

/// Name of the folder of the cache with the fingerprints of local files.
const LOCALS: &str = "locals";

/// Files of a local plugin: a folder, or one file of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalFiles<'a> {
    pub(super) cache: &'a PackageCache,
    /// Canonical path of the folder.
    pub(super) folder: &'a Path,
    /// Name of the file; `None` for all files.
    pub(super) file: Option<&'a str>,
    pub(super) verification: Verification,
}

impl LocalFiles<'_> {
    fn scope(&self) -> FingerprintScope<'_> {
        self.file.map_or(FingerprintScope::LocalFolder, FingerprintScope::File)
    }

    /// Returns the digests of the files. Reads those that have changed since the last time.
    pub(super) fn digests(&self) -> Result<FileDigests, InstallError> {
        let path = self.fingerprint_path();
        let known = self.known(&path)?.filter(|_| self.verification != Verification::Always);
        let known = match known {
            // Whether the target of a link may be trusted, its folder does not tell.
            Some(known) if !known.has_links() && known.is_current(self.scope(), self.folder)? => {
                return Ok(known.into_digests());
            }
            known => known,
        };
        // A cache that cannot be written, such as that of an image, gets no fingerprint.
        let Ok(scratch) = self.cache.scratch() else { return self.read(None) };
        let (begun, before) = (FileTime::now(scratch.path())?, self.scope().statuses(self.folder)?);
        let files = self.read(known.as_ref())?;
        if let Ok(taken) = Fingerprint::take(self.scope(), self.folder, files.clone(), begun, Vec::new())
            && taken.has(&before)
        {
            let kept = create_private_folders(&self.cache.root().join(LOCALS));
            kept.and_then(|()| write_atomically(&path, taken.to_text().as_bytes(), Access::Private)).ok();
        }
        Ok(files)
    }

    fn read(&self, known: Option<&Fingerprint>) -> Result<FileDigests, InstallError> {
        let Some(file) = self.file else { return read_folder(self.folder, None, known) };
        let mut digests = FileDigests::default();
        let path = self.folder.join(file);
        digests.add(self.folder, &path, hash_file(&path)?, FileKind::Plain)?;
        Ok(digests)
    }

    fn known(&self, path: &Path) -> Result<Option<Fingerprint>, InstallError> {
        check_trusted_below(self.cache.root(), path)?;
        let Some(text) = read_if_exists(path, MAX_FINGERPRINT_BYTES)? else { return Ok(None) };
        Ok(std::str::from_utf8(&text).ok().and_then(Fingerprint::parse))
    }

    fn fingerprint_path(&self) -> PathBuf {
        let path = self.folder.join(self.file.unwrap_or_default());
        let name = Sha256Digest::of(path.as_os_str().as_encoded_bytes()).to_hex();
        self.cache.root().join(LOCALS).join(name)
    }

    /// Returns the kept copy of files with a checksum. `name` is that of the folder, or of the file.
    pub(super) fn kept_copy(&self, checksum: Sha256Digest, name: &str) -> Result<Option<CachedPackage>, InstallError> {
        match self.cache.open(&self.copy_key(checksum, name), self.verification)? {
            Lookup::Valid(_, cached) => Ok(Some(cached)),
            Lookup::Missing | Lookup::Damaged => Ok(None),
        }
    }

    /// Keeps a verified copy of files, which is in a folder `copy` of its own. Returns `None` if a package cannot have these files, such as
    /// a link to an interpreter of this machine; the copy stays where it is then.
    pub(super) fn keep_copy(
        &self,
        checksum: Sha256Digest,
        name: &str,
        copy: &Path,
        scratch: &ScratchFolder,
    ) -> Result<Option<CachedPackage>, InstallError> {
        let key = self.copy_key(checksum, name);
        let files = match FileDigests::of(copy) {
            Ok(files) => files,
            Err(InstallError::NotHashable { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        if matches!(self.cache.open(&key, Verification::Changed)?, Lookup::Damaged) {
            self.cache.remove_damaged(&key)?;
        }
        let (begun, _) = FileTime::after_changes_of(copy, None, scratch.path())?;
        let cached = self.cache.publish(copy, files, begun, None)?;
        self.cache.write_entry(&key, &key.new_entry(&checksum.to_string(), None, cached.files.cache_digest()))?;
        Ok(Some(cached))
    }

    fn copy_key(&self, checksum: Sha256Digest, name: &str) -> CacheKey {
        let kind = if self.file.is_some() { "local file" } else { "local folder" };
        CacheKey::new([kind, &checksum.to_hex(), name])
    }
}
