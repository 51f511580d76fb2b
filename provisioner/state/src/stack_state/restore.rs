//! Restores an earlier state of a stack from one of the copies that the store keeps.

use hashbrown::HashMap;
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;

use super::access::StackAccess;
use super::loading::{self, read_snapshot};
use super::saving::explained;
use super::{locking, recovery};
use crate::checkpoint::{LoadedCheckpoint, decode_checkpoint, encode_checkpoint};
use crate::error::{ImportProblem, StateError};
use crate::integrity;
use crate::resource::ResourceState;
use crate::snapshot::Snapshot;
use crate::store::{CheckpointCopy, CopyKind, Expected, LockHolder, StackLock, StoreError, StoredCheckpoint};

/// Copy of an earlier state.
#[derive(Clone, Debug)]
pub struct StateCopy {
    /// The copy.
    pub copy: CheckpointCopy,
    /// Number of its resources; `None` if it cannot be read.
    pub resources: Option<usize>,
}

/// Returns the copies of earlier states of a stack, newest first. Needs no key.
///
/// # Errors
/// [`StateError::Store`] if the copies cannot be listed.
pub async fn state_copies(access: &StackAccess) -> Result<Vec<StateCopy>, StateError> {
    access.store.refuse_migrated(&access.stack).await?;
    let mut copies = Vec::new();
    for copy in access.store.copies(&access.stack, &CopyKind::ALL).await? {
        let text = access.store.read_copy(&copy).await.ok();
        let snapshot = text.and_then(|text| read_snapshot(&text).ok());
        copies.push(StateCopy { copy, resources: snapshot.map(|snapshot| snapshot.resources.len()) });
    }
    Ok(copies)
}

/// Kind of a change of a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryChange {
    /// The current state does not have the entry.
    Added,
    /// Both states have the entry, with different members.
    Changed,
    /// Only the current state has the entry.
    Removed,
}

/// Restore of a copy that was checked and compared with the current state, and not saved yet.
pub struct Restore {
    copy: CheckpointCopy,
    text: String,
    /// Digest of the current checkpoint.
    current: Option<String>,
    /// Entries that change, in the order of the copy, then of the current state.
    pub changes: Vec<(EntryChange, Urn, Option<ResourceId>)>,
    /// Number of resources of the copy.
    pub resources: usize,
    /// Number of pending operations of the copy.
    pub pending_operations: usize,
    /// Error of the current state if it cannot be read. It counts as one without entries.
    pub current_error: Option<StateError>,
}

impl Restore {
    /// Reads a copy and compares it with the current state. Changes nothing.
    ///
    /// # Errors
    /// [`StateError::Copy`] if the copy cannot be read or decrypted; [`StateError::NotRestorable`] if it has resources
    /// of another stack, or violates the integrity of a snapshot; [`StoreError::Migrated`] if the stack has moved.
    pub async fn prepare(access: &StackAccess, copy: &CheckpointCopy) -> Result<Self, StateError> {
        access.store.refuse_migrated(&access.stack).await?;
        let text = access.store.read_copy(copy).await?;
        let failed = |error| StateError::Copy { location: copy.location.clone(), source: Box::new(error) };
        let decoded = decode_checkpoint(&text, &access.keyring).await.map_err(failed)?;
        let LoadedCheckpoint { checkpoint, manager, reuse } = decoded;
        if let Some(problem) = checkpoint.snapshot.as_ref().and_then(|snapshot| find_problem(access, snapshot)) {
            return Err(StateError::NotRestorable { location: copy.location.clone(), source: problem });
        }
        let name = access.store.full_name(&access.stack);
        let manager = manager.transpose()?;
        let text = encode_checkpoint(&name, checkpoint.snapshot.as_ref(), manager.as_deref(), &reuse).await?;

        let current = load_current(access).await?.digest();
        let (loaded, current_error) = match loading::load(access).await {
            Ok(loaded) => (loaded.and_then(|loaded| loaded.checkpoint.checkpoint.snapshot), None),
            Err(error) if is_unreadable(&error) => (None, Some(error)),
            Err(error) => return Err(error),
        };
        let restored = checkpoint.snapshot.unwrap_or_default();
        Ok(Self {
            copy: copy.clone(),
            text,
            current,
            changes: compare(&loaded.unwrap_or_default(), &restored),
            resources: restored.resources.len(),
            pending_operations: restored.pending_operations.len(),
            current_error,
        })
    }

    /// Saves the copy as the state of the stack, under the lock. The current state becomes the previous one, and the
    /// history gets no entry.
    ///
    /// # Errors
    /// [`StateError::Changed`] if the state has changed since [`Restore::prepare`]; [`StateError::Interrupted`] or
    /// [`StateError::Conflict`] if an interrupted run has left a journal. Nothing has changed after these.
    pub async fn apply(self, access: &StackAccess, holder: &LockHolder) -> Result<(), StateError> {
        let lock = locking::lock(access, holder).await?;
        let saved = self.save(access, &lock.lock).await;
        let unlocked = lock.release(access).await;
        saved?;
        Ok(unlocked?)
    }

    async fn save(&self, access: &StackAccess, lock: &StackLock) -> Result<(), StateError> {
        // A mark that cannot be read must not count as a damaged checkpoint.
        access.store.refuse_migrated(&access.stack).await?;
        let current = load_current(access).await?;
        recovery::refuse_interrupted(access, current.stored()).await?;
        if current.digest() != self.current {
            return Err(StateError::Changed(access.stack.clone()));
        }
        explained(access, access.store.restore(lock, &self.copy, self.text.as_str(), &current.expected())).await
    }
}

/// Current checkpoint.
enum Current {
    Missing,
    Stored(StoredCheckpoint),
    /// File that is no text.
    Damaged,
}

impl Current {
    fn stored(&self) -> Option<&StoredCheckpoint> {
        match self {
            Self::Stored(stored) => Some(stored),
            Self::Missing | Self::Damaged => None,
        }
    }

    fn digest(&self) -> Option<String> {
        self.stored().map(|stored| stored.revision.digest().as_str().to_owned())
    }

    fn expected(&self) -> Expected {
        match self {
            Self::Damaged => Expected::Any,
            Self::Missing | Self::Stored(_) => Expected::unchanged(self.stored()),
        }
    }
}

async fn load_current(access: &StackAccess) -> Result<Current, StateError> {
    match access.store.load(&access.stack).await {
        Ok(stored) => Ok(stored.map_or(Current::Missing, Current::Stored)),
        Err(StoreError::Damaged { .. }) => Ok(Current::Damaged),
        Err(error) => Err(error.into()),
    }
}

fn is_unreadable(error: &StateError) -> bool {
    matches!(error, StateError::Checkpoint { .. } | StateError::Store(StoreError::Damaged { .. }))
}

fn find_problem(access: &StackAccess, snapshot: &Snapshot) -> Option<ImportProblem> {
    let stack = &access.stack;
    let is_foreign = |urn: &&Urn| {
        let is_other_project = !stack.project().is_empty() && urn.project() != stack.project();
        urn.stack() != stack.stack() || is_other_project
    };
    let mut foreign = snapshot.resources.iter().map(|resource| &resource.urn).filter(is_foreign);
    if let Some(first) = foreign.next() {
        let (first, count) = (first.clone(), 1 + foreign.count());
        return Some(ImportProblem::OtherStack { stack: stack.to_string(), count, first });
    }
    integrity::verify(snapshot).err().map(ImportProblem::Integrity)
}

/// Returns the entries that differ.
fn compare(current: &Snapshot, restored: &Snapshot) -> Vec<(EntryChange, Urn, Option<ResourceId>)> {
    let key = |state: &ResourceState| (state.urn.clone(), state.delete, state.id.clone());
    let mut remaining: HashMap<_, Vec<&ResourceState>> = HashMap::new();
    for state in current.resources.iter().rev() {
        remaining.entry(key(state)).or_default().push(state);
    }
    let mut changes = Vec::new();
    for state in &restored.resources {
        let change = match remaining.get_mut(&key(state)).and_then(Vec::pop) {
            Some(current) if *current == **state => continue,
            Some(_) => EntryChange::Changed,
            None => EntryChange::Added,
        };
        changes.push((change, state.urn.clone(), state.id.clone()));
    }
    for state in &current.resources {
        if remaining.get_mut(&key(state)).and_then(Vec::pop).is_some() {
            changes.push((EntryChange::Removed, state.urn.clone(), state.id.clone()));
        }
    }
    changes
}
