//! From a declared plugin to a package on this machine that is what was declared.
//!
//! Enters: a declared plugin. Leaves: a [`VerifiedPackage`], the only thing that can be launched, or an error; nothing of
//! the package has been executed before its bytes were checked. Never here: handshakes, processes that go on living.
//!
//! ```text
//! local            find ─► verify (a private copy, where a checksum is declared)       ┐
//! github-release   source::Github ─► verify ─► unpack ─► store                         ├─► runtime ─► VerifiedPackage
//! git              source::Git ─► verify ─► store                                      ┘
//! ```

mod blocking;
mod error;
mod fetched;
mod git;
mod layout;
mod local;
mod package;
mod progress;
mod release;
mod runtime;
mod store;
mod tree;
mod unpack;
mod verify;

use std::fmt;

use async_trait::async_trait;

use crate::plugin::PluginConfig;

pub use error::{ArchiveError, InstallError};
pub use fetched::CacheSettings;
pub use git::GitRepositories;
pub use local::LocalPackages;
pub use package::VerifiedPackage;
pub use progress::{FetchEvent, FetchEvents};
pub use release::GithubReleases;

/// A place that packages come from: this machine, releases, git repositories.
#[async_trait]
pub trait PackageSource: Send + Sync + fmt::Debug {
    /// Gets the package of a declared plugin and checks it, and tells what it fetches.
    ///
    /// # Errors
    /// [`InstallError`]; nothing of the package has been executed then, and nothing that was refused is kept.
    ///
    /// # Cancellation
    /// Nothing half-made is left.
    async fn resolve(&self, plugin: &PluginConfig, events: &dyn FetchEvents) -> Result<VerifiedPackage, InstallError>;
}
