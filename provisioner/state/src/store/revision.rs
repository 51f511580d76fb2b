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
    object: Option<ObjectRevision>,
}

/// Object of a checkpoint, in a store with conditional writes.
#[derive(Clone, Debug)]
pub(super) struct ObjectRevision {
    /// Compression, which is a part of the key.
    pub(super) variant: Compression,
    /// Version of the object.
    pub(super) version: ObjectVersion,
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
    /// Creates a checkpoint whose revision is the digest of its text.
    pub(crate) fn new(text: String) -> Self {
        let text = Arc::new(text);
        Self { revision: Revision::of_saved(Arc::clone(&text)), text }
    }

    /// Returns the text.
    pub fn into_text(self) -> String {
        let Self { text, revision } = self;
        // The revision shares the text until its digest is computed.
        drop(revision);
        Arc::try_unwrap(text).unwrap_or_else(|text| (*text).clone())
    }
}

impl Revision {
    /// Returns the revision of a text that was saved.
    pub(super) fn of_saved(text: Arc<String>) -> Self {
        Self { digest: CheckpointDigest::of(text), object: None }
    }

    /// Returns the revision of a text that is stored as an object.
    pub(super) fn of_object(text: Arc<String>, object: ObjectRevision) -> Self {
        Self { digest: CheckpointDigest::of(text), object: Some(object) }
    }

    /// Returns the object, in a store with conditional writes.
    pub(super) fn object(&self) -> Option<&ObjectRevision> {
        self.object.as_ref()
    }

    /// Returns the digest of the text.
    pub(crate) fn digest(&self) -> &CheckpointDigest {
        &self.digest
    }
}

impl Expected {
    /// Returns the expectation that a loaded checkpoint, or its absence, is unchanged.
    pub fn unchanged(loaded: Option<&StoredCheckpoint>) -> Self {
        loaded.map_or(Self::Missing, |loaded| Self::Revision(loaded.revision.clone()))
    }

    /// Returns whether a checkpoint with this text, or none, is the expected one. Blocks until the digests are computed.
    pub(super) fn is_met_by(&self, found: Option<&str>) -> bool {
        match (self, found) {
            (Self::Any, _) | (Self::Missing, None) => true,
            (Self::Revision(revision), Some(text)) => revision.digest.as_str() == digest(text),
            (Self::Missing, Some(_)) | (Self::Revision(_), None) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_expects_what_was_read() {
        let read = StoredCheckpoint::new("a".to_owned());
        let expected = [
            (Expected::unchanged(Some(&read)), [false, true, false]),
            (Expected::Revision(Revision::of_saved(Arc::new("a".to_owned()))), [false, true, false]),
            (Expected::unchanged(None), [true, false, false]),
            (Expected::Any, [true, true, true]),
        ];
        for (expected, met) in expected {
            assert_eq!([None, Some("a"), Some("b")].map(|found| expected.is_met_by(found)), met, "{expected:?}");
        }
    }
}
