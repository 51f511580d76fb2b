//! Renames, removes and summarizes stacks, and reads their history.

use pulumi_proto::urn::ROOT_STACK_TYPE;

use super::access::StackAccess;
use super::late::LateReport;
use super::loading::read_snapshot;
use super::locking::{self, LockSummary};
use super::recovery;
use super::saving::explained;
use super::view::StackView;
use crate::error::StateError;
use crate::format::{self, UpdateInfo};
use crate::snapshot::OperationKind;
use crate::store::{
    Backups, Expected, LockHolder, MigrationMark, RenameOutcome, StackLock, StackReference, StackRename, StoreError,
    StoredCheckpoint, StoredJournals,
};

/// Renames a stack, also into another project, as `pulumi stack rename` does. Needs no key: ciphertexts stay as they
/// are. The caller renames what belongs to the stack elsewhere, and then ends the rename with `finish_rename` of the
/// store. If the process ends before, `resume_rename` of the store completes or undoes the rename.
///
/// # Errors
/// [`StateError`]: the stack does not exist, the new name is taken, a run was interrupted. The stack has its old name
/// then. [`StateError::RenamePending`]: the undo of a failed rename has failed, too, or its locks could not be removed; the
/// next `resume_rename` completes or undoes it.
pub async fn rename_stack(
    access: &StackAccess,
    holder: &LockHolder,
    to: &StackReference,
) -> Result<StackRename, StateError> {
    let (mut rename, _keepers) = locking::lock_for_rename(access, holder, to).await?;
    match rename_locked(access, &mut rename, to).await {
        Ok(()) => Ok(rename),
        Err(error) => {
            // The locks of a rename that has not ended stay.
            let is_pending = rename.outcome == RenameOutcome::Pending;
            if access.store.finish_rename(rename).await.is_ok() && !is_pending {
                return Err(error);
            }
            let (from, to) = (access.stack.clone(), to.clone());
            Err(StateError::RenamePending { from, to, source: Box::new(error) })
        }
    }
}

async fn rename_locked(access: &StackAccess, rename: &mut StackRename, to: &StackReference) -> Result<(), StateError> {
    let checkpoint = load_uninterrupted(access).await?;
    let renamed = StackAccess { stack: to.clone(), ..access.clone() };
    access.store.refuse_taken_mark(to).await?;
    recovery::refuse_journals(&renamed).await?;
    let text = format::rename_stack(&checkpoint.text, &access.stack, to);
    let text = text.map_err(|error| access.checkpoint_error(error))?;
    let expected = Expected::Revision(checkpoint.revision);
    explained(access, access.store.rename(rename, &text, &expected)).await
}

/// Removes a stack: its state, history and tags, as `pulumi stack rm` does. With `force` it may have resources, which
/// are not deleted.
///
/// # Errors
/// [`StateError`]: the stack does not exist, it has resources or pending creates, a run was interrupted. Nothing was
/// removed then, unless only the lock could not be released.
pub async fn remove_stack(
    access: &StackAccess,
    holder: &LockHolder,
    force: bool,
    backups: Backups,
) -> Result<(), StateError> {
    let lock = locking::lock(access, holder).await?;
    let removed = remove_locked(access, &lock.lock, force, backups).await;
    let unlocked = lock.release(access).await;
    removed?;
    Ok(unlocked?)
}

async fn remove_locked(
    access: &StackAccess,
    lock: &StackLock,
    force: bool,
    backups: Backups,
) -> Result<(), StateError> {
    let checkpoint = load_uninterrupted(access).await?;
    if !force {
        let snapshot = read_snapshot(&checkpoint.text).map_err(|error| access.checkpoint_error(error))?;
        let stack = access.stack.clone();
        // The root stack resource does not count.
        let resources = snapshot.resources.iter().filter(|state| state.type_token.as_str() != ROOT_STACK_TYPE);
        let count = resources.count();
        if count > 0 {
            return Err(StateError::NotEmpty { stack, count });
        }
        let creates = snapshot.pending_operations.iter().filter(|pending| pending.kind == OperationKind::Creating);
        let names: Vec<String> = creates.map(|pending| pending.resource.urn.name().to_owned()).collect();
        if !names.is_empty() {
            return Err(StateError::PendingCreates { stack, names });
        }
    }
    explained(access, access.store.remove(lock, backups, &Expected::Revision(checkpoint.revision))).await
}

/// Returns the history of a stack, oldest entry first.
///
/// # Errors
/// [`StateError`] if an entry cannot be read.
pub async fn history(access: &StackAccess) -> Result<Vec<UpdateInfo>, StateError> {
    access.store.refuse_migrated(&access.stack).await?;
    let entries = access.store.history(&access.stack).await?;
    let read = |text: &String| UpdateInfo::from_json(text);
    let failed = |source| StateError::History { stack: access.stack.clone(), source };
    entries.iter().map(read).collect::<Result<_, _>>().map_err(failed)
}

/// Summary of a stack for a list.
#[derive(Clone, Debug)]
pub struct StackSummary {
    /// Number of resources in its state, with the root stack resource. `None` if the stack has no state yet, or only
    /// the journal of a run that has not ended and whose key is missing.
    pub resources: Option<usize>,
    /// Time at which its state was written, from the manifest.
    pub updated: Option<String>,
    /// Lock of the stack, if there is one.
    pub lock: Option<LockSummary>,
    /// `true` if the stack has the journal of a run that has not ended, or of an interrupted one.
    pub is_interrupted: bool,
    /// Number of pending operations, with those in the journal of a run that has ended.
    pub pending_operations: usize,
    /// Number of creates among them.
    pub pending_creates: usize,
    /// Resources that runs have recorded after their journals had been taken over.
    pub late: LateReport,
    /// Mark of a stack that has moved to another store or name, or is incomplete here; nothing else is known then but the lock and the
    /// journal.
    pub mark: Option<MigrationMark>,
}

impl StackSummary {
    /// Returns whether a run holds the lock of the stack, or has left it.
    pub fn is_locked(&self) -> bool {
        self.lock.is_some()
    }
}

/// Summarizes a stack without locking it. Needs no key: without one, the changes in the journal of a run are not
/// included. `journals` are those of its store, or none if the store is on this machine.
///
/// # Errors
/// [`StateError`].
pub async fn summary(access: &StackAccess, journals: &StoredJournals) -> Result<StackSummary, StateError> {
    let lock = locking::summarize(access).await?;
    let has_journal = access.has_journal_in(journals).await?;
    let view = if has_journal { StackView::open_without_secrets(access).await.ok() } else { None };
    let (snapshot, is_interrupted, late) = match view {
        Some(view) => (view.snapshot, view.recovered.is_some() || view.conflict.is_some(), view.late),
        None => {
            let checkpoint = match access.store.text(&access.stack).await {
                Err(StoreError::Migrated { mark, .. }) => {
                    return Ok(StackSummary {
                        resources: None,
                        updated: None,
                        lock,
                        is_interrupted: has_journal,
                        pending_operations: 0,
                        pending_creates: 0,
                        late: LateReport::default(),
                        mark: Some(*mark),
                    });
                }
                // The checkpoint is that of before or after the move.
                Err(StoreError::MovePending { .. }) => {
                    let stored = access.store.read_checkpoint(&access.stack).await?;
                    stored.map(StoredCheckpoint::into_text)
                }
                read => read?,
            };
            let snapshot = checkpoint.as_deref().map(read_snapshot).transpose();
            (snapshot.map_err(|error| access.checkpoint_error(error))?, has_journal, LateReport::default())
        }
    };
    let resources = snapshot.as_ref().map(|snapshot| snapshot.resources.len());
    let pending = snapshot.as_ref().map(|snapshot| snapshot.pending_operations.as_slice()).unwrap_or_default();
    let creates = pending.iter().filter(|operation| operation.kind == OperationKind::Creating);
    let (pending_operations, pending_creates) = (pending.len(), creates.count());
    let updated = snapshot.and_then(|snapshot| snapshot.manifest.time);
    let mark = None;
    Ok(StackSummary { resources, updated, lock, is_interrupted, pending_operations, pending_creates, late, mark })
}

/// Returns the checkpoint of a stack without an interrupted run.
pub(super) async fn load_uninterrupted(access: &StackAccess) -> Result<StoredCheckpoint, StateError> {
    let checkpoint = access.store.load(&access.stack).await?;
    recovery::refuse_interrupted(access, checkpoint.as_ref()).await?;
    checkpoint.ok_or_else(|| StateError::NoStack(access.stack.clone()))
}
