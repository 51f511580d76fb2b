//! Moves resources from one stack to another, under the locks of both.
//!
//! Both stacks get a record first: that of the target before that of the source. Then the target is saved, with the resources, and
//! after that the source, without them. At last the records are removed: that of the source first. No command uses a stack that has a
//! record. If the process ends in between, the next command on either stack takes both locks: if the target has the resources, it
//! saves the source, whose new checkpoint is in its record; otherwise nothing was saved. Then it removes the records.

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use pulumi_proto::urn::Urn;

use super::access::StackAccess;
use super::loading::read_snapshot;
use super::locked::{LockedParts, StackState};
use super::locking::{self, HeldLock};
use super::saving::{encode_for_saving, explained};
use super::stack_secrets::SecretsChange;
use crate::digest::digest;
use crate::error::StateError;
use crate::snapshot::Snapshot;
use crate::state_edit::ResourceMove;
use crate::store::{Expected, LockHolder, MoveRecord, MoveSide, StoreError};

/// Outcome of a move that was interrupted, and that another command has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveOutcome {
    /// The target has the resources.
    Completed,
    /// The source has the resources.
    Undone,
}

/// Result of a move.
#[derive(Clone, Debug)]
pub struct MovedResources {
    /// Changes of both states.
    pub changes: ResourceMove,
    /// Changes of the secrets managers of the source and of the target: their secrets are encrypted anew.
    pub secrets_changes: [Option<SecretsChange>; 2],
}

/// Locks two stacks, in the order of their stores and names, and moves resources from the first one to the second one. `edit`
/// changes both snapshots. Waits for the locks, for the time in the settings of each stack.
///
/// # Errors
/// The error of `edit`; [`StateError`]. The source has the resources then, except after [`StateError::MovePending`]: the next
/// [`resume_move`] completes or undoes the move.
pub async fn move_between_stacks<E: From<StateError>>(
    source: &StackAccess,
    target: &StackAccess,
    holder: &LockHolder,
    edit: impl FnOnce(&mut Snapshot, &mut Snapshot) -> Result<ResourceMove, E>,
) -> Result<MovedResources, E> {
    let [source, target] = open_both(source, target, holder).await?;
    let (mut departed, mut arrived) = (source.snapshot().clone(), target.snapshot().clone());
    let secrets_changes = [&source, &target].map(|state| state.secrets_change().cloned());
    let changes = match edit(&mut departed, &mut arrived) {
        Ok(changes) => changes,
        Err(error) => {
            // The first error is returned; the next run reports a lock that could not be released.
            target.release().await.ok();
            source.release().await.ok();
            return Err(error);
        }
    };
    let (source, target) = (Part::of(source, departed), Part::of(target, arrived));
    save_both(source, target, holder, &changes).await?;
    Ok(MovedResources { changes, secrets_changes })
}

/// Opens both stacks. The one whose store and name come first is locked first, so that two moves do not wait for each other.
async fn open_both(
    source: &StackAccess,
    target: &StackAccess,
    holder: &LockHolder,
) -> Result<[StackState; 2], StateError> {
    let is_source_first = place(source) <= place(target);
    let (first, second) = if is_source_first { (source, target) } else { (target, source) };
    let first = StackState::open(first.clone(), holder).await?;
    match StackState::open(second.clone(), holder).await {
        Ok(second) => Ok(if is_source_first { [first, second] } else { [second, first] }),
        Err(error) => {
            first.release().await.ok();
            Err(error)
        }
    }
}

/// Returns the store and the name of a stack.
fn place(access: &StackAccess) -> (String, String) {
    (access.store.location(), access.store.full_name(&access.stack))
}

/// Stack of a move that is locked, with its new state.
struct Part {
    parts: LockedParts,
    snapshot: Snapshot,
}

impl Part {
    fn of(state: StackState, snapshot: Snapshot) -> Self {
        Self { parts: state.into_parts(), snapshot }
    }

    /// Returns the text of the new checkpoint.
    async fn encode(&self) -> Result<String, StateError> {
        let LockedParts { access, secrets, expected, .. } = &self.parts;
        let (text, violations) =
            encode_for_saving(access, secrets, self.snapshot.clone(), expected.text_length()).await?;
        violations.map_or(Ok(text), |violations| Err(violations.into()))
    }

    fn end(&self) -> End<'_> {
        End { access: &self.parts.access, lock: &self.parts.lock }
    }

    async fn release(self) -> Result<(), StoreError> {
        let LockedParts { access, lock, .. } = self.parts;
        lock.release(&access).await
    }
}

/// Stack of a move under its lock.
#[derive(Clone, Copy)]
struct End<'a> {
    access: &'a StackAccess,
    lock: &'a HeldLock,
}

/// Saves both stacks, and unlocks them.
async fn save_both(source: Part, target: Part, holder: &LockHolder, changes: &ResourceMove) -> Result<(), StateError> {
    let texts = async { Ok::<_, StateError>([source.encode().await?, target.encode().await?]) };
    let saved = match texts.await {
        Ok(texts) => {
            let written = write(&source, &target, holder, changes, texts).await;
            // The target may have been written although the reply was lost.
            match (written, settle(source.end(), target.end()).await) {
                (_, Ok(Some(MoveOutcome::Completed))) => Ok(()),
                (Err(error), Ok(_)) => Err(error),
                (Ok(()), Ok(_)) => Err(StateError::Changed(target.parts.access.stack.clone())),
                (written, Err(unsettled)) => {
                    // The locks stay: the next run takes them over once this process has ended.
                    let (from, to) = (source.parts.access.stack.clone(), target.parts.access.stack.clone());
                    let source = Box::new(written.err().unwrap_or(unsettled));
                    return Err(StateError::MovePending { from, to, source });
                }
            }
        }
        Err(error) => Err(error),
    };
    let stacks = [&target, &source].map(|part| part.parts.access.stack.clone());
    let released = [target.release().await, source.release().await];
    saved?;
    for (stack, released) in stacks.into_iter().zip(released) {
        released.map_err(|source| StateError::NotReleased { stack, source: Box::new(source) })?;
    }
    Ok(())
}

/// Writes the records of both stacks, then the new checkpoint of the target.
async fn write(
    source: &Part,
    target: &Part,
    holder: &LockHolder,
    changes: &ResourceMove,
    [source_text, target_text]: [String; 2],
) -> Result<(), StateError> {
    let (id, time) = (uuid::Uuid::new_v4().to_string(), Timestamp::now());
    let record = |part: &Part, other: &Part, after: String, side: MoveSide| MoveRecord {
        id: id.clone(),
        side,
        other: other.parts.access.stack.clone(),
        other_location: other.parts.access.store.location(),
        resources: changes.moved.clone(),
        before: part.parts.expected.text_digest().map(str::to_owned),
        after,
        time,
        user: holder.username.clone(),
        host: holder.hostname.clone(),
    };
    let of_target = record(target, source, digest(&target_text), MoveSide::Target);
    let of_source = record(source, target, digest(&source_text), MoveSide::Source { checkpoint: source_text });
    for part in [source, target] {
        part.parts.lock.confirm().await?;
    }
    for (part, record) in [(target, &of_target), (source, &of_source)] {
        let LockedParts { access, .. } = &part.parts;
        access.store.write_move_record(&access.stack, record).await?;
    }
    for part in [source, target] {
        part.parts.lock.confirm().await?;
    }
    let LockedParts { access, lock, expected, .. } = &target.parts;
    explained(access, access.store.save(&lock.lock, target_text, expected)).await?;
    Ok(())
}

/// Completes or undoes the move between two stacks, whose locks are held, and removes its records. Returns `None` if it has none.
async fn settle(source: End<'_>, target: End<'_>) -> Result<Option<MoveOutcome>, StateError> {
    let (of_source, of_target) = (source.record().await?, target.record().await?);
    // The folder of a store may have another path on another machine.
    let has_one_id =
        of_source.as_ref().zip(of_target.as_ref()).is_some_and(|(of_source, of_target)| of_source.id == of_target.id);
    let of_source = of_source.filter(|record| has_one_id || target.is_other_of(record));
    let of_target = of_target.filter(|record| has_one_id || source.is_other_of(record));
    let Some(record) = of_source.as_ref().or(of_target.as_ref()) else { return Ok(None) };
    let outcome = if target.has_resources(record).await? { MoveOutcome::Completed } else { MoveOutcome::Undone };
    if let Some(record) = &of_source {
        // Without this record, nothing was saved, or the source was saved already.
        if outcome == MoveOutcome::Completed {
            source.save_departure(record).await?;
        }
        source.remove_record().await?;
    }
    // The record of another move, whose other stack is not this one, stays.
    if of_target.is_some() {
        target.remove_record().await?;
    }
    Ok(Some(outcome))
}

impl End<'_> {
    async fn record(self) -> Result<Option<MoveRecord>, StateError> {
        Ok(self.access.store.move_record(&self.access.stack).await?)
    }

    /// Returns `true` if this is the other stack that a record names.
    fn is_other_of(self, record: &MoveRecord) -> bool {
        record.other == self.access.stack && record.other_location == self.access.store.location()
    }

    async fn remove_record(self) -> Result<(), StateError> {
        // Another run that has taken the lock over may have ended the move, and begun another one.
        self.lock.confirm().await?;
        Ok(self.access.store.remove_move_record(&self.access.stack).await?)
    }

    /// Returns `true` if the target of a move has one of its resources.
    async fn has_resources(self, record: &MoveRecord) -> Result<bool, StateError> {
        let stack = &self.access.stack;
        let Some(stored) = self.access.store.read_checkpoint(stack).await? else { return Ok(false) };
        let snapshot = read_snapshot(&stored.text).map_err(|error| self.access.checkpoint_error(error))?;
        let arrived = |urn: &Urn| {
            let urn = urn.in_stack(stack.stack(), stack.project());
            snapshot.resources.iter().any(|state| state.urn == urn)
        };
        Ok(record.resources.iter().any(arrived))
    }

    /// Saves the source without the resources of a move, unless it lacks them already.
    async fn save_departure(self, record: &MoveRecord) -> Result<(), StateError> {
        let (access, MoveSide::Source { checkpoint }) = (self.access, &record.side) else { return Ok(()) };
        let Some(stored) = access.store.read_checkpoint(&access.stack).await? else { return Ok(()) };
        if Some(stored.revision.digest().as_str()) == record.before.as_deref() {
            let expected = Expected::Revision(stored.revision);
            explained(access, access.store.save(&self.lock.lock, checkpoint.clone(), &expected)).await?;
            return Ok(());
        }
        // Another program, which does not see the record, may have changed the state.
        let snapshot = read_snapshot(&stored.text).map_err(|error| access.checkpoint_error(error))?;
        if snapshot.resources.iter().any(|state| record.resources.contains(&state.urn)) {
            let (from, to) = (access.stack.clone(), record.other.clone());
            let record = access.store.mark_location(&access.stack);
            return Err(StateError::MovedTwice { from, to, record: record.into() });
        }
        Ok(())
    }
}

/// Completes or undoes a move between two stacks whose process has ended. Takes both locks, waiting for the time in the settings of
/// each stack. Returns `None` if the process has ended the move meanwhile.
///
/// # Errors
/// [`StoreError::Locked`] if the process may still run. [`StateError::MovedTwice`] if both stacks have been changed since. The move
/// stays pending after each error.
pub async fn resume_move(
    access: &StackAccess,
    other: &StackAccess,
    holder: &LockHolder,
) -> Result<Option<MoveOutcome>, StateError> {
    let is_first = place(access) <= place(other);
    let (first, second) = if is_first { (access, other) } else { (other, access) };
    let locked = locking::lock(first, holder).await?;
    let resumed = match locking::lock(second, holder).await {
        Ok(of_second) => {
            let locks = if is_first { [&locked, &of_second] } else { [&of_second, &locked] };
            let resumed = resume_locked([access, other], locks).await;
            let released = of_second.release(second).await;
            resumed.and_then(|outcome| Ok(released.map(|()| outcome)?))
        }
        Err(error) => Err(error),
    };
    let released = locked.release(first).await;
    let outcome = resumed?;
    released?;
    Ok(outcome)
}

async fn resume_locked(
    [access, other]: [&StackAccess; 2],
    [lock, other_lock]: [&HeldLock; 2],
) -> Result<Option<MoveOutcome>, StateError> {
    let Some(record) = access.store.move_record(&access.stack).await? else { return Ok(None) };
    let own = End { access, lock };
    let other = End { access: other, lock: other_lock };
    match record.side {
        MoveSide::Source { .. } => settle(own, other).await,
        MoveSide::Target => settle(other, own).await,
    }
}
