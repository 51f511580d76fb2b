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

mod fetched;
mod git;
mod local;
mod progress;
mod release;
mod runtime;
mod store;
mod tree;
mod unpack;
mod verify;

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use async_trait::async_trait;

use crate::fs::{PathError, Scratch};
use crate::plugin::{ManifestError, Platform, PluginConfig, PluginName, PluginValueError, PluginVersion, Sha256Digest};
use crate::source::FetchError;

pub use fetched::CacheSettings;
pub use git::GitRepositories;
pub use local::LocalPackages;
pub use progress::{FetchEvent, FetchEvents};
pub use release::GithubReleases;
pub use unpack::ArchiveError;

use verify::Checked;

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

/// A package that is what was declared, and how it is started.
///
/// # Invariants
/// Made only where its bytes were checked. What starts is in a folder that nobody but us writes to: in the cache of
/// packages, read again for this value; or, where a local one has a checksum, a private copy made while the digest was
/// computed, which goes away with this value. A local one without a checksum runs where its owner keeps it.
#[derive(Debug)]
pub struct VerifiedPackage {
    name: PluginName,
    version: Option<PluginVersion>,
    revision: Option<String>,
    digest: Option<Sha256Digest>,
    origin: PathBuf,
    program: PathBuf,
    arguments: Vec<OsString>,
    checked: Checked,
    /// A folder with what was built from the checked files.
    _built: Option<Scratch>,
}

impl VerifiedPackage {
    /// Name of the plugin.
    pub fn name(&self) -> &PluginName {
        &self.name
    }

    /// The version its source declares; what the plugin itself says may differ.
    pub fn version(&self) -> Option<&PluginVersion> {
        self.version.as_ref()
    }

    /// What was fetched: the tag of a release, the id of a commit. `None` where nothing was.
    pub fn revision(&self) -> Option<&str> {
        self.revision.as_deref()
    }

    /// The digest that pins it, as `checksum` takes it. `None` for a local one without a declared checksum, which is not
    /// read before it runs.
    pub fn digest(&self) -> Option<Sha256Digest> {
        self.digest
    }

    /// Where the user finds it: for messages.
    pub fn origin(&self) -> &Path {
        &self.origin
    }

    /// The program to start: the plugin itself, or what runs it.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// What comes before the engine's address on its command line.
    pub fn arguments(&self) -> &[OsString] {
        &self.arguments
    }

    /// The folder the plugin's own files are in.
    pub fn folder(&self) -> &Path {
        self.checked.folder()
    }
}

/// Why there is no package.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// A file or folder could not be used.
    #[error(transparent)]
    Path(#[from] PathError),
    /// There is nothing where the plugin should be.
    #[error("{} holds neither {executable} nor PulumiPlugin.yaml", folder.display())]
    NoPlugin {
        /// The folder.
        folder: PathBuf,
        /// The name the executable should have.
        executable: String,
    },
    /// The bytes are not those that were declared.
    #[error("checksum mismatch: expected {expected}, got {found}")]
    ChecksumMismatch {
        /// The declared digest.
        expected: Sha256Digest,
        /// The digest of what is there.
        found: Sha256Digest,
    },
    /// Digests were declared, but none for this platform.
    #[error("no checksum is declared for platform {}", platform.map_or("of this machine".to_owned(), |platform| platform.to_string()))]
    NoChecksum {
        /// The platform.
        platform: Option<Platform>,
    },
    /// Something in a folder that a checksum cannot cover.
    #[error("{} cannot be covered by a checksum: {reason}", path.display())]
    Uncoverable {
        /// The path.
        path: PathBuf,
        /// What it is.
        reason: &'static str,
    },
    /// The manifest cannot be used.
    #[error("cannot use {}", path.display())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// Why.
        #[source]
        source: ManifestError,
    },
    /// The manifest wants another engine.
    #[error("it needs Pulumi {range}, and this is like Pulumi {}", PluginVersion::of_pulumi())]
    RequiresPulumi {
        /// The versions it works with.
        range: String,
    },
    /// The versions of Pulumi that the manifest wants cannot be read.
    #[error("cannot use requiredPulumiVersion")]
    RequiredVersion(#[source] PluginValueError),
    /// Something the plugin needs is not there.
    #[error("{what} is missing. To get it: {command}")]
    Missing {
        /// What is missing.
        what: String,
        /// What to do or to run.
        command: String,
    },
    /// The plugin could not be built.
    #[error("cannot build the plugin: {command} failed ({status}): {output}")]
    Build {
        /// The command.
        command: String,
        /// How it ended.
        status: String,
        /// The last lines it wrote.
        output: String,
    },
    /// The command that builds the plugin could not be started.
    #[error(transparent)]
    Spawn(#[from] crate::process::SpawnError),
    /// The place it comes from did not give it.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// A release has no file for this platform.
    #[error("release {release} has no asset {wanted}{}", listed(available))]
    NoAsset {
        /// Repository and tag.
        release: String,
        /// The name or names it could have.
        wanted: String,
        /// Those that are there.
        available: Vec<String>,
    },
    /// What was downloaded cannot be unpacked, or must not be.
    #[error("cannot unpack {archive}: {source}")]
    Archive {
        /// Its name.
        archive: String,
        /// Why not.
        source: ArchiveError,
    },
    /// There is no plugin in what was downloaded.
    #[error("{archive} holds neither {executable} nor PulumiPlugin.yaml")]
    NotInArchive {
        /// Its name.
        archive: String,
        /// The name the executable should have.
        executable: String,
    },
    /// A folder that is not in the repository.
    #[error("source.subdir {} is no folder of the repository", subdir.display())]
    Subdir {
        /// The folder.
        subdir: PathBuf,
    },
    /// Nobody publishes plugins for this machine.
    #[error("no plugins are published for a machine of this kind; source.platform chooses one")]
    NoPlatform,
    /// Plugins of this kind of source cannot be had here.
    #[error("source type {kind:?} is not supported here")]
    Unsupported {
        /// The word in `source.type`.
        kind: &'static str,
    },
}

/// The assets of a release, as many as can be taken in.
fn listed(assets: &[String]) -> String {
    const MANY: usize = 8;
    if assets.is_empty() {
        return "; it has none at all".to_owned();
    }
    let rest = if assets.len() > MANY { format!(" and {} more", assets.len() - MANY) } else { String::new() };
    format!("; it has {}{rest}", assets[..assets.len().min(MANY)].join(", "))
}
