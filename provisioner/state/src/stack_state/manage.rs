//! Stacks as a whole: another name, the end, what happened to them.

use pulumi_proto::urn::ROOT_STACK_TYPE;

use super::access::StackAccess;
use super::recovery;
use super::view::StackView;
use crate::error::StateError;
use crate::format::{self, FormatError, Opening, StoredText, UpdateInfo};
use crate::journal;
use crate::snapshot::{OperationKind, Snapshot};
use crate::store::{Backups, LockHolder, StackLock, StackReference};

/// Gives a stack another name, in its own project or in another: as `pulumi stack rename` does. Needs no key; what is
/// sealed stays as it is.
///
/// # Errors
/// [`StateError`]: there is no such stack, there is one of the new name, a run was interrupted. Nothing has moved then. What
/// comes last may fail when the stack has its new name already: moving its history, giving the lock back.
pub async fn rename_stack(access: &StackAccess, holder: &LockHolder, to: &StackReference) -> Result<(), StateError> {
    let lock = access.store.lock(&access.stack, holder).await?;
    let renamed = rename_locked(access, &lock, to).await;
    let unlocked = access.store.unlock(lock).await;
    renamed?;
    Ok(unlocked?)
}

async fn rename_locked(access: &StackAccess, lock: &StackLock, to: &StackReference) -> Result<(), StateError> {
    let checkpoint = settled(access).await?;
    let renamed = StackAccess { stack: to.clone(), ..access.clone() };
    if let Some(journal) = journal::left_behind(&renamed.journals, to)?.into_iter().next() {
        return Err(StateError::Interrupted { stack: to.clone(), journal });
    }
    let text = format::rename_stack(&checkpoint, &access.stack, to).map_err(|error| unreadable(access, error))?;
    Ok(access.store.rename(lock, to, &text).await?)
}

/// Removes a stack: its state, history and tags, as `pulumi stack rm` does. With `force` it may have resources, which are
/// forgotten and stay where they are.
///
/// # Errors
/// [`StateError`]: there is no such stack, it has resources, or creations that nobody has settled, a run was interrupted.
/// Nothing has gone then, unless only the lock could not be given back.
pub async fn remove_stack(
    access: &StackAccess,
    holder: &LockHolder,
    force: bool,
    backups: Backups,
) -> Result<(), StateError> {
    let lock = access.store.lock(&access.stack, holder).await?;
    let removed = remove_locked(access, &lock, force, backups).await;
    let unlocked = access.store.unlock(lock).await;
    removed?;
    Ok(unlocked?)
}

async fn remove_locked(
    access: &StackAccess,
    lock: &StackLock,
    force: bool,
    backups: Backups,
) -> Result<(), StateError> {
    let checkpoint = settled(access).await?;
    if !force {
        let snapshot = snapshot_of(&checkpoint).map_err(|error| unreadable(access, error))?;
        let stack = access.stack.clone();
        // The stack itself is none.
        let resources = snapshot.resources.iter().filter(|state| state.type_token.as_str() != ROOT_STACK_TYPE);
        let count = resources.count();
        if count > 0 {
            return Err(StateError::NotEmpty { stack, count });
        }
        let creations = snapshot.pending_operations.iter().filter(|pending| pending.kind == OperationKind::Creating);
        let names: Vec<String> = creations.map(|pending| pending.resource.urn.name().to_owned()).collect();
        if !names.is_empty() {
            return Err(StateError::Unsettled { stack, names });
        }
    }
    Ok(access.store.remove(lock, backups).await?)
}

/// What happened to a stack, the oldest first.
///
/// # Errors
/// [`StateError`] if an entry cannot be read.
pub async fn history(access: &StackAccess) -> Result<Vec<UpdateInfo>, StateError> {
    let entries = access.store.history(&access.stack).await?;
    let read = |text: &String| UpdateInfo::from_json(text);
    let failed = |source| StateError::History { stack: access.stack.clone(), source };
    entries.iter().map(read).collect::<Result<_, _>>().map_err(failed)
}

/// What a list says of a stack.
#[derive(Clone, Debug)]
pub struct StackSummary {
    /// How many there are in its state, the stack itself among them. `None`: it has not been provisioned yet, or by a run
    /// that has not ended and whose journal needs a key that is missing.
    pub resources: Option<usize>,
    /// Time at which its state was written, as the state says.
    pub updated: Option<String>,
    pub is_locked: bool,
    /// A run has not ended.
    pub is_interrupted: bool,
}

/// Sums a stack up, without locking it. Needs no key: without one, what the journal of a run would add is left out.
///
/// # Errors
/// [`StateError`].
pub async fn summary(access: &StackAccess) -> Result<StackSummary, StateError> {
    let is_locked = !access.store.locks(&access.stack).await?.is_empty();
    let has_journal = access.has_journal()?;
    let view = if has_journal { StackView::open(access).await.ok() } else { None };
    let (snapshot, is_interrupted) = match view {
        Some(view) => (view.snapshot, view.recovered.is_some() || view.conflict.is_some()),
        None => {
            let checkpoint = access.store.load(&access.stack).await?;
            let snapshot = checkpoint.as_deref().map(snapshot_of).transpose();
            (snapshot.map_err(|error| unreadable(access, error))?, has_journal)
        }
    };
    let resources = snapshot.as_ref().map(|snapshot| snapshot.resources.len());
    let updated = snapshot.and_then(|snapshot| snapshot.manifest.time);
    Ok(StackSummary { resources, updated, is_locked, is_interrupted })
}

/// The checkpoint of a stack that no interrupted run has anything to add to.
async fn settled(access: &StackAccess) -> Result<String, StateError> {
    let checkpoint = access.store.load(&access.stack).await?;
    recovery::refuse_interrupted(access, checkpoint.as_deref()).await?;
    checkpoint.ok_or_else(|| StateError::NoStack(access.stack.clone()))
}

/// What a checkpoint holds, secrets unopened.
fn snapshot_of(checkpoint: &str) -> Result<Snapshot, FormatError> {
    Ok(StoredText::parse(checkpoint)?.read(Opening::Sealed)?.snapshot.unwrap_or_default())
}

fn unreadable(access: &StackAccess, error: FormatError) -> StateError {
    StateError::Checkpoint { stack: access.stack.clone(), source: Box::new(error) }
}
