//! Digest of a checkpoint.

use std::fmt;
use std::sync::{Arc, LazyLock};

use sha2::{Digest as _, Sha256};
use tokio::task::JoinHandle;

/// Digest of a checkpoint, computed when it is needed first. Clones share it.
#[derive(Clone)]
pub(crate) struct CheckpointDigest(Arc<LazyLock<String, Box<dyn FnOnce() -> String + Send>>>);

impl CheckpointDigest {
    pub(crate) fn of(checkpoint: Arc<String>) -> Self {
        Self(Arc::new(LazyLock::new(Box::new(move || digest(&checkpoint)))))
    }

    /// Starts to compute the digest in the background. The task ends once it is computed. Must be called within a tokio runtime.
    pub(crate) fn compute_in_background(&self) -> JoinHandle<()> {
        let computed = self.clone();
        tokio::task::spawn_blocking(move || {
            computed.as_str();
        })
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
