//! Installation: resolves a declared plugin to a verified package on this machine.
//!
//! A local package without a checksum is run unverified; of every other package, no file is executed before its bytes
//! are verified. Input: a declared plugin. Output: a [`VerifiedPackage`], the only value that can be launched, or an
//! error. Excluded: the start of the plugin.
//!
//! ```text
//!                  resolve                    fetch
//! local            the files as they are      find ─► verify (a private copy, if a checksum is declared) ┐
//! github-release   release, asset, digests    source::Github ─► verify ─► unpack ─► cache                ├─► runtime ─► VerifiedPackage
//! git              commit                     source::Git ─► verify ─► cache                             ┘
//! ```

mod asset_names;
mod cache_key;
mod cache_removal;
mod cached_fetcher;
mod cached_packages;
mod checksum_file;
mod content;
mod download_file;
mod error;
mod file_digests;
mod fingerprint;
mod git;
mod go_build;
mod installation;
mod layout;
mod local;
mod lock_file;
mod lock_mismatch;
mod members;
mod package;
mod package_cache;
mod package_lock;
mod package_use;
mod progress;
mod prune;
mod pulumi_folder;
mod release;
mod release_assets;
mod release_choice;
mod release_declaration;
mod runtime;
mod runtime_context;
mod unpack;
mod verify;

use std::fmt;

use async_trait::async_trait;

use crate::plugin::{PluginNames, ResolvedPackage, Sha256Digest};

pub use cached_fetcher::CacheSettings;
pub use cached_packages::{CachedDeclaration, CachedState, verify_cache};
pub use error::{ArchiveError, InstallError, PartOfPackage};
pub use git::GitRepositories;
pub use installation::{Installer, LockChange};
pub use local::{LocalPackages, local_digest};
pub use lock_file::{LockFileError, LockKey};
pub use lock_mismatch::LockMismatch;
pub use package::VerifiedPackage;
pub use package_cache::Verification;
pub use package_lock::{LOCK_FILE, LockRule, PackageLock};
pub use progress::{FetchEvent, FetchEvents};
pub use prune::{PruneRules, PrunedPackage, prune_cache};
pub use pulumi_folder::find_in_pulumi_folder;
pub use release::GithubReleases;

/// Source of packages: this machine, releases, git repositories.
#[async_trait]
pub trait PackageSource: Send + Sync + fmt::Debug {
    /// Declared source that it resolves, of one kind.
    type Declared: Send + Sync;

    /// Returns the declared source as the lock file knows it; `None` for a source that is not locked.
    ///
    /// # Errors
    /// [`InstallError`] if its address cannot be used.
    fn lock_key(&self, names: PluginNames<'_>, source: &Self::Declared) -> Result<Option<LockKey>, InstallError>;

    /// Returns whether a package has all that the lock file records of it, for the platform of a declaration.
    fn is_complete(&self, names: PluginNames<'_>, source: &Self::Declared, package: &ResolvedPackage) -> bool;

    /// Returns a package that the lock file records with what its place says about the platform of a declaration.
    ///
    /// # Errors
    /// [`InstallError::LockMismatch`] if its place says something else about what is recorded.
    async fn complete(
        &self,
        names: PluginNames<'_>,
        source: &Self::Declared,
        package: ResolvedPackage,
        events: &dyn FetchEvents,
    ) -> Result<ResolvedPackage, InstallError>;

    /// Returns the package that a declaration means now: asks its place. What is passed over is told.
    ///
    /// # Errors
    /// [`InstallError`].
    async fn resolve(
        &self,
        names: PluginNames<'_>,
        source: &Self::Declared,
        events: &dyn FetchEvents,
    ) -> Result<ResolvedPackage, InstallError>;

    /// Returns the package that a declaration meant when it was last fetched, if the package is on this machine. Asks nobody.
    ///
    /// # Errors
    /// [`InstallError`] if the cache cannot be used.
    async fn last_resolved(
        &self,
        names: PluginNames<'_>,
        source: &Self::Declared,
    ) -> Result<Option<LastResolved>, InstallError>;

    /// Finds or fetches the package that was decided on, and verifies it. Emits events during downloads. Returns what was decided, with
    /// the digests that the download has shown.
    ///
    /// # Errors
    /// [`InstallError`]. No file of the package has been executed then, and refused files are removed.
    ///
    /// # Cancellation
    /// Unfinished files are removed.
    async fn fetch(
        &self,
        names: PluginNames<'_>,
        source: &Self::Declared,
        decision: Decision,
        events: &dyn FetchEvents,
    ) -> Result<(VerifiedPackage, ResolvedPackage), InstallError>;

    /// Returns the digest by which a `checksum` would pin the package of a declared plugin, as far as it is on this machine; `None` if it
    /// is not. Fetches, copies and executes nothing.
    ///
    /// # Errors
    /// [`InstallError`] if the package cannot be read or pinned.
    async fn known_digest(
        &self,
        names: PluginNames<'_>,
        source: &Self::Declared,
    ) -> Result<Option<Sha256Digest>, InstallError>;
}

/// Package that a declaration meant when it was last fetched.
#[derive(Clone, Debug)]
pub struct LastResolved {
    /// The package.
    pub package: ResolvedPackage,
    /// True if the declaration names a tag or a commit, so that it should still mean this package.
    pub is_fixed: bool,
}

/// Package that a declaration means.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The package.
    pub package: ResolvedPackage,
    /// True if the lock file records it: what is fetched and differs is refused then, and the error says so.
    pub is_locked: bool,
}

/// Runs work with much disk I/O on a thread of the blocking pool. Propagates a panic of the work.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, InstallError> + Send + 'static,
) -> Result<T, InstallError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}
