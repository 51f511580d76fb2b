//! Revision of a checkpoint: a checkpoint replaces only the one that its run has read.

use std::sync::Arc;

use super::compression::Compression;
use super::objects::ObjectVersion;
use crate::digest::{CheckpointDigest, digest};

/// Checkpoint as a store has it.
#[derive(Clone, Debug)]
pub struct StoredCheckpoint {
    /// Text of the checkpoint.
    pub text: Arc<String>,
    /// Revision of the checkpoint.
    pub revision: Revision,
}

/// Revision of a checkpoint, by which a store recognizes that another program has replaced it. Clones share it.
#[derive(Clone, Debug)]
pub struct Revision {
    digest: CheckpointDigest,
    /// Length of the text in bytes.
    length: usize,
    /// Compression, which is a part of the key.
    variant: Compression,
    /// Version of the object.
    version: ObjectVersion,
}

/// Checkpoint that a change expects to find, and replaces.
#[derive(Clone, Debug)]
pub enum Expected {
    /// No checkpoint: the stack does not exist.
    Missing,
    /// The checkpoint that was read.
    Revision(Revision),
    /// Any content, or none: the checkpoint that is there could not be read.
    Any,
}

impl StoredCheckpoint {
    /// Creates the checkpoint that an object has.
    pub(super) fn new(text: String, variant: Compression, version: ObjectVersion) -> Self {
        let text = Arc::new(text);
        Self { revision: Revision::new(Arc::clone(&text), variant, version), text }
    }

    /// Creates a checkpoint that is not in a store.
    #[cfg(test)]
    pub(crate) fn of_text(text: String) -> Self {
        Self::new(text, Compression::None, ObjectVersion { tag: None, generation: None })
    }

    /// The text.
    pub fn into_text(self) -> String {
        let Self { text, revision } = self;
        // The revision shares the text until its digest is computed.
        drop(revision);
        Arc::try_unwrap(text).unwrap_or_else(|text| (*text).clone())
    }
}

impl Revision {
    /// Returns the revision of a text that is stored as an object.
    pub(super) fn new(text: Arc<String>, variant: Compression, version: ObjectVersion) -> Self {
        Self { length: text.len(), digest: CheckpointDigest::of(text), variant, version }
    }

    pub(super) fn object(&self) -> (Compression, ObjectVersion) {
        (self.variant, self.version.clone())
    }

    pub(super) fn is_object(&self, variant: Compression, version: &ObjectVersion) -> bool {
        self.variant == variant && self.version == *version
    }

    /// Returns whether a text is that of the revision. Blocks until the digests are computed.
    pub(super) fn has_text(&self, text: &str) -> bool {
        self.digest.as_str() == digest(text)
    }

    /// Returns the revision of the same text that is stored as another object.
    pub(super) fn at(&self, variant: Compression, version: ObjectVersion) -> Self {
        Self { digest: self.digest.clone(), length: self.length, variant, version }
    }

    pub(crate) fn digest(&self) -> &CheckpointDigest {
        &self.digest
    }
}

impl Expected {
    /// Returns the length of the expected text in bytes; 0 if it is not known.
    pub(crate) fn text_length(&self) -> usize {
        match self {
            Self::Revision(revision) => revision.length,
            Self::Missing | Self::Any => 0,
        }
    }

    /// Returns the SHA-256 of the expected text; `None` if there is none, or it is not known.
    pub(crate) fn text_digest(&self) -> Option<&str> {
        match self {
            Self::Revision(revision) => Some(revision.digest().as_str()),
            Self::Missing | Self::Any => None,
        }
    }

    /// Returns the expectation that a loaded checkpoint, or its absence, is unchanged.
    pub fn unchanged(loaded: Option<&StoredCheckpoint>) -> Self {
        loaded.map_or(Self::Missing, |loaded| Self::Revision(loaded.revision.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revision_is_recognized_by_its_object_or_by_its_text() {
        let version = |number: u32| ObjectVersion { tag: None, generation: Some(number.to_string()) };
        let read = StoredCheckpoint::new("a".to_owned(), Compression::Gzip, version(1)).revision;
        assert!(read.is_object(Compression::Gzip, &version(1)));
        assert!(!read.is_object(Compression::None, &version(1)) && !read.is_object(Compression::Gzip, &version(2)));
        assert!(read.has_text("a") && !read.has_text("b"));
        let moved = read.at(Compression::None, version(2));
        assert!(moved.is_object(Compression::None, &version(2)) && moved.has_text("a"));
    }
}
