//! Resolved plugins: what a declaration means, as the lock file records it.

use std::collections::BTreeMap;

use super::{Platform, Sha256Digest};

/// Package that a declared source means. It does not change if the source does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResolvedPackage {
    /// Files on this machine, as they are.
    Local,
    /// Asset of a release, for each platform.
    Release(ResolvedRelease),
    /// Commit of a git repository.
    Commit(ResolvedCommit),
}

impl ResolvedPackage {
    /// Returns whether it is a release that has a digest for a platform.
    pub fn has_digest_for(&self, platform: Option<Platform>) -> bool {
        let (Self::Release(release), Some(platform)) = (self, platform) else { return false };
        release.assets.get(&platform).is_some_and(|asset| asset.digest.is_some())
    }

    /// Returns what is recorded of it: without assets whose digest is not known.
    #[must_use]
    pub fn recorded(mut self) -> Self {
        if let Self::Release(release) = &mut self {
            release.assets.retain(|_, asset| asset.digest.is_some());
        }
        self
    }

    /// Returns the tag of the release, or the one that leads to the commit, if there is one.
    pub fn tag(&self) -> Option<&str> {
        match self {
            Self::Local => None,
            Self::Release(release) => Some(&release.tag),
            Self::Commit(commit) => commit.tag.as_deref(),
        }
    }

    /// Returns the tag of the release or the id of the commit, for messages. Empty for files on this machine.
    pub fn revision(&self) -> &str {
        match self {
            Self::Local => "",
            Self::Release(release) => &release.tag,
            Self::Commit(commit) => &commit.commit,
        }
    }
}

/// Release of a repository, and its assets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolvedRelease {
    /// Tag of the release.
    pub tag: String,
    /// Time of its publication, as the server states it (RFC 3339), if it does.
    pub released: Option<String>,
    /// Package of the plugin, by which the assets are found. `None` if the name of the asset is declared.
    pub package: Option<String>,
    /// Fingerprint of the OpenPGP key that has signed the digests whose origin is [`DigestOrigin::Signed`].
    pub signer: Option<String>,
    /// Asset of each platform, as far as they are known.
    pub assets: BTreeMap<Platform, ResolvedAsset>,
}

/// Asset of a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedAsset {
    /// Name of the file.
    pub name: String,
    /// Length in bytes. `None` if its place does not tell it.
    pub size: Option<u64>,
    /// Digest of its bytes, and where it is from. `None` if it is published nowhere, before the download.
    pub digest: Option<(Sha256Digest, DigestOrigin)>,
}

/// Origin of the digest of an asset. The first one is the strongest evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DigestOrigin {
    /// A checksum file whose signature was verified.
    Signed,
    /// The API of the server.
    Published,
    /// A checksum file of the release.
    Sums,
    /// The first download.
    Fetched,
}

impl DigestOrigin {
    /// Returns the word for it in the lock file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Signed => "signed",
            Self::Published => "published",
            Self::Sums => "sums",
            Self::Fetched => "fetched",
        }
    }

    /// Returns the origin of a word in the lock file.
    pub fn of_word(word: &str) -> Option<Self> {
        [Self::Signed, Self::Published, Self::Sums, Self::Fetched].into_iter().find(|origin| origin.as_str() == word)
    }
}

/// Commit of a git repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedCommit {
    /// Tag that leads to the commit. `None` if the declaration names a branch or the commit.
    pub tag: Option<String>,
    /// Full id of the commit; before the repository is fetched, it may be shortened.
    pub commit: String,
    /// Digest of the files of its tree, as `checksum` computes it. `None` before they are fetched.
    pub tree: Option<Sha256Digest>,
}
