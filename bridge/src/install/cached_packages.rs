//! All packages of a cache, for a command that verifies them.

use std::path::Path;

use super::package_cache::{Lookup, PackageCache, Verification};
use super::{InstallError, run_blocking};
use crate::plugin::Sha256Digest;

/// Package of the cache, as it was fetched for a declaration.
#[derive(Debug)]
pub struct CachedDeclaration {
    /// Kind and place of its source: `github-release acme/reef`, `git https://git.example/acme/reef`.
    pub source: String,
    /// Tag of the release, or full id of the commit.
    pub revision: String,
    /// Digest of its files, which is the name of its folder.
    pub digest: Sha256Digest,
    /// Result of the verification.
    pub state: CachedState,
}

/// Result of the verification of a package in the cache.
#[derive(Debug)]
pub enum CachedState {
    /// State of a package whose files were all read, and are those of its digest.
    Verified,
    /// State of a package whose files have changed. The next run that needs it fetches it again.
    Damaged,
    /// State of a package that was removed. The next run that needs it fetches it again.
    Missing,
    /// State of a package that could not be read, or that another user could have changed.
    Unreadable(InstallError),
}

/// Reads all files of all packages in a cache. Changes nothing but fingerprints. A cache that does not exist has none.
///
/// # Errors
/// [`InstallError`] if the cache cannot be read.
pub async fn verify_cache(folder: &Path) -> Result<Vec<CachedDeclaration>, InstallError> {
    let cache = PackageCache::new(folder.to_owned());
    run_blocking(move || {
        let mut declarations = Vec::new();
        for (key, entry) in cache.entries()? {
            let Some(source) = key.source() else { continue };
            let state = match cache.open(&key, Verification::Always) {
                Ok(Lookup::Valid(..)) => CachedState::Verified,
                Ok(Lookup::Damaged) => CachedState::Damaged,
                Ok(Lookup::Missing) => CachedState::Missing,
                Err(error) => CachedState::Unreadable(error),
            };
            let (revision, digest) = (entry.revision, entry.package_digest);
            declarations.push(CachedDeclaration { source, revision, digest, state });
        }
        // A package has an entry for the tag and one for the commit.
        declarations.sort_by(|a, b| (&a.source, &a.revision, a.digest).cmp(&(&b.source, &b.revision, b.digest)));
        declarations.dedup_by(|a, b| (&a.source, &a.revision, a.digest) == (&b.source, &b.revision, b.digest));
        Ok(declarations)
    })
    .await
}
