//! Error of content that differs from what the lock file records.

use crate::plugin::{DigestOrigin, Platform, Sha256Digest};

/// Difference between what was fetched and what the lock file records.
#[derive(Debug, thiserror::Error)]
#[error(
    "checksum mismatch: {item}{} is not the one of the lock file: expected {expected} ({}), got {found}",
    platform.map_or(String::new(), |platform| format!(" for {platform}")),
    evidence_words(self)
)]
pub struct LockMismatch {
    /// Asset and tag, or commit.
    pub item: String,
    /// Platform of the asset; `None` for the files of a commit, which are the same for all.
    pub platform: Option<Platform>,
    /// Recorded digest.
    pub expected: Sha256Digest,
    /// Digest of what was fetched, or that the server publishes now.
    pub found: Sha256Digest,
    /// Origin of the recorded digest.
    pub origin: DigestOrigin,
    /// Time of the publication of the release, if it is known.
    pub released: Option<String>,
}

/// Returns who has stated the recorded digest, and since when.
fn evidence_words(mismatch: &LockMismatch) -> String {
    let who = match mismatch.origin {
        DigestOrigin::Signed => "from a signed checksum file",
        DigestOrigin::Published => "published by the server when it was locked",
        DigestOrigin::Sums => "from a checksum file of the release",
        DigestOrigin::Fetched => "that of the first download",
    };
    match &mismatch.released {
        Some(released) => format!("{who}, released {released}"),
        None => who.to_owned(),
    }
}
