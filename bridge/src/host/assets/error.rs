//! Why an asset or an archive has no hash.

use pulumi_proto::property::hash::HashError;

/// Why something has no hash.
#[derive(Debug, thiserror::Error)]
pub(super) enum AssetError {
    /// Its content could not be read.
    #[error("cannot read {place}: {problem}")]
    Unreadable { place: String, problem: String },
    /// A folder where a file is expected.
    #[error("{0} is a folder: make it an archive instead of an asset")]
    Folder(String),
    /// A file where an archive is expected.
    #[error("{0} is neither a folder nor named .tar, .tgz, .tar.gz, .zip or .jar")]
    NoArchive(String),
    /// Only its hash is known, where its content is needed.
    #[error("the content of a member of an archive is not known")]
    Elided,
    /// A member of an archive is something else.
    #[error("the member {0:?} of an archive is neither an asset nor an archive")]
    NoMember(String),
    #[error(transparent)]
    Hash(#[from] HashError),
}
