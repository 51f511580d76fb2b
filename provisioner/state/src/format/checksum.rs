//! Checksum of a manifest.

use sha2::{Digest as _, Sha256};

/// Returns the checksum (`magic`) of a manifest: the SHA-256 of its version.
pub(super) fn magic(version: Option<&str>) -> Option<String> {
    version.map(|version| hex::encode(Sha256::digest(version)))
}
