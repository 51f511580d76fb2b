//! Reasons why the archive, the asset or the program of a package is refused.

use std::io;

/// Part of a package that is not what it has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartOfPackage {
    /// Asset of a release.
    Asset,
    /// Asset of a release that is an executable, compressed without an archive.
    CompressedProgram,
    /// Executable in an archive or a repository.
    Program,
}

impl PartOfPackage {
    pub(super) fn expected(self) -> &'static str {
        match self {
            Self::Asset | Self::CompressedProgram => "an archive (tar.gz, tar.zst, tar, zip) or an executable",
            Self::Program => "an executable: a program, or a script that begins with #!",
        }
    }

    pub(super) fn hint(self) -> &'static str {
        match self {
            Self::Asset => {
                "nothing of it was kept: run the command again once the author has uploaded the asset again, or set \
                 source.version to another release or source.asset to another asset"
            }
            Self::CompressedProgram => {
                "publish an archive (tar.gz, tar.zst, tar, zip) that holds the executable, or the executable itself; source.asset names another asset"
            }
            Self::Program => {
                "nothing of it was kept: run the command again once the author has published the executable itself, or \
                 declare another version"
            }
        }
    }
}

/// Reason for the refusal of an archive.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The archive is truncated or malformed.
    #[error("it cannot be read")]
    Unreadable(#[source] io::Error),
    /// The archive has no entries.
    #[error("it holds no files")]
    NoFiles,
    /// The archive format is not supported.
    #[error("it is a {0} archive; tar.gz, tar.zst, tar, zip and plain executables are supported")]
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
