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
//! terraform        version, signed digests    source::TerraformRegistry ─► verify ─► unpack ─► cache ─► TerraformProviderFolder
//! ```

mod archive_error;
mod asset_names;
mod asset_package;
mod build_recipe;
mod cache_check;
mod cache_key;
mod cache_removal;
mod cached_fetcher;
mod cached_packages;
mod checked_files;
mod checksum_file;
mod content;
mod copies;
mod copy_places;
mod download_file;
mod error;
mod file_digests;
mod file_modes;
mod fingerprint;
mod git;
mod git_copies;
mod go_build;
mod installation;
mod installed;
mod layout;
mod local;
mod local_files;
mod lock_file;
mod lock_mismatch;
mod members;
mod mirror;
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
mod release_copies;
mod release_declaration;
mod runtime;
mod runtime_context;
mod signature;
mod terraform;
mod terraform_copies;
mod terraform_error;
mod terraform_folder;
mod terraform_release;
mod tree_build;
mod unpack;
mod verify;

use std::fmt;
use std::path::Path;

use async_trait::async_trait;

use crate::plugin::{Platform, PluginNames, PolicyRefusal, ResolvedPackage, Sha256Digest};

pub use archive_error::{ArchiveError, PartOfPackage};
pub use cache_check::check_cache;
pub use cached_fetcher::CacheSettings;
pub use cached_packages::{CachedDeclaration, CachedState, verify_cache};
pub use copies::{MirroredAsset, PackageCopies};
pub use error::InstallError;
pub use git::GitRepositories;
pub use installation::{Installer, LockChange, SignerApproval};
pub use installed::InstalledPackages;
pub use local::{LocalPackages, local_digest};
pub use lock_file::{LockDifference, LockFileError, LockKey};
pub use lock_mismatch::LockMismatch;
pub use package::VerifiedPackage;
pub use package_cache::Verification;
pub use package_lock::{LOCK_FILE, LockRule, PackageLock};
pub use package_use::package_folders;
pub use progress::{FetchEvent, FetchEvents};
pub use prune::{PruneRules, PrunedPackage, prune_cache};
pub use pulumi_folder::find_in_pulumi_folder;
pub use release::GithubReleases;
pub use runtime_context::BUILD_LIMIT;
pub use signature::SignatureError;
pub use terraform::TerraformProviders;
pub use terraform_error::TerraformError;
pub use terraform_folder::{TerraformProviderFolder, terraform_provider_place};

/// Source of packages: this machine, releases, git repositories, registries of Terraform providers.
#[async_trait]
pub trait PackageSource: Send + Sync + fmt::Debug {
    /// Declared source that it resolves, of one kind.
    type Declared: Send + Sync;
    /// Package that was verified: a plugin to start, or the folder of a Terraform provider.
    type Package: Send;

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
    ) -> Result<(Self::Package, ResolvedPackage), InstallError>;

    /// Copies what the lock file records into a folder of plugins, for some platforms, or for all that are recorded. Returns `None` if
    /// packages of this kind cannot be copied.
    ///
    /// # Errors
    /// [`InstallError`]. Files that are complete stay.
    async fn mirror(
        &self,
        _names: PluginNames<'_>,
        _source: &Self::Declared,
        _package: ResolvedPackage,
        _platforms: &[Platform],
        _folder: &Path,
        _events: &dyn FetchEvents,
    ) -> Result<Option<Vec<MirroredAsset>>, InstallError> {
        Ok(None)
    }

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
    /// Refusal of a build, if the policy allows none.
    pub build_refusal: Option<Box<PolicyRefusal>>,
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
