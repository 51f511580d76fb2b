//! Encodes the checkpoint that a run saves.

use jiff::Timestamp;

use super::access::StackAccess;
use super::sealer::Sealer;
use crate::background::free_aside;
use crate::checkpoint::encode_checkpoint;
use crate::error::StateError;
use crate::integrity::{self, IntegrityError};
use crate::secrets::SecretsError;
use crate::snapshot::Snapshot;

/// The text of the checkpoint to save, and which laws it breaks. What breaks them is marked so that others can tell.
pub(super) async fn write(
    access: &StackAccess,
    sealer: &Sealer,
    mut snapshot: Snapshot,
) -> Result<(String, Option<IntegrityError>), StateError> {
    snapshot.manifest.time = Some(Timestamp::now().to_string());
    snapshot.manifest.version = Some(access.engine_version.clone()).filter(|version| !version.is_empty());
    snapshot.manifest.wrong_checksum = None;
    if let Some(description) = sealer.description() {
        snapshot.secrets = Some(description);
    }
    let breach = integrity::verify(&snapshot).err();
    snapshot.rest.metadata.shift_remove("integrity_error");
    if let Some(breach) = &breach {
        let mark =
            serde_json::json!({ "version": access.engine_version, "command": "sc", "error": breach.to_string() });
        snapshot.rest.metadata.insert("integrity_error".to_owned(), mark);
    }
    let manager = sealer.manager.as_deref();
    let name = access.store.full_name(&access.stack);
    let text = encode_checkpoint(&name, Some(&snapshot), manager.ok(), &sealer.reuse).await;
    free_aside(snapshot);
    match (text, &sealer.manager) {
        (Ok(text), _) => Ok((text, breach)),
        // Why there is no key says more than that there is none.
        (Err(SecretsError::KeyNeeded), Err(reason)) => Err(reason.clone().into()),
        (Err(error), _) => Err(error.into()),
    }
}
