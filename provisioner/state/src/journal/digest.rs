//! Digest of the checkpoint that a journal is bound to.

use std::fmt;
use std::sync::{Arc, LazyLock};

use sha2::{Digest as _, Sha256};

/// Digest of a checkpoint, computed in the background before it is needed.
#[derive(Clone)]
pub(crate) struct CheckpointDigest(Arc<LazyLock<String, Box<dyn FnOnce() -> String + Send>>>);

impl CheckpointDigest {
    /// Starts to compute the digest of a checkpoint. Must be called within a tokio runtime.
    pub(crate) fn compute(checkpoint: Arc<String>) -> Self {
        let digest = Self(Arc::new(LazyLock::new(Box::new(move || digest(&checkpoint)))));
        let computed = digest.clone();
        tokio::task::spawn_blocking(move || {
            computed.as_str();
        });
        digest
    }

    /// Wraps a digest that was computed before.
    pub(crate) fn from_digest(digest: String) -> Self {
        Self(Arc::new(LazyLock::new(Box::new(move || digest))))
    }

    /// Returns the digest in hexadecimal digits. Blocks until it is computed.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for CheckpointDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CheckpointDigest").finish_non_exhaustive()
    }
}

/// Returns the SHA-256 of a checkpoint in hexadecimal digits.
pub(crate) fn digest(checkpoint: &str) -> String {
    hex::encode(Sha256::digest(checkpoint))
}
