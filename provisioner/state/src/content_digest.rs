//! Digest of what a state says about resources: equal for states that differ in time, writer, encryption or history alone.
//!
//! Input: a snapshot. Output: a digest of its resources and its pending operations, in the stored form, with plaintext secrets.
//! Excluded: the version and the time of the writer, the secrets manager, and members that the engine preserves without
//! using them.
//!
//! A saved plan is bound to the state by this digest, so an equal state that was saved again does not make a plan stale.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::format::{SecretEncryption, write_checkpoint};
use super::secrets::SecretsError;
use super::snapshot::Snapshot;

/// Returns the digest of the resources and the pending operations of a snapshot, in hexadecimal digits. Whoever sees it can test
/// guesses of secrets, so it is kept encrypted.
///
/// # Errors
/// [`SecretsError`] does not occur for a snapshot that was loaded.
pub fn content_digest(snapshot: &Snapshot) -> Result<String, SecretsError> {
    let content = Snapshot {
        resources: snapshot.resources.iter().map(Arc::clone).collect(),
        pending_operations: snapshot.pending_operations.clone(),
        ..Snapshot::default()
    };
    let text = write_checkpoint("", Some(&content), SecretEncryption::Plaintext, 0)?;
    Ok(hex::encode(Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::ResourceState;
    use crate::snapshot::Manifest;

    #[test]
    fn digest_depends_on_resources_and_not_on_the_writer() {
        let resource = |protect| {
            let state = ResourceState::new("urn:pulumi:s::p::t:m:T::a".parse().unwrap(), true);
            Arc::new(ResourceState { protect, ..state })
        };
        let snapshot = |protect, time: &str| Snapshot {
            manifest: Manifest { time: Some(time.to_owned()), ..Manifest::default() },
            resources: vec![resource(protect)],
            ..Snapshot::default()
        };
        let digest = |snapshot: Snapshot| content_digest(&snapshot).unwrap();
        assert_eq!(digest(snapshot(true, "1")), digest(snapshot(true, "2")));
        assert_ne!(digest(snapshot(true, "1")), digest(snapshot(false, "1")));
    }
}
