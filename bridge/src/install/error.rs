//! Errors of the installation of packages, and hints for the user.

use std::io;
use std::path::PathBuf;

use crate::error::Hint;
use crate::fs::{FileError, TrustError};
use crate::message_text::MessageText;
use crate::plugin::{ManifestError, Platform, PluginValueError, PluginVersion, Sha256Digest, SourceKind};
use crate::source::FetchError;

/// Error of the installation of a package.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// A file or folder could not be read or written.
    #[error(transparent)]
    Path(#[from] FileError),
    /// Another user could have changed the cache.
    #[error("cannot use the cache of packages")]
    Trust(#[from] TrustError),
    /// The folder contains neither the executable nor a manifest.
    #[error("{} holds neither {executable} nor PulumiPlugin.yaml", folder.display())]
    NoPlugin {
        /// Searched folder.
        folder: PathBuf,
        /// Expected name of the executable.
        executable: String,
    },
    /// The digest differs from the declared digest.
    #[error("checksum mismatch: expected {expected}, got {found}")]
    ChecksumMismatch {
        /// Declared digest.
        expected: Sha256Digest,
        /// Computed digest.
        found: Sha256Digest,
    },
    /// The checksum has no digest for this platform.
    #[error("no checksum is declared for platform {}", platform.map_or("of this machine".to_owned(), |platform| platform.to_string()))]
    NoChecksum {
        /// Requested platform. `None` if plugins are not published for this machine.
        platform: Option<Platform>,
    },
    /// A checksum cannot cover this file or link.
    #[error("{} cannot be covered by a checksum: {reason}", path.display())]
    NotHashable {
        /// Path of the file or link.
        path: PathBuf,
        /// Reason, in words.
        reason: &'static str,
    },
    /// The manifest is invalid or not supported.
    #[error("cannot use {}", path.display())]
    Manifest {
        /// Path of the manifest.
        path: PathBuf,
        /// Error of the manifest.
        #[source]
        source: ManifestError,
    },
    /// The manifest requires another version of Pulumi.
    #[error("it requires Pulumi {range}, but sc is compatible with Pulumi {}", PluginVersion::of_pulumi())]
    RequiresPulumi {
        /// Required range of versions.
        range: String,
    },
    /// The version range in `requiredPulumiVersion` is invalid.
    #[error("cannot use requiredPulumiVersion")]
    RequiredVersion(#[source] PluginValueError),
    /// A program or file that the plugin needs is missing.
    #[error("{item} is missing. To provide it: {command}")]
    Missing {
        /// Missing file or program.
        item: String,
        /// Command or action that provides it.
        command: String,
    },
    /// A manifest of a fetched package names a file outside of the package.
    #[error("{field} names {}, which is outside of the package", path.display())]
    OutsidePackage {
        /// Field and file of the manifest.
        field: &'static str,
        /// The named path, or the target of a link.
        path: PathBuf,
    },
    /// The build of the plugin failed.
    #[error("cannot build the plugin: {command} failed ({status}): {output}")]
    Build {
        /// Build command.
        command: String,
        /// Exit status, or the time limit.
        status: String,
        /// Last lines of its standard error output.
        output: String,
    },
    /// The build command could not be started.
    #[error(transparent)]
    Spawn(#[from] crate::process::SpawnError),
    /// The source could not be fetched.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The release has no asset for this platform.
    #[error("release {release} has no asset {expected}{}", asset_suffix(available))]
    NoAsset {
        /// Repository and tag.
        release: String,
        /// Accepted names of the asset.
        expected: String,
        /// Names of the assets that the release has.
        available: Vec<String>,
    },
    /// The server publishes no digest of the asset, and none is declared.
    #[error("no digest of {asset} is published, so that it cannot be verified")]
    NoDigest {
        /// Name of the asset.
        asset: String,
    },
    /// The downloaded archive is invalid or unsafe.
    #[error("cannot unpack {archive}")]
    Archive {
        /// Name of the archive.
        archive: String,
        /// Error of the archive.
        #[source]
        source: ArchiveError,
    },
    /// The downloaded archive contains neither the executable nor a manifest.
    #[error("{archive} holds neither {executable} nor PulumiPlugin.yaml")]
    NotInArchive {
        /// Name of the archive.
        archive: String,
        /// Expected name of the executable.
        executable: String,
    },
    /// The declared `source.subdir` is not a folder of the repository.
    #[error("source.subdir {} is not a folder of the repository", subdir.display())]
    Subdir {
        /// Declared folder.
        subdir: PathBuf,
    },
    /// Plugins are not published for the platform of this machine.
    #[error("no plugins are published for a machine of this kind; source.platform chooses one")]
    NoPlatform,
    /// The type of the source is not supported by this host.
    #[error("source type {:?} is not supported here", kind.as_str())]
    Unsupported {
        /// Kind of the source.
        kind: SourceKind,
    },
}

impl Hint for InstallError {
    fn hint(&self) -> Option<MessageText> {
        let hint = match self {
            Self::Fetch(error) => return error.hint(),
            Self::Trust(error) => return error.hint(),
            Self::ChecksumMismatch { .. } => "if the plugin was changed on purpose, declare the new checksum",
            Self::NoAsset { .. } => "source.asset sets another name, in which {version}, {os} and {arch} are replaced",
            Self::NoPlugin { .. } | Self::NotInArchive { .. } => {
                "a plugin is an executable pulumi-resource-NAME, or a folder with PulumiPlugin.yaml; in a git repository \
                 source.subdir selects its folder"
            }
            Self::OutsidePackage { .. } => {
                "a fetched plugin runs only its own files; a plugin that runs others is declared with a source of type local"
            }
            Self::NoChecksum { .. } => "add the checksum of this platform to source.checksum",
            _ => return None,
        };
        Some(hint.into())
    }
}

/// Lists the first assets of a release, as a suffix of the message.
fn asset_suffix(assets: &[String]) -> String {
    const MAX_LISTED: usize = 8;
    if assets.is_empty() {
        return "; it has no assets".to_owned();
    }
    let rest =
        if assets.len() > MAX_LISTED { format!(" and {} more", assets.len() - MAX_LISTED) } else { String::new() };
    format!("; it has {}{rest}", assets[..assets.len().min(MAX_LISTED)].join(", "))
}

/// Reason for the refusal of an archive.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The archive is truncated or malformed.
    #[error("it cannot be read")]
    Unreadable(#[source] io::Error),
    /// The archive format is not supported.
    #[error("it is a {0} archive; tar, tar.gz and plain executables are supported")]
    UnsupportedFormat(&'static str),
    /// An entry is unsafe: it may do more than add a file to the folder.
    #[error("its entry {path:?} is refused: {reason}")]
    Entry {
        /// Path of the entry.
        path: String,
        /// Reason, in words.
        reason: &'static str,
    },
    /// The content exceeds the size limits.
    #[error("it is too large: {0}")]
    TooLarge(&'static str),
}
