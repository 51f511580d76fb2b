//! Journals that start from another checkpoint than the current one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::access::StackAccess;
use crate::error::{JournalConflict, StateError};
use crate::journal::{Creations, Replay, StoredJournal};
use crate::resource::ResourceState;
use crate::snapshot::Snapshot;
use crate::state_edit::is_recorded;

/// Journal that starts from another checkpoint than the current one. Its records are not in the state.
#[derive(Debug)]
pub(super) struct Unmerged {
    pub(super) conflict: JournalConflict,
    pub(super) creations: Creations,
    /// Start of the run, RFC 3339.
    pub(super) started: String,
    stored: StoredJournal,
    /// Length of the file when it was read, in bytes.
    length: u64,
}

/// Creations of a journal that starts from another checkpoint than the current one.
#[derive(Clone, Debug, PartialEq)]
pub struct UnmergedJournal {
    /// The journal.
    pub path: PathBuf,
    /// Creations that it records.
    pub creations: Creations,
}

impl Unmerged {
    pub(super) fn new(access: &StackAccess, replay: Replay, stored: StoredJournal, checkpoint: Option<&str>) -> Self {
        let creations = Creations::of(&replay.phases);
        let pairs =
            |states: &[Arc<ResourceState>]| states.iter().map(|state| (state.urn.clone(), state.id.clone())).collect();
        let conflict = JournalConflict {
            stack: access.stack.clone(),
            journal: stored.path(),
            base: replay.base,
            found: checkpoint.map(ToOwned::to_owned),
            created: pairs(&creations.created),
            creating: pairs(&creations.creating),
        };
        Self { conflict, creations, started: replay.started, stored, length: replay.length }
    }

    /// Returns the id of the run.
    pub(super) fn run(&self) -> &str {
        &self.stored.run
    }

    /// Returns the path and the creations.
    pub(super) fn journal(&self) -> UnmergedJournal {
        UnmergedJournal { path: self.stored.path(), creations: self.creations.clone() }
    }

    /// Removes the journal after the state has all its creations. A journal that has grown since it was read stays: its
    /// run has lost its lock, and has not ended. A missing file is no error. Returns `false` if the store does not allow to remove
    /// objects.
    ///
    /// # Errors
    /// [`StateError`] if something cannot be removed.
    pub(super) async fn remove(&self, access: &StackAccess) -> Result<bool, StateError> {
        let is_complete = self.stored.files().is_none_or(|files| has_length(&files.path, self.length));
        if is_complete { self.stored.remove(&access.store, None).await } else { Ok(true) }
    }
}

fn has_length(path: &Path, length: u64) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.len() == length)
}

/// Returns `true` if the state records each creation with its id, and the outcome of each Create is known. The journal
/// has nothing then that the state lacks, except changes that a refresh finds.
pub(super) fn is_obsolete(creations: &Creations, snapshot: &Snapshot) -> bool {
    creations.creating.is_empty() && creations.created.iter().all(|state| is_recorded(snapshot, state))
}
