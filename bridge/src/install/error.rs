//! Why there is no package, and why an archive is refused.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;

use crate::error::Hint;
use crate::fs::PathError;
use crate::plugin::{ManifestError, Platform, PluginValueError, PluginVersion, Sha256Digest};
use crate::source::FetchError;

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
    #[error("cannot unpack {archive}")]
    Archive {
        /// Its name.
        archive: String,
        /// Why not.
        #[source]
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

impl Hint for InstallError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        let hint = match self {
            Self::Fetch(error) => return error.hint(),
            Self::ChecksumMismatch { .. } => "if the plugin was changed on purpose, declare the new checksum",
            Self::NoAsset { .. } => "source.asset names another one; {version}, {os} and {arch} in it are filled in",
            Self::NoPlugin { .. } | Self::NotInArchive { .. } => {
                "a plugin is an executable pulumi-resource-NAME, or a folder with PulumiPlugin.yaml; in a git repository \
                 source.subdir says where"
            }
            Self::NoChecksum { .. } => "add the digest of this platform to checksum",
            _ => return None,
        };
        Some(hint.into())
    }
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

/// Why an archive is refused.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It ends too early, or its bytes are none of an archive.
    #[error("it cannot be read")]
    Unreadable(#[source] io::Error),
    /// A kind of archive that is not taken.
    #[error("it is a {0} archive; tar, tar.gz and plain executables are taken")]
    Kind(&'static str),
    /// An entry that would do more than to add a file to the folder.
    #[error("its entry {path:?} is refused: {reason}")]
    Entry {
        /// The entry's path.
        path: String,
        /// Why.
        reason: &'static str,
    },
    /// It would fill the disk.
    #[error("it is too large: {0}")]
    TooLarge(&'static str),
}
