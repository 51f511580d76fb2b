//! Packages of a cache as a whole: which there are, their archives, and their removal with all that belongs to them.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use super::InstallError;
use super::package_cache::{PackageCache, ignore_missing, rename};
use super::package_use::{mark_path, package_folders};
use crate::fs::{FileError, check_trusted_below};
use crate::plugin::Sha256Digest;

impl PackageCache {
    /// Returns the digests of all packages.
    pub(super) fn packages(&self) -> Result<Vec<Sha256Digest>, InstallError> {
        let folder = package_folders(self.root());
        check_trusted_below(self.root(), &folder)?;
        let members = match fs::read_dir(&folder) {
            Ok(members) => members,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(FileError::of("list", &folder)(error).into()),
        };
        let mut packages = Vec::new();
        for member in members {
            let name = member.map_err(FileError::of("list", &folder))?.file_name();
            packages.extend(name.to_str().and_then(|name| name.parse::<Sha256Digest>().ok()));
        }
        Ok(packages)
    }

    /// Returns the size of a kept archive, in bytes.
    pub(super) fn download_size(&self, digest: Sha256Digest) -> Option<u64> {
        fs::metadata(self.download_path(digest)).ok().map(|metadata| metadata.len())
    }

    /// Removes a package that nobody uses: its entries first, then its files, its fingerprint, and the archives that no other package has.
    pub(super) fn remove_package(&self, digest: Sha256Digest) -> Result<(), InstallError> {
        let removed = self.scratch()?;
        let entries = self.entries()?;
        let (own, others): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|(_, entry)| entry.package_digest == digest);
        for (key, _) in &own {
            remove(&self.entry_path(key))?;
        }
        let folder = self.package_path(digest);
        ignore_missing(rename(&folder, &removed.path().join("package"))).map_err(FileError::of("remove", &folder))?;
        remove(&self.fingerprint_path(digest))?;
        let kept: BTreeSet<Sha256Digest> = others.iter().filter_map(|(_, entry)| entry.download_digest).collect();
        let archives: BTreeSet<Sha256Digest> = own.iter().filter_map(|(_, entry)| entry.download_digest).collect();
        for archive in archives.difference(&kept) {
            remove(&self.download_path(*archive))?;
        }
        remove(&mark_path(self.root(), digest))
    }
}

fn remove(path: &Path) -> Result<(), InstallError> {
    Ok(ignore_missing(fs::remove_file(path)).map_err(FileError::of("remove", path))?)
}
