//! Reuse of the loaded ciphertexts of unchanged secrets.

use std::collections::HashMap;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

/// Ciphertexts of a loaded snapshot by the digest of their plaintext.
///
/// Encrypting the same text twice gives different ciphertexts, so without reuse each save would change every secret of
/// a snapshot. Each ciphertext is used as often as it was loaded and no more: two secrets that happen to be equal never
/// share one. Valid for one key only.
#[derive(Clone, Debug, Default)]
pub struct CiphertextReuse {
    loaded: HashMap<Digest, Vec<Arc<str>>>,
}

/// SHA-256 of a text.
type Digest = [u8; 32];

fn digest_of(text: &str) -> Digest {
    Sha256::digest(text).into()
}

impl CiphertextReuse {
    /// Records a loaded ciphertext with its plaintext.
    pub(crate) fn record(&mut self, plaintext: &str, ciphertext: &str) {
        self.loaded.entry(digest_of(plaintext)).or_default().push(ciphertext.into());
    }

    /// Starts a pass for writing one snapshot.
    pub(crate) fn begin_pass(&self) -> ReusePass<'_> {
        ReusePass { loaded: &self.loaded, used: HashMap::new() }
    }
}

/// Use of the ciphertexts for one snapshot, in the order of its secrets.
#[derive(Debug)]
pub(crate) struct ReusePass<'a> {
    loaded: &'a HashMap<Digest, Vec<Arc<str>>>,
    used: HashMap<Digest, usize>,
}

impl ReusePass<'_> {
    /// Returns the next unused ciphertext of a plaintext, if there is one.
    pub(crate) fn take(&mut self, plaintext: &str) -> Option<Arc<str>> {
        if self.loaded.is_empty() {
            return None;
        }
        let digest = digest_of(plaintext);
        let candidates = self.loaded.get(&digest)?;
        let used = self.used.entry(digest).or_default();
        *used += 1;
        candidates.get(*used - 1).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows: state.md#secrets "Equal secrets never share one ciphertext."
    #[test]
    fn equal_secrets_do_not_share_a_ciphertext() {
        let mut reuse = CiphertextReuse::default();
        reuse.record("twice", "first");
        reuse.record("twice", "second");
        let mut pass = reuse.begin_pass();
        let taken: Vec<_> = (0..3).map(|_| pass.take("twice")).collect();
        assert_eq!(taken, [Some("first".into()), Some("second".into()), None]);
        assert_eq!(reuse.begin_pass().take("twice"), Some("first".into()));
        assert_eq!(reuse.begin_pass().take("other"), None);
    }
}
