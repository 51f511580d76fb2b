//! Texts to mask: the secrets, and the parts of them that are secret alone.
//!
//! A text is masked if it is one of these:
//! - a secret of at least [`MIN_LENGTH`] bytes;
//! - a line with at least [`MIN_PART_LENGTH`] characters of a secret with several lines, unless it is the first or last
//!   line of a PEM text, or has only the punctuation of JSON;
//! - a text with at least [`MIN_PART_LENGTH`] characters in a secret that is a JSON document, and the lines of the
//!   text, unless it is public: see [`is_public`];
//! - one of these as a terminal shows it.

use std::collections::BTreeSet;
use std::ops::Range;

use hashbrown::{HashMap, HashSet};
use serde_json::Value;

use super::reading::{MIN_LENGTH, visible};

/// Minimum length in characters of a masked part of a secret.
const MIN_PART_LENGTH: usize = 8;

/// Maximum length in bytes of a cut escape, which is read as other characters than the whole escape.
const MAX_CUT_ESCAPE: usize = 16;

/// Start of a text, by which the texts that may begin at a place are found.
type Prefix = [u8; MIN_LENGTH];

/// Set of texts to mask.
#[derive(Default)]
pub(super) struct SecretTexts {
    /// Secrets that were added, so that each is taken apart only once.
    secrets: HashSet<Box<str>>,
    /// Texts to mask, by their first bytes.
    by_prefix: HashMap<Prefix, BTreeSet<Box<str>>>,
}

impl SecretTexts {
    /// Adds a secret with its parts.
    pub(super) fn add(&mut self, secret: &str) {
        let secret = secret.trim();
        if secret.len() < MIN_LENGTH || self.secrets.contains(secret) {
            return;
        }
        self.secrets.insert(secret.into());
        self.insert(secret);
        self.add_lines(secret);
        if secret.starts_with(['{', '[', '"'])
            && let Ok(document) = serde_json::from_str(secret)
        {
            self.add_members("", &document);
        }
    }

    /// Adds the lines of a text with several lines.
    fn add_lines(&mut self, text: &str) {
        if !text.contains(['\n', '\r']) {
            return;
        }
        for line in text.split(['\n', '\r']) {
            // The comma behind a member of a JSON document depends on its place.
            let line = line.trim().trim_end_matches(',');
            if line.chars().count() >= MIN_PART_LENGTH && !is_pem_boundary(line) && !is_punctuation(line) {
                self.insert(line);
            }
        }
    }

    /// Adds the texts in a JSON document that are secret alone. `name` is the name of the member that holds the value.
    fn add_members(&mut self, name: &str, value: &Value) {
        match value {
            Value::String(text) => {
                let text = text.trim();
                if text.chars().count() >= MIN_PART_LENGTH && !is_public(name, text) {
                    self.insert(text);
                    self.add_lines(text);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.add_members(name, item)),
            Value::Object(members) => members.iter().for_each(|(name, value)| self.add_members(name, value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Inserts a text, and what a terminal shows of it.
    fn insert(&mut self, text: &str) {
        if let Some(visible) = visible(text) {
            self.insert_as_it_is(visible.trim());
        }
        self.insert_as_it_is(text);
    }

    fn insert_as_it_is(&mut self, text: &str) {
        if let Some(prefix) = text.as_bytes().first_chunk() {
            self.by_prefix.entry(*prefix).or_default().insert(text.into());
        }
    }

    /// Returns whether a text is a secret, apart from surrounding space.
    pub(super) fn contains(&self, text: &str) -> bool {
        self.secrets.contains(text.trim())
    }

    /// Returns the number of secrets that were added.
    pub(super) fn count(&self) -> usize {
        self.secrets.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_prefix.is_empty()
    }

    /// Calls `found` with the range of each occurrence of a text to mask, and of its beginning at the end of a text that
    /// is cut. Ranges may overlap.
    pub(super) fn find(&self, text: &str, is_cut: bool, mut found: impl FnMut(Range<usize>)) {
        for (start, prefix) in text.as_bytes().windows(MIN_LENGTH).enumerate() {
            let Some(prefix) = prefix.first_chunk::<MIN_LENGTH>() else { return };
            let rest = &text.as_bytes()[start..];
            for known in self.by_prefix.get(prefix).into_iter().flatten() {
                if rest.starts_with(known.as_bytes()) {
                    found(start..start + known.len());
                } else if is_cut && common_length(rest, known.as_bytes()) + MAX_CUT_ESCAPE >= rest.len() {
                    found(start..text.len());
                }
            }
        }
    }
}

/// Returns the number of first bytes that two texts have in common.
fn common_length(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

/// Returns whether a line is the first or last line of a PEM text.
fn is_pem_boundary(line: &str) -> bool {
    (line.starts_with("-----BEGIN ") || line.starts_with("-----END ")) && line.ends_with("-----")
}

/// Returns whether a line has only the punctuation of JSON.
fn is_punctuation(line: &str) -> bool {
    line.chars().all(|character| "{}[],:\"".contains(character) || character.is_whitespace())
}

/// Returns whether a text in a JSON document is no secret alone: an address without credentials, or, unless the name of
/// its member says that it is a secret, an identifier whose words are only letters or only digits
/// (`service_account`, `reef-prod-2`, `deployer@reef-prod-2.iam.example.com`). A mask for such a text would make
/// messages useless.
fn is_public(name: &str, text: &str) -> bool {
    const SECRET_NAMES: [&str; 8] =
        ["key", "secret", "token", "password", "passphrase", "passwd", "credential", "auth"];
    if let Some((scheme, rest)) = text.split_once("://") {
        return scheme.chars().all(|character| character.is_ascii_alphanumeric())
            && !rest.contains(['@', '?', '#', ' ', '\n']);
    }
    let name = name.to_ascii_lowercase();
    let words = text.split(['_', '-', '.', '@', ':', '/']);
    let is_plain = |word: &str| {
        word.bytes().all(|byte| byte.is_ascii_alphabetic()) || word.bytes().all(|byte| byte.is_ascii_digit())
    };
    !SECRET_NAMES.iter().any(|secret| name.contains(secret)) && words.into_iter().all(is_plain)
}
