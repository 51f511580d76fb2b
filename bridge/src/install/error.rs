//! Errors of the installation of packages, and hints for the user.

use std::path::{Path, PathBuf};

use super::{ArchiveError, LockFileError, LockMismatch, PartOfPackage, TerraformError};
use crate::error::Hint;
use crate::fs::{FileError, TrustError};
use crate::message_text::MessageText;
use crate::plugin::{
    AgeRule, DigestOrigin, ManifestError, Platform, PluginValueError, PluginVersion, PolicyRefusal, Sha256Digest,
    SourceKind,
};
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
    #[error("checksum mismatch: expected {expected}, got {found}{}{}", published_suffix(*published, found), differing_suffix(differing))]
    ChecksumMismatch {
        /// Declared digest.
        expected: Sha256Digest,
        /// Computed digest.
        found: Sha256Digest,
        /// Digest that the server publishes, if it is known.
        published: Option<Sha256Digest>,
        /// Files of a folder that differ from those with the declared digest, in words; empty if these are not known.
        differing: Box<[String]>,
    },
    /// No digest is declared, and that of the download differs from the one that the server publishes for it.
    #[error("checksum mismatch: {host} publishes {published} for {asset}, but the download has {found}")]
    PublishedMismatch {
        /// Name of the asset.
        asset: String,
        /// Host of the release.
        host: String,
        /// Digest that the server publishes.
        published: Sha256Digest,
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
    /// A fetched package is a program in Go that has to be built, and no build is declared.
    #[error("the program {program} is not in the package, and has to be built from its Go sources")]
    NotBuilt {
        /// Name of the program.
        program: String,
    },
    /// A build by runtime is declared for a folder that names no runtime.
    #[error("source.build is true, but no PulumiPlugin.yaml in {} names a runtime", folder.display())]
    NothingToBuild {
        /// Folder of the plugin.
        folder: PathBuf,
    },
    /// The build command could not be started.
    #[error(transparent)]
    Spawn(#[from] crate::process::SpawnError),
    /// The source could not be fetched.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// A folder of plugins or a mirror has something else than what is expected.
    #[error("what {place} has cannot be used")]
    OtherCopy {
        /// The folder, or the host of the mirror.
        place: String,
        /// Reason.
        #[source]
        source: Box<InstallError>,
    },
    /// The index of a folder of plugins, or of a mirror, is none.
    #[error("{place} is not an index of plugins")]
    Index {
        /// Path, or path and host.
        place: String,
    },
    /// No folder of plugins has what is wanted.
    #[error("{path} {wanted} is not installed: {reason}")]
    NotInstalled {
        /// Declared path.
        path: String,
        /// Wanted version.
        wanted: String,
        /// Places that were searched, in words.
        reason: String,
    },
    /// The release has no asset for this platform.
    #[error("release {release} has no asset {expected}{}", list_suffix("it has", "no assets", available))]
    NoAsset {
        /// Repository and tag.
        release: String,
        /// Accepted names of the asset.
        expected: String,
        /// Names of the assets that the release has.
        available: Vec<String>,
    },
    /// No release of the repository is what is wanted.
    #[error("{repository} at {host} has no release for version {wanted:?}: {reason}")]
    NoRelease {
        /// `owner/name`.
        repository: String,
        /// Host of the releases.
        host: String,
        /// Wanted version, as it is declared.
        wanted: String,
        /// Reason, in words.
        reason: String,
        /// Rule by whose age releases were passed over, if there is one.
        passed_by: Option<AgeRule>,
    },
    /// No tag of the git repository is in the range.
    #[error("{repository} has no tag for version {wanted:?}: {reason}")]
    NoTag {
        /// Address without credentials.
        repository: String,
        /// Wanted version, as it is declared.
        wanted: String,
        /// Reason, in words.
        reason: String,
    },
    /// The lock file records another digest than that of what was fetched.
    #[error(transparent)]
    LockMismatch(Box<LockMismatch>),
    /// The lock file cannot be used.
    #[error("cannot use {}", path.display())]
    LockFile {
        /// Path of the lock file.
        path: PathBuf,
        /// Reason.
        #[source]
        source: LockFileError,
    },
    /// The lock file has no entry, and must not be changed.
    #[error("{name} is not in the lock file, which {} must not change", if *is_pipeline { "a pipeline" } else { "--locked" })]
    NotLocked {
        /// Source and wanted version.
        name: String,
        /// True if it must not be changed since this is a pipeline.
        is_pipeline: bool,
    },
    /// The entry of the lock file has no asset for this platform, and must not be changed.
    #[error("{name} has no digest for {} in the lock file", platform_name(*platform))]
    PlatformNotLocked {
        /// Source and wanted version.
        name: String,
        /// The platform; `None` if plugins are not published for this machine.
        platform: Option<Platform>,
    },
    /// The place of a plugin cannot be a path in a folder of plugins.
    #[error("{name} cannot be a path in a folder of plugins")]
    NoLayout {
        /// Place and tag.
        name: String,
    },
    /// A package that is recorded with published digests would be recorded without.
    #[error("no digest of {asset} is published, but the lock file has {} digests for {name}", recorded.as_str())]
    WeakerEvidence {
        /// Asset and tag.
        asset: String,
        /// Origin of the recorded digests.
        recorded: DigestOrigin,
        /// Source.
        name: String,
    },
    /// The chosen version is not one of the declaration.
    #[error("{to} does not fit the declared version {wanted}")]
    DoesNotFit {
        /// Chosen tag.
        to: String,
        /// Wanted version.
        wanted: String,
    },
    /// The recorded tag has another content now.
    #[error("{name} has another content than the lock file records")]
    Replaced {
        /// Tag and source.
        name: String,
    },
    /// The package is not on this machine, and no place may be asked.
    #[error("--offline permits no request for the package")]
    Offline,
    /// Other runs have decided on other packages again and again.
    #[error("other runs change the entry of the lock file again and again")]
    LockContention,
    /// The resolved package is of another kind of source.
    #[error("the lock file records another kind of source for it")]
    OtherKind,
    /// A Terraform provider cannot be used.
    #[error(transparent)]
    Terraform(Box<TerraformError>),
    /// Several assets of the release may be that for this platform.
    #[error("release {release} has several assets for {platform}{}", list_suffix("they are", "none", available))]
    SeveralAssets {
        /// Repository and tag.
        release: String,
        /// The platform.
        platform: Platform,
        /// Names of the assets that fit.
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
    /// The upload of the asset is not complete.
    #[error("the upload of {asset} to the release is not complete: its state is {state:?}, not \"uploaded\"")]
    NotUploaded {
        /// Name of the asset.
        asset: String,
        /// State that the server reports.
        state: String,
    },
    /// The asset or the executable is something else.
    #[error("{name} is {content}; expected {}", part.expected())]
    Unusable {
        /// Name of the asset, or of the executable and the package that holds it.
        name: String,
        /// Description of its content, from its first bytes, in words that follow "is".
        content: String,
        /// Part of the package that it is.
        part: PartOfPackage,
    },
    /// The executable of a fetched package lacks the permission to be executed.
    #[error("{name} is not executable")]
    NotExecutable {
        /// Name of the executable, and of the package that holds it.
        name: String,
    },
    /// The downloaded archive contains neither the executable nor a manifest.
    #[error("{archive} holds neither {executable} nor PulumiPlugin.yaml{}", list_suffix("it holds", "no files", files))]
    NotInArchive {
        /// Name of the archive.
        archive: String,
        /// Expected name of the executable.
        executable: String,
        /// Paths of the files that the archive has, sorted.
        files: Vec<String>,
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
    /// The policy refuses the plugin, or its build.
    #[error(transparent)]
    Policy(#[from] Box<PolicyRefusal>),
    /// The type of the source is not supported by this host.
    #[error("source type {:?} is not supported here", kind.as_str())]
    Unsupported {
        /// Kind of the source.
        kind: SourceKind,
    },
}

/// Returns a platform, for messages.
fn platform_name(platform: Option<Platform>) -> String {
    platform.map_or("this machine".to_owned(), |platform| platform.to_string())
}

/// Advice about a download that differs from what its server publishes.
const NOT_AS_PUBLISHED: &str = "the download was deleted: it was changed on its way, or the server holds another file than it \
                                publishes; run the command again, and report it to the author if the digests still differ";

/// Returns the digest that the server publishes as a suffix of the message, if it is not that of the download.
fn published_suffix(published: Option<Sha256Digest>, found: &Sha256Digest) -> String {
    let other = published.filter(|published| published != found);
    other.map(|published| format!("; the release publishes {published}")).unwrap_or_default()
}

/// Returns the first files that differ as a suffix of the message.
fn differing_suffix(differing: &[String]) -> String {
    const MAX_FILES: usize = 5;
    let shown = differing.iter().take(MAX_FILES).map(String::as_str).collect::<Vec<_>>().join(", ");
    match differing.len() {
        0 => String::new(),
        count if count <= MAX_FILES => format!("; it differs in {shown}"),
        count => format!("; it differs in {shown} and {} more files", count - MAX_FILES),
    }
}

impl From<TerraformError> for InstallError {
    fn from(error: TerraformError) -> Self {
        Self::Terraform(Box::new(error))
    }
}

impl InstallError {
    /// Returns true if the source cannot be reached now. A package from the cache may be used instead.
    pub(super) fn is_unreachable(&self) -> bool {
        match self {
            Self::Fetch(error) => error.is_unreachable(),
            Self::Terraform(error) => error.is_unreachable(),
            other => matches!(other, Self::Offline),
        }
    }
}

impl Hint for InstallError {
    fn hint(&self) -> Option<MessageText> {
        let hint = match self {
            Self::Fetch(error) => return error.hint(),
            Self::Trust(error) => return error.hint(),
            Self::Policy(refusal) => return refusal.hint(),
            Self::Terraform(error) => return error.hint(),
            // Who declares the digest of a download that its own server contradicts accepts a file that was replaced.
            Self::PublishedMismatch { .. } => NOT_AS_PUBLISHED,
            Self::LockMismatch(_) => {
                "its author has replaced it, or it was changed on its way: ask the author which one is right; `sc plugin \
                 update NAME` with the name of the plugin accepts it"
            }
            Self::LockFile { source: LockFileError::LaterVersion { .. }, .. } => "a later sc has written it: update sc",
            Self::LockFile { .. } => "`sc plugin lock` repairs it, or restore it from version control",
            Self::NotLocked { .. } => "run `sc plugin lock` on your machine, and commit the lock file",
            Self::PlatformNotLocked { platform, .. } => {
                let platform = platform_name(*platform);
                return Some(format!("run `sc plugin lock --platform {platform}`, and commit the lock file").into());
            }
            Self::WeakerEvidence { .. } => {
                "ask its author for the digests; to accept the release as it is, remove the entry from the lock file"
            }
            Self::Replaced { .. } => {
                "its author has replaced it: ask the author; `sc plugin update NAME` with the name of the plugin accepts it"
            }
            Self::DoesNotFit { .. } => "change source.version, so that it accepts this version",
            Self::Offline => "it is not in the cache of this machine: run `sc plugin install` with network first",
            Self::NoRelease { passed_by: Some(AgeRule::Declaration), .. } => {
                "source.minimumAge sets the age from which on a release is accepted: `0s` accepts each one"
            }
            Self::NoRelease { passed_by: Some(AgeRule::Policy), .. } => {
                "name a tag in source.version, to which minimumAge of the policy does not apply"
            }
            Self::NoRelease { .. } | Self::NoTag { .. } => {
                "a range is written as in Cargo: `^1.2`, `~1.4`, `>=1, <2`; a pre-release fits only if the range names one"
            }
            Self::ChecksumMismatch { published: Some(published), found, .. } if published != found => NOT_AS_PUBLISHED,
            Self::ChecksumMismatch { .. } => "if the plugin was changed on purpose, declare the new checksum",
            Self::SeveralAssets { .. } => "name one in source.asset, in which {version}, {os} and {arch} are replaced",
            Self::NoAsset { .. } => "source.asset sets another name, in which {version}, {os} and {arch} are replaced",
            Self::NotUploaded { .. } => {
                "run the command again once the author has completed the upload, or set source.version to another release"
            }
            Self::Unusable { part, .. } => part.hint(),
            Self::NotExecutable { .. } => {
                "nothing of it was kept: run the command again once the author has published it with the mode 755, or \
                 declare another version"
            }
            Self::Archive { source: ArchiveError::UnsupportedFormat(_), .. } => {
                "publish an archive (tar.gz, tar.zst, tar, zip) that holds the executable, or the executable itself; source.asset names another asset"
            }
            Self::Archive { source: ArchiveError::Unreadable(_) | ArchiveError::NoFiles, .. } => {
                PartOfPackage::Asset.hint()
            }
            Self::NotInArchive { executable, files, .. } => {
                let nested = files.iter().find(|file| Path::new(file).file_name() == Some(executable.as_ref()));
                return Some(match nested {
                    Some(file) => format!("the executable has to be at the root of the archive, not at {file}").into(),
                    None => "a plugin is an executable pulumi-resource-NAME, or a folder with PulumiPlugin.yaml; \
                             source.asset names another asset"
                        .into(),
                });
            }
            Self::NoPlugin { .. } => {
                "a plugin is an executable pulumi-resource-NAME, or a folder with PulumiPlugin.yaml; in a git repository \
                 source.subdir selects its folder"
            }
            Self::Build { .. } => {
                "a declared build changes the files of its own copy only, and connects by https only; a plugin that needs \
                 more is built by hand and declared with a source of type local"
            }
            Self::OtherCopy { .. } => {
                "it has other bytes than the place of the plugin had: make the copy again with `sc plugin mirror`, or remove it"
            }
            Self::NotInstalled { .. } => {
                "SC_PLUGIN_PATH names the folders of plugins; a folder OWNER/NAME/VERSION in one of them has the plugin or its asset"
            }
            Self::NotBuilt { .. } => "set `build: true` below source, or publish the plugin with its program",
            Self::NothingToBuild { .. } => {
                "set source.build to the command that builds the plugin, or source.subdir to the folder with its PulumiPlugin.yaml"
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

/// Lists the first of several names, as a suffix of the message.
fn list_suffix(verb: &str, none: &str, names: &[String]) -> String {
    const MAX_LISTED: usize = 8;
    if names.is_empty() {
        return format!("; {verb} {none}");
    }
    let rest = if names.len() > MAX_LISTED { format!(" and {} more", names.len() - MAX_LISTED) } else { String::new() };
    format!("; {verb} {}{rest}", names[..names.len().min(MAX_LISTED)].join(", "))
}
