//! Detects that a stack has lost its resources.

use super::access::StackAccess;
use super::loading::{LoadedStack, read_snapshot};
use crate::digest::digest;
use crate::error::{StateError, UnexplainedEmptyState};
use crate::store::{CheckpointCopy, CopyKind};

/// Checks a loaded state, without a journal: that of a run which died after saving the checkpoint explains the state, too.
///
/// A run that removed the last resource has left the checkpoint in the history. A stack that was removed or renamed has
/// the previous checkpoint, and neither a current one nor a history.
///
/// # Errors
/// [`StateError::Store`] if the copies of the checkpoints cannot be listed.
pub(super) async fn find(
    access: &StackAccess,
    loaded: Option<&LoadedStack>,
) -> Result<Option<UnexplainedEmptyState>, StateError> {
    let snapshot = loaded.and_then(|loaded| loaded.checkpoint.checkpoint.snapshot.as_ref());
    if snapshot.is_some_and(|snapshot| !snapshot.resources.is_empty()) {
        return Ok(None);
    }
    let kinds = [CopyKind::Previous, CopyKind::History, CopyKind::Backup];
    let copies = access.store.copies(&access.stack, &kinds).await?;
    let newest = |kind| copies.iter().find(|copy| copy.kind == kind);
    let (previous, history) = (newest(CopyKind::Previous), newest(CopyKind::History));
    if loaded.is_none() && previous.is_some() && history.is_none() {
        return Ok(None);
    }
    // Backups outlive a removed stack, which has left a previous checkpoint.
    let backup = newest(CopyKind::Backup).filter(|_| previous.is_none() && history.is_none());
    for copy in [previous, history, backup].into_iter().flatten() {
        let resources = count_resources(access, copy).await;
        if resources == Some(0) {
            continue;
        }
        if let Some(loaded) = loaded
            && is_in_history(access, loaded, &copies).await
        {
            return Ok(None);
        }
        let (stack, is_missing) = (access.stack.clone(), loaded.is_none());
        return Ok(Some(UnexplainedEmptyState { stack, is_missing, copy: copy.clone(), resources }));
    }
    Ok(None)
}

async fn count_resources(access: &StackAccess, copy: &CheckpointCopy) -> Option<usize> {
    let text = access.store.read_copy(copy).await.ok()?;
    read_snapshot(&text).ok().map(|snapshot| snapshot.resources.len())
}

/// Returns `true` if a run in the history has saved exactly this checkpoint. The order of the names does not matter: it
/// is that of a clock which may have been set back.
async fn is_in_history(access: &StackAccess, loaded: &LoadedStack, copies: &[CheckpointCopy]) -> bool {
    for copy in copies.iter().filter(|copy| copy.kind == CopyKind::History) {
        let text = access.store.read_copy(copy).await;
        if text.is_ok_and(|text| digest(&text) == loaded.revision.digest().as_str()) {
            return true;
        }
    }
    false
}
