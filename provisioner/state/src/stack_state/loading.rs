//! Loads the checkpoint of a stack.

use super::access::StackAccess;
use crate::checkpoint::{LoadedCheckpoint, decode_checkpoint, decode_without_secrets};
use crate::error::StateError;
use crate::format::{FormatError, SecretDecryption, StoredText};
use crate::snapshot::Snapshot;
use crate::store::{MigrationDirection, Revision, StoreError, StoredCheckpoint};

/// Checkpoint of a stack with its revision, whose digest binds journals to it.
pub(super) struct LoadedStack {
    pub(super) revision: Revision,
    pub(super) checkpoint: LoadedCheckpoint,
}

/// Loads the checkpoint of a stack; `None` if the stack does not exist.
pub(super) async fn load(access: &StackAccess) -> Result<Option<LoadedStack>, StateError> {
    let loaded = match access.store.load(&access.stack).await {
        // Under the old name there is no stack.
        Err(StoreError::Migrated { mark, .. })
            if access.begins_anew && mark.direction == MigrationDirection::Renamed =>
        {
            None
        }
        loaded => loaded?,
    };
    let Some(StoredCheckpoint { text, revision }) = loaded else { return Ok(None) };
    let failed = |error| access.checkpoint_error(error);
    let digest = revision.digest().compute_in_background();
    let checkpoint = decode_checkpoint(&text, &access.keyring).await.map_err(failed)?;
    // The text is freed here, not by the thread that computes the digest: the allocator keeps a large block that another
    // thread frees. An error is a panic of the digest, which its next use continues.
    digest.await.ok();
    Ok(Some(LoadedStack { revision, checkpoint }))
}

/// Loads the checkpoint of a stack without decrypting its secrets; `None` if the stack does not exist.
pub(super) async fn load_without_secrets(access: &StackAccess) -> Result<Option<LoadedStack>, StateError> {
    let Some(StoredCheckpoint { text, revision }) = access.store.load(&access.stack).await? else { return Ok(None) };
    let checkpoint = decode_without_secrets(&text, &access.keyring).map_err(|error| access.checkpoint_error(error))?;
    Ok(Some(LoadedStack { revision, checkpoint }))
}

/// Reads the snapshot of a checkpoint without decrypting its secrets.
pub(super) fn read_snapshot(checkpoint: &str) -> Result<Snapshot, FormatError> {
    Ok(StoredText::parse(checkpoint)?.read(SecretDecryption::KeepEncrypted)?.snapshot.unwrap_or_default())
}
