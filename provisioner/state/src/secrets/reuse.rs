//! Which sealed text to write for a secret that was loaded and has not changed.

use std::collections::HashMap;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

/// The sealed texts of a loaded snapshot by the digest of what they hold.
///
/// Sealing the same text twice gives different results, so a snapshot written back would differ from what was loaded at
/// every secret. Each sealed text is handed out as often as it was loaded and no more: two secrets that happen to be equal
/// do not come to share one. Valid for one key only.
#[derive(Clone, Debug, Default)]
pub struct CiphertextReuse {
    loaded: HashMap<Digest, Vec<Arc<str>>>,
}

/// The SHA-256 of a text.
type Digest = [u8; 32];

fn digest_of(text: &str) -> Digest {
    Sha256::digest(text).into()
}

impl CiphertextReuse {
    /// Remembers what a sealed text was found to hold.
    pub(crate) fn remember(&mut self, plaintext: &str, ciphertext: &str) {
        self.loaded.entry(digest_of(plaintext)).or_default().push(ciphertext.into());
    }

    /// Starts handing out, for one snapshot to be written.
    pub(crate) fn pass(&self) -> ReusePass<'_> {
        ReusePass { loaded: &self.loaded, used: HashMap::new() }
    }
}

/// The handing out for one snapshot, in the order of its secrets.
#[derive(Debug)]
pub(crate) struct ReusePass<'a> {
    loaded: &'a HashMap<Digest, Vec<Arc<str>>>,
    used: HashMap<Digest, usize>,
}

impl ReusePass<'_> {
    /// The next sealed text for what it is to hold, if there is one left.
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

    #[test]
    fn equal_secrets_do_not_come_to_share_a_sealed_text() {
        let mut reuse = CiphertextReuse::default();
        reuse.remember("twice", "first");
        reuse.remember("twice", "second");
        let mut pass = reuse.pass();
        let taken: Vec<_> = (0..3).map(|_| pass.take("twice")).collect();
        assert_eq!(taken, [Some("first".into()), Some("second".into()), None]);
        assert_eq!(reuse.pass().take("twice"), Some("first".into()));
        assert_eq!(reuse.pass().take("other"), None);
    }
}
