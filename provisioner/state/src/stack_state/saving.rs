//! Encodes the checkpoint that a run saves, and explains why it was not saved.

use jiff::Timestamp;

use super::access::StackAccess;
use super::stack_secrets::StackSecrets;
use crate::checkpoint::encode_successor;
use crate::error::StateError;
use crate::format::UpdateInfo;
use crate::integrity::{self, IntegrityError};
use crate::secrets::SecretsError;
use crate::snapshot::{Snapshot, drop_in_background};
use crate::store::StoreError;

/// Makes a change of a checkpoint, and adds the newest run in the history to the error of one that another program has
/// replaced.
///
/// # Errors
/// [`StateError::Replaced`]; other errors of the store.
pub(super) async fn explained<T>(
    access: &StackAccess,
    change: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StateError> {
    let error = match change.await {
        Err(error @ StoreError::Replaced { .. }) => error,
        changed => return Ok(changed?),
    };
    let entries = access.store.history(&access.stack).await.unwrap_or_default();
    let newest = entries.last().and_then(|entry| UpdateInfo::from_json(entry).ok()).map(Box::new);
    Err(StateError::Replaced { error: Box::new(error), newest })
}

/// Returns the text of the checkpoint to save, and its integrity error if it has one. The error is also written into
/// the metadata of the checkpoint, as Pulumi does. `earlier_length` is that of [`encode_successor`].
pub(super) async fn encode_for_saving(
    access: &StackAccess,
    secrets: &StackSecrets,
    mut snapshot: Snapshot,
    earlier_length: usize,
) -> Result<(String, Option<IntegrityError>), StateError> {
    snapshot.manifest.time = Some(Timestamp::now().to_string());
    snapshot.manifest.version = Some(access.engine_version.clone()).filter(|version| !version.is_empty());
    snapshot.manifest.wrong_checksum = None;
    if let Some(description) = secrets.description() {
        snapshot.secrets = Some(description);
    }
    let integrity_error = integrity::verify(&snapshot).err();
    snapshot.rest.metadata.shift_remove("integrity_error");
    if let Some(error) = &integrity_error {
        let details =
            serde_json::json!({ "version": access.engine_version, "command": "sc", "error": error.to_string() });
        snapshot.rest.metadata.insert("integrity_error".to_owned(), details);
    }
    let manager = secrets.manager.as_deref();
    let name = access.store.full_name(&access.stack);
    let text = encode_successor(&name, Some(&snapshot), manager.ok(), &secrets.reuse, earlier_length).await;
    drop_in_background(snapshot);
    match (text, &secrets.manager) {
        (Ok(text), _) => Ok((text, integrity_error)),
        // The reason for the missing manager is more specific than the missing key.
        (Err(SecretsError::KeyNeeded), Err(reason)) => Err(reason.clone().into()),
        (Err(error), _) => Err(error.into()),
    }
}
