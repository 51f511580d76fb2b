//! Files of plugins that may be run. Those of a local plugin with a checksum are a verified copy, which is kept in the cache: its digest
//! is computed while the files are copied. Without a checksum no file is verified or copied: the original files are executed.

use std::fs;
use std::path::{Path, PathBuf};

use super::InstallError;
use super::file_digests::FileDigests;
use super::local_files::{LocalFiles, is_alone};
use super::package_cache::{CachedPackage, PackageCache, Verification};
use super::package_use::PackageUse;
use super::verify::{copy_file, expected_digest, read_folder};
use crate::fs::{FileError, ScratchFolder, create_private_folders};
use crate::plugin::{Checksum, Platform, Sha256Digest};

/// Files that were verified, or that have no declared checksum. Created in this module only.
#[derive(Debug)]
pub(super) struct CheckedFiles {
    /// Executable or folder that may be run.
    path: PathBuf,
    folder: PathBuf,
    digest: Option<Sha256Digest>,
    _copy: Option<VerifiedCopy>,
}

/// Copy of verified files, which stays while this value exists.
#[derive(Debug)]
enum VerifiedCopy {
    /// Copy that is removed with this value.
    Private { _folder: ScratchFolder },
    /// Copy in the cache.
    Kept { _package_use: Option<PackageUse> },
}

impl CheckedFiles {
    /// Creates the value for a folder in the cache with verified digests.
    pub(super) fn in_cache(folder: PathBuf) -> Self {
        Self { path: folder.clone(), folder, digest: None, _copy: None }
    }

    /// Creates the value for a copy in the cache: its only member is the file, or the folder.
    fn kept(cached: CachedPackage, name: &str, is_file: bool, digest: Sha256Digest) -> Self {
        let path = cached.folder.join(name);
        let folder = if is_file { cached.folder } else { path.clone() };
        let copy = VerifiedCopy::Kept { _package_use: cached.package_use };
        Self { path, folder, digest: Some(digest), _copy: Some(copy) }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn digest(&self) -> Option<Sha256Digest> {
        self.digest
    }
}

/// Parameters of a verification.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChecksumCheck<'a> {
    pub(super) checksum: Option<&'a Checksum>,
    pub(super) platform: Option<Platform>,
    /// Cache that contains the private copies.
    pub(super) cache: &'a PackageCache,
    /// Rule for which files are read that have not changed.
    pub(super) verification: Verification,
}

impl ChecksumCheck<'_> {
    fn expected_digest(&self) -> Result<Option<Sha256Digest>, InstallError> {
        expected_digest(self.checksum, self.platform)
    }

    fn local_files<'f>(&'f self, folder: &'f Path, file: Option<&'f str>) -> LocalFiles<'f> {
        LocalFiles { cache: self.cache, folder, file, verification: self.verification }
    }

    /// Verifies an executable. `plugin_folder` is the folder of a plugin that is declared by its folder. The copy of such an executable
    /// is placed beside links to the other files of `plugin_folder`, which the checksum does not cover; it is kept if there are none.
    pub(super) fn executable(&self, path: &Path, plugin_folder: Option<&Path>) -> Result<CheckedFiles, InstallError> {
        let folder = path.parent().unwrap_or(path);
        let Some(expected) = self.expected_digest()? else {
            return Ok(CheckedFiles { path: path.to_owned(), folder: folder.to_owned(), digest: None, _copy: None });
        };
        let name = path.file_name().unwrap_or(path.as_os_str());
        let is_alone = plugin_folder.map_or(Ok(true), |plugin_folder| is_alone(plugin_folder, name))?;
        let kept_name = name.to_str().filter(|_| is_alone);
        if let Some(name) = kept_name {
            let files = self.local_files(folder, Some(name));
            let found = files.digests()?.file(Path::new(name));
            if found == Some(expected)
                && let Some(cached) = files.kept_copy(expected, name)?
            {
                return Ok(CheckedFiles::kept(cached, name, true, expected));
            }
        }
        let scratch = self.cache.scratch()?;
        let copy = scratch.path().join("plugin");
        create_private_folders(&copy)?;
        let target = copy.join(name);
        let found = copy_file(path, &target)?;
        if found != expected {
            return Err(InstallError::ChecksumMismatch { expected, found, published: None, differing: Box::default() });
        }
        if let Some(name) = kept_name
            && let Some(cached) = self.local_files(folder, Some(name)).keep_copy(expected, name, &copy, &scratch)?
        {
            return Ok(CheckedFiles::kept(cached, name, true, expected));
        }
        if let Some(plugin_folder) = plugin_folder {
            for member in fs::read_dir(plugin_folder).map_err(FileError::of("list", plugin_folder))? {
                let member = member.map_err(FileError::of("list", plugin_folder))?;
                if member.file_name() != name {
                    let link = copy.join(member.file_name());
                    std::os::unix::fs::symlink(member.path(), &link).map_err(FileError::of("create link", &link))?;
                }
            }
        }
        let private = VerifiedCopy::Private { _folder: scratch };
        Ok(CheckedFiles { path: target, folder: copy, digest: Some(found), _copy: Some(private) })
    }

    /// Verifies a whole folder, given by its canonical path.
    pub(super) fn folder(&self, folder: &Path) -> Result<CheckedFiles, InstallError> {
        let Some(expected) = self.expected_digest()? else {
            return Ok(CheckedFiles { path: folder.to_owned(), folder: folder.to_owned(), digest: None, _copy: None });
        };
        let place = fs::canonicalize(self.cache.root()).or_else(|_| {
            fs::canonicalize(self.cache.scratch()?.path())
                .map_err(FileError::of("find", self.cache.root()))
                .map_err(InstallError::from)
        })?;
        if place.starts_with(folder) {
            let reason = "the folder for private copies is inside it";
            return Err(InstallError::NotHashable { path: folder.to_owned(), reason });
        }
        // The copy has the same folder name, for programs that show it.
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or("plugin");
        let files = self.local_files(folder, None);
        self.check_folder(&files.digests()?, expected)?;
        if let Some(cached) = files.kept_copy(expected, name)? {
            return Ok(CheckedFiles::kept(cached, name, false, expected));
        }
        let scratch = self.cache.scratch()?;
        let copy = scratch.path().join("plugin");
        create_private_folders(&copy)?;
        let target = copy.join(name);
        let copied = read_folder(folder, Some(&target), None)?;
        self.check_folder(&copied, expected)?;
        // Without the list, a later mismatch names no files.
        self.cache.keep_folder_files(&copied).ok();
        if let Some(cached) = files.keep_copy(expected, name, &copy, &scratch)? {
            return Ok(CheckedFiles::kept(cached, name, false, expected));
        }
        let private = VerifiedCopy::Private { _folder: scratch };
        Ok(CheckedFiles { path: target.clone(), folder: target, digest: Some(expected), _copy: Some(private) })
    }

    fn check_folder(&self, files: &FileDigests, expected: Sha256Digest) -> Result<(), InstallError> {
        let found = files.checksum_digest();
        if found == expected {
            return Ok(());
        }
        let differing = self.cache.folder_files(expected).map(|known| files.differences(&known).into());
        let differing = differing.unwrap_or_default();
        Err(InstallError::ChecksumMismatch { expected, found, published: None, differing })
    }
}
