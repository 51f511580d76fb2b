//! Detects that a stack has lost its resources.

use super::access::StackAccess;
use super::loading::{LoadedStack, read_snapshot};
use crate::error::{StateError, UnexplainedEmptyState};
use crate::journal;
use crate::store::{CheckpointCopy, CopyKind};

/// Checks a loaded state, without the records of a journal.
///
/// A run that removed the last resource has left the checkpoint as the newest one in the history. A stack that was
/// removed or renamed has neither a checkpoint nor a history.
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
    let newest =
        async |kind| Ok::<_, StateError>(access.store.copies(&access.stack, &[kind]).await?.into_iter().next());
    let Some(previous) = newest(CopyKind::Previous).await? else { return Ok(None) };
    let resources = count_resources(access, &previous).await;
    if resources == Some(0) {
        return Ok(None);
    }
    let is_explained = match (loaded, newest(CopyKind::History).await?) {
        (None, history) => history.is_none(),
        (Some(_), None) => false,
        (Some(loaded), Some(history)) => {
            let text = access.store.read_copy(&history).await;
            text.is_ok_and(|text| journal::digest(&text) == loaded.digest.as_str())
        }
    };
    let (stack, previous) = (access.stack.clone(), previous.path);
    let state = UnexplainedEmptyState { stack, is_missing: loaded.is_none(), previous, resources };
    Ok(Some(state).filter(|_| !is_explained))
}

async fn count_resources(access: &StackAccess, copy: &CheckpointCopy) -> Option<usize> {
    let text = access.store.read_copy(copy).await.ok()?;
    read_snapshot(&text).ok().map(|snapshot| snapshot.resources.len())
}
