//! Errors of the hashes of assets and archives.

use pulumi_proto::property::hash::HashError;

/// Reason why an asset or an archive has no hash.
#[derive(Debug, thiserror::Error)]
pub(super) enum AssetError {
    /// The content cannot be read.
    #[error("cannot read {location}: {problem}")]
    Unreadable { location: String, problem: String },
    /// An asset is a folder.
    #[error("{0} is a folder: make it an archive instead of an asset")]
    Folder(String),
    /// An archive is a file without a supported extension.
    #[error("{0} is neither a folder nor named .tar, .tgz, .tar.gz, .zip or .jar")]
    NotAnArchive(String),
    /// The content is needed, but only the hash is known.
    #[error("the content of a member of an archive is not known")]
    Elided,
    /// A member of an archive is neither an asset nor an archive.
    #[error("the member {0:?} of an archive is neither an asset nor an archive")]
    InvalidMember(String),
    /// The sandbox of the plugin does not let the file through.
    #[error(
        "cannot read {0}: the sandbox of the plugin lets through files of the repository that are not secret, of its package, of \
         its temporary folder, and those in `readable` and `writable`"
    )]
    OutsideOfSandbox(String),
    /// The sandbox of the plugin does not let the connection through.
    #[error("cannot read {location}: port {port} is not in `ports` of the plugin")]
    PortOutsideOfSandbox { location: String, port: u16 },
    /// The file is not below the folder of the program.
    #[error("{0} is outside of the repository, in which files of assets and archives must be, also behind links")]
    OutsideOfRepository(String),
    /// The files of a registration are too large for a plugin in a sandbox.
    #[error(
        "cannot read {0}: the files of one registration are larger than 1 GiB, the limit of the sandbox of the plugin"
    )]
    TooLarge(String),
    #[error(transparent)]
    Hash(#[from] HashError),
}
