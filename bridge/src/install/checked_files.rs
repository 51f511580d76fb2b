//! Files of plugins that may be run. Those of a local plugin with a checksum are a verified copy, which is kept in the cache: its digest
//! is computed while the files are copied. Without a checksum no file is verified or copied: the original files are executed.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::InstallError;
use super::file_digests::FileDigests;
use super::local_files::LocalFiles;
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

    /// Verifies an executable. `plugin_folder` is the folder of a plugin that is declared by its folder. A copy of the executable is kept in
    /// the cache. If the folder has other files, which the checksum does not cover, the copy is copied beside links to them, without being
    /// read again.
    pub(super) fn executable(&self, path: &Path, plugin_folder: Option<&Path>) -> Result<CheckedFiles, InstallError> {
        let folder = path.parent().unwrap_or(path);
        let Some(expected) = self.expected_digest()? else {
            return Ok(CheckedFiles { path: path.to_owned(), folder: folder.to_owned(), digest: None, _copy: None });
        };
        let name = path.file_name().unwrap_or(path.as_os_str());
        let siblings = plugin_folder.map(|folder| siblings(folder, name)).transpose()?.unwrap_or_default();
        let scratch = self.cache.scratch()?;
        let copy = scratch.path().join("plugin");
        create_private_folders(&copy)?;
        let kept = match name.to_str() {
            Some(name) => self.kept_executable(folder, name, expected, &copy, &scratch)?,
            None => None,
        };
        match kept {
            Some((cached, name)) if siblings.is_empty() => return Ok(CheckedFiles::kept(cached, name, true, expected)),
            Some((cached, name)) => {
                let (kept, target) = (cached.folder.join(name), copy.join(name));
                create_private_folders(&copy)?;
                fs::copy(&kept, &target).map_err(FileError::of("copy", &kept))?;
            }
            None if copy.join(name).exists() => {}
            None => check_copied(copy_file(path, &copy.join(name))?, expected)?,
        }
        for sibling in siblings {
            let link = copy.join(sibling.file_name().unwrap_or_default());
            std::os::unix::fs::symlink(&sibling, &link).map_err(FileError::of("create link", &link))?;
        }
        let private = VerifiedCopy::Private { _folder: scratch };
        Ok(CheckedFiles { path: copy.join(name), folder: copy, digest: Some(expected), _copy: Some(private) })
    }

    /// Returns the copy of an executable that is kept in the cache, if the original has not changed; else copies the original to the folder
    /// `copy`, verifies it, and keeps that. `None` if it cannot be kept: then it is in the folder.
    fn kept_executable<'n>(
        &self,
        folder: &Path,
        name: &'n str,
        expected: Sha256Digest,
        copy: &Path,
        scratch: &ScratchFolder,
    ) -> Result<Option<(CachedPackage, &'n str)>, InstallError> {
        let files = self.local_files(folder, Some(name));
        if files.digests()?.file(Path::new(name)) == Some(expected)
            && let Some(cached) = files.kept_copy(expected, name)?
        {
            return Ok(Some((cached, name)));
        }
        check_copied(copy_file(&folder.join(name), &copy.join(name))?, expected)?;
        Ok(files.keep_copy(expected, name, copy, scratch)?.map(|cached| (cached, name)))
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

fn check_copied(found: Sha256Digest, expected: Sha256Digest) -> Result<(), InstallError> {
    if found == expected {
        return Ok(());
    }
    Err(InstallError::ChecksumMismatch { expected, found, published: None, differing: Box::default() })
}

/// Returns the paths of the members of a folder beside a file.
fn siblings(folder: &Path, file: &OsStr) -> Result<Vec<PathBuf>, InstallError> {
    let members = fs::read_dir(folder).map_err(FileError::of("list", folder))?;
    let paths = members.map(|member| member.map(|member| member.path()).map_err(FileError::of("list", folder)));
    let paths: Result<Vec<PathBuf>, FileError> = paths.collect();
    Ok(paths?.into_iter().filter(|path| path.file_name() != Some(file)).collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// Shows: plugins.md#local "is copied from there beside links to them at each start, and not read again"
    #[test]
    fn executable_beside_other_files_is_kept_and_copied_beside_links() {
        let root = tempfile::tempdir().unwrap();
        let (folder, cache) = (root.path().join("plugin"), PackageCache::new(root.path().join("cache")));
        fs::create_dir_all(folder.join("data")).unwrap();
        let program = folder.join("reef");
        fs::write(&program, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(folder.join("other"), "other").unwrap();
        let expected = Sha256Digest::of("#!/bin/sh\n");
        let checksum = Checksum::One(expected);
        let verification = Verification::default();
        let check = ChecksumCheck { checksum: Some(&checksum), platform: None, cache: &cache, verification };
        for _ in 0..2 {
            let checked = check.executable(&program, Some(&folder)).unwrap();
            assert_eq!(fs::read_to_string(checked.path()).unwrap(), "#!/bin/sh\n");
            assert_eq!(fs::metadata(checked.path()).unwrap().permissions().mode() & 0o777, 0o500);
            assert_eq!(fs::read_link(checked.folder().join("other")).unwrap(), folder.join("other"));
            assert!(checked.folder().join("data").is_dir() && !checked.folder().starts_with(&folder));
            let files = LocalFiles { cache: &cache, folder: &folder, file: Some("reef"), verification };
            assert!(files.kept_copy(expected, "reef").unwrap().is_some(), "the cache has it");
        }
        fs::write(&program, "#!/bin/sh\nx\n").unwrap();
        assert!(matches!(
            check.executable(&program, Some(&folder)),
            Err(InstallError::ChecksumMismatch { expected: known, .. }) if known == expected
        ));
    }
}
