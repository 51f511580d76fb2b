//! Removal of packages from a cache that were not used for some time, or that are too many.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::package_cache::PackageCache;
use super::package_use::{UnusedPackage, last_used};
use super::{InstallError, run_blocking};
use crate::fs::FileError;
use crate::plugin::Sha256Digest;

/// Rules for which packages of a cache are removed.
#[derive(Clone, Copy, Debug, Default)]
pub struct PruneRules {
    /// Time since the last use from which on a package is removed.
    pub older_than: Option<Duration>,
    /// Size in bytes that the packages and their archives may have together: the ones that were not used for the longest time go first.
    pub max_size: Option<u64>,
    /// True if nothing is removed, and only the result is returned.
    pub is_dry_run: bool,
}

/// Package of a cache that the rules remove.
#[derive(Debug)]
pub struct PrunedPackage {
    /// Digest of its files, which is the name of its folder.
    pub digest: Sha256Digest,
    /// Sources of the declarations that have fetched it, with their tags or commits.
    pub sources: Vec<String>,
    /// Size of its files and of its archives, in bytes.
    pub size: u64,
    /// Time of its last use.
    pub last_used: SystemTime,
    /// True if it stays, since a process uses it.
    pub is_in_use: bool,
}

/// Removes packages from a cache, by rules. Returns them, the one that was not used for the longest time first. A package that a process
/// uses stays. The next run that needs a removed package fetches it again.
///
/// # Errors
/// [`InstallError`] if the cache cannot be read or changed. What was removed before stays removed.
pub async fn prune_cache(cache: &Path, rules: PruneRules) -> Result<Vec<PrunedPackage>, InstallError> {
    let cache = PackageCache::new(cache.to_owned());
    run_blocking(move || prune(&cache, rules)).await
}

fn prune(cache: &PackageCache, rules: PruneRules) -> Result<Vec<PrunedPackage>, InstallError> {
    let mut packages = list(cache)?;
    let mut total: u64 = packages.iter().map(|package| package.size).sum();
    let now = SystemTime::now();
    let mut chosen = Vec::new();
    packages.sort_by_key(|package| package.last_used);
    for mut package in packages {
        let age = now.duration_since(package.last_used).unwrap_or_default();
        let is_old = rules.older_than.is_some_and(|limit| age >= limit);
        let is_too_much = rules.max_size.is_some_and(|limit| total > limit);
        if !is_old && !is_too_much {
            continue;
        }
        let unused = UnusedPackage::take(cache.root(), package.digest, package.last_used)
            .map_err(FileError::of("lock the mark of a package in", cache.root()))?;
        package.is_in_use = unused.is_none();
        if let Some(_unused) = unused {
            total -= package.size;
            if !rules.is_dry_run {
                cache.remove_package(package.digest)?;
            }
        }
        chosen.push(package);
    }
    Ok(chosen)
}

fn list(cache: &PackageCache) -> Result<Vec<PrunedPackage>, InstallError> {
    let entries = cache.entries()?;
    let mut packages = Vec::new();
    for digest in cache.packages()? {
        let of_package = || entries.iter().filter(|(_, entry)| entry.package_digest == digest);
        let sources: BTreeSet<String> =
            of_package().filter_map(|(key, entry)| Some(format!("{} {}", key.source()?, entry.revision))).collect();
        let archives: BTreeSet<Sha256Digest> = of_package().filter_map(|(_, entry)| entry.download_digest).collect();
        let folder = cache.package_path(digest);
        let of_archives: u64 = archives.iter().filter_map(|archive| cache.download_size(*archive)).sum();
        let size = size_of(&folder)? + of_archives;
        let last_used = last_used(cache.root(), digest, &folder).map_err(FileError::of("read", &folder))?;
        packages.push(PrunedPackage {
            digest,
            sources: sources.into_iter().collect(),
            size,
            last_used,
            is_in_use: false,
        });
    }
    Ok(packages)
}

/// Returns the size of the files below a folder, in bytes.
fn size_of(folder: &Path) -> Result<u64, InstallError> {
    let mut size = 0;
    for member in fs::read_dir(folder).map_err(FileError::of("list", folder))? {
        let member = member.map_err(FileError::of("list", folder))?;
        let metadata = member.metadata().map_err(FileError::of("read", &member.path()))?;
        size += if metadata.is_dir() { size_of(&member.path())? } else { metadata.len() };
    }
    Ok(size)
}
