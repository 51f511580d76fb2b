//! Text of a checkpoint, which the revision, the request that writes it and the repetitions of the request share: a state may
//! have hundreds of megabytes.

use std::sync::Arc;

/// Text of a checkpoint to save. Clones share it.
#[derive(Clone, Debug)]
pub struct CheckpointText(Arc<String>);

impl CheckpointText {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn shared(&self) -> Arc<String> {
        Arc::clone(&self.0)
    }
}

impl AsRef<[u8]> for CheckpointText {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl From<String> for CheckpointText {
    fn from(text: String) -> Self {
        Self(Arc::new(text))
    }
}

impl From<&str> for CheckpointText {
    fn from(text: &str) -> Self {
        Self(Arc::new(text.to_owned()))
    }
}

impl From<&Arc<String>> for CheckpointText {
    fn from(text: &Arc<String>) -> Self {
        Self(Arc::clone(text))
    }
}
