//! Installation: resolves a declared plugin to a verified package on this machine.
//!
//! A local package without a checksum is run unverified; of every other package, no file is executed before its bytes
//! are verified. Input: a declared plugin. Output: a [`VerifiedPackage`], the only value that can be launched, or an
//! error. Excluded: the start of the plugin.
//!
//! ```text
//! local            find ─► verify (a private copy, if a checksum is declared)          ┐
//! github-release   source::Github ─► verify ─► unpack ─► cache                         ├─► runtime ─► VerifiedPackage
//! git              source::Git ─► verify ─► cache                                      ┘
//! ```

mod asset_names;
mod cache_key;
mod cached_fetcher;
mod cached_packages;
mod checksum_file;
mod content;
mod error;
mod file_digests;
mod fingerprint;
mod git;
mod go_build;
mod layout;
mod local;
mod members;
mod package;
mod package_cache;
mod progress;
mod pulumi_folder;
mod release;
mod runtime;
mod runtime_context;
mod unpack;
mod verify;

use std::fmt;

use async_trait::async_trait;

use crate::plugin::{PluginNames, Sha256Digest};

pub use cached_fetcher::CacheSettings;
pub use cached_packages::{CachedDeclaration, CachedState, verify_cache};
pub use error::{ArchiveError, InstallError, PartOfPackage};
pub use git::GitRepositories;
pub use local::{LocalPackages, local_digest};
pub use package::VerifiedPackage;
pub use package_cache::Verification;
pub use progress::{FetchEvent, FetchEvents};
pub use pulumi_folder::find_in_pulumi_folder;
pub use release::GithubReleases;

/// Source of packages: this machine, releases, git repositories.
#[async_trait]
pub trait PackageSource: Send + Sync + fmt::Debug {
    /// Declared source that it resolves, of one kind.
    type Declared: Send + Sync;

    /// Finds or fetches the package of a declared plugin and verifies it. Emits events during downloads.
    ///
    /// # Errors
    /// [`InstallError`]. No file of the package has been executed then, and refused files are removed.
    ///
    /// # Cancellation
    /// Unfinished files are removed.
    async fn resolve(
        &self,
        names: PluginNames<'_>,
        source: &Self::Declared,
        events: &dyn FetchEvents,
    ) -> Result<VerifiedPackage, InstallError>;

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

/// Runs work with much disk I/O on a thread of the blocking pool. Propagates a panic of the work.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, InstallError> + Send + 'static,
) -> Result<T, InstallError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}
