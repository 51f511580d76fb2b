//! Recovers the journal of an interrupted run.
//!
//! A run writes to its journal what it is about to do, and what has come of it, and saves the checkpoint once, at its end. A
//! journal that is still there therefore belongs to a run that has not ended as it should. Which of the cases it is depends on the
//! checkpoint that the run had read (`base`) and on the one that is there now:
//! - The journal has no begun operation: the run has changed nothing. It is removed.
//! - It is closed, and names the current checkpoint: the run had saved, and ended before it could remove it. What the history
//!   lacks is added; the entry has a fixed time, so that it is there once.
//! - Its base is the current checkpoint: the run was interrupted. Its records are applied to the checkpoint, operations without an
//!   end become pending ones, and the result is saved before anything else begins. Only one journal can be applied: after that the
//!   checkpoint is another one.
//! - Its base is another checkpoint: somebody has saved since, for instance `pulumi`, or another machine. Its records do not
//!   apply to a state that they did not start from. If the state has all that it created, it is obsolete and removed; else the
//!   command fails with the list of what it created, since a removal would forget resources.

use std::collections::BTreeMap;

use jiff::Timestamp;
use pulumi_proto::urn::Urn;

use super::access::StackAccess;
use super::loading::read_snapshot;
use super::saving::{encode_for_saving, explained};
use super::stack_secrets::StackSecrets;
use super::unmerged::{Unmerged, is_obsolete};
use crate::digest::{CheckpointDigest, digest};
use crate::error::StateError;
use crate::format::{UpdateInfo, UpdateResult};
use crate::integrity::IntegrityError;
use crate::journal::{self, Closing, KeptJournal, Replay, StoredJournal};
use crate::ledger::Ledger;
use crate::record::Record;
use crate::snapshot::{OperationKind, Snapshot};
use crate::store::{Expected, HistoryEntry, Revision, StackLock, StoredCheckpoint};
use crate::unrecorded::ChangeCollector;

/// Summary of an interrupted run, from its journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveredRun {
    /// Start of the run, RFC 3339.
    pub started: String,
    /// Number of finished operations by kind.
    pub done: BTreeMap<OperationKind, usize>,
    /// Operations that had begun and are not known to have ended.
    pub pending: Vec<(OperationKind, Urn)>,
    /// `true` if the last record is incomplete and was dropped. The operation or report that it announced did not
    /// happen.
    pub last_record_incomplete: bool,
}

/// State that results from a checkpoint and a journal.
#[derive(Debug)]
pub(super) struct Recovery {
    pub(super) snapshot: Snapshot,
    pub(super) report: RecoveredRun,
    journal: Replay,
    stored: StoredJournal,
    /// State before the interrupted run.
    base: Snapshot,
}

/// Result of a search for the journals of a stack.
#[derive(Debug, Default)]
pub(super) struct FoundJournals {
    /// Recovered state of the interrupted run, if there is one.
    pub(super) recovery: Option<Recovery>,
    /// Journals whose runs had begun no operation, or had saved the checkpoint.
    pub(super) completed: Vec<CompletedJournal>,
    /// Journals that start from another checkpoint, and whose creations are recorded in the state.
    pub(super) obsolete: Vec<Unmerged>,
    /// Journals that start from another checkpoint, and have creations that the state may lack.
    pub(super) unmerged: Vec<Unmerged>,
}

/// Journal that has nothing to recover.
#[derive(Debug)]
pub(super) struct CompletedJournal {
    stored: StoredJournal,
    /// End of the run, if it has saved the checkpoint.
    closed: Option<Closing>,
}

impl FoundJournals {
    /// Returns `true` if a journal shows how the current checkpoint came about.
    pub(super) fn explain_checkpoint(&self) -> bool {
        self.recovery.is_some() || self.completed.iter().any(|journal| journal.closed.is_some())
    }

    /// Fails if a journal has creations that the state may lack.
    ///
    /// # Errors
    /// [`StateError::Conflict`].
    pub(super) fn refuse_unmerged(&self) -> Result<(), StateError> {
        match self.unmerged.first() {
            Some(journal) => Err(Box::new(journal.conflict.clone()).into()),
            None => Ok(()),
        }
    }

    /// Adds the entries of completed journals to the history, and removes these and the obsolete journals. The
    /// entries have fixed times, so an entry that the run had added before it died is not added twice.
    ///
    /// # Errors
    /// [`StateError::HistoryNotWritten`], [`StateError::Journal`].
    pub(super) async fn finish_completed(&self, access: &StackAccess) -> Result<(), StateError> {
        for CompletedJournal { stored, closed } in &self.completed {
            archive(access, closed.as_ref().and_then(|closing| closing.history.as_ref())).await?;
            stored.remove()?;
        }
        Ok(self.obsolete.iter().try_for_each(Unmerged::remove)?)
    }
}

/// Adds an entry to the history of a stack, if there is one.
///
/// # Errors
/// [`StateError::HistoryNotWritten`].
pub(super) async fn archive(access: &StackAccess, entry: Option<&HistoryEntry>) -> Result<(), StateError> {
    let Some(entry) = entry else { return Ok(()) };
    let failed = |source| StateError::HistoryNotWritten { stack: access.stack.clone(), source: Box::new(source) };
    access.store.archive(&access.stack, entry).await.map_err(failed)
}

/// Searches for the journal of an interrupted run. Writes nothing. `snapshot` is that of the checkpoint.
///
/// # Errors
/// [`StateError::Journal`] if a journal cannot be read.
pub(super) async fn find_journals(
    access: &StackAccess,
    checkpoint: Option<&CheckpointDigest>,
    snapshot: &Snapshot,
) -> Result<FoundJournals, StateError> {
    let mut found = FoundJournals::default();
    let mut others = Vec::new();
    let checkpoint = checkpoint.map(CheckpointDigest::as_str);
    for stored in journal::list(&access.journals, &access.stack)? {
        let Some(replay) = journal::replay(&stored.path, &access.keyring).await? else {
            found.completed.push(CompletedJournal { stored, closed: None });
            continue;
        };
        if let Some(closing) = &replay.closed
            && checkpoint == Some(closing.checkpoint.as_str())
        {
            found.completed.push(CompletedJournal { stored, closed: replay.closed });
        } else if found.recovery.is_none() && replay.base.as_deref() == checkpoint {
            found.recovery = Some(Recovery::new(replay, stored, snapshot.clone()));
        } else {
            others.push(Unmerged::new(access, replay, stored, checkpoint));
        }
    }
    // A resource that the recovered run has created is recorded as well.
    let state = found.recovery.as_ref().map_or(snapshot, |recovery| &recovery.snapshot);
    (found.obsolete, found.unmerged) = others.into_iter().partition(|journal| is_obsolete(&journal.creations, state));
    Ok(found)
}

/// Fails if there is an interrupted run, and finishes and removes the journals of completed and obsolete runs.
///
/// # Errors
/// [`StateError::Interrupted`], [`StateError::Conflict`], and the errors of [`find_journals`] and
/// [`FoundJournals::finish_completed`].
pub(super) async fn refuse_interrupted(
    access: &StackAccess,
    checkpoint: Option<&StoredCheckpoint>,
) -> Result<(), StateError> {
    // A checkpoint that cannot be read records no creation.
    let snapshot = checkpoint.and_then(|stored| read_snapshot(&stored.text).ok()).unwrap_or_default();
    refuse_interrupted_after(access, checkpoint.map(|stored| stored.revision.digest()), &snapshot).await
}

/// Does the same as [`refuse_interrupted`] for a checkpoint with this digest and snapshot.
///
/// # Errors
/// Returns the errors of [`refuse_interrupted`].
pub(super) async fn refuse_interrupted_after(
    access: &StackAccess,
    checkpoint: Option<&CheckpointDigest>,
    snapshot: &Snapshot,
) -> Result<(), StateError> {
    let found = find_journals(access, checkpoint, snapshot).await?;
    found.refuse_unmerged()?;
    if let Some(Recovery { stored, .. }) = found.recovery {
        return Err(StateError::Interrupted { stack: access.stack.clone(), journal: stored.path });
    }
    found.finish_completed(access).await
}

impl Recovery {
    fn new(journal: Replay, stored: StoredJournal, base: Snapshot) -> Self {
        let mut snapshot = base.clone();
        let (mut pending, mut done) = (Vec::new(), BTreeMap::new());
        for records in &journal.phases {
            let mut ledger = Ledger::new(snapshot);
            let mut begun = BTreeMap::new();
            for record in records {
                ledger.apply(record);
                match record {
                    Record::Begin { operation, kind, subject } => {
                        let resource = ledger.resource_of(subject);
                        begun.extend(resource.map(|resource| (*operation, (*kind, resource.urn.clone()))));
                    }
                    Record::End { operation, effects } => {
                        if let Some((kind, _)) = begun.remove(operation).filter(|_| !effects.is_empty()) {
                            *done.entry(kind).or_default() += 1;
                        }
                    }
                    Record::Change(_) => {}
                }
            }
            snapshot = ledger.snapshot();
            pending.extend(begun.into_values());
        }
        let report = RecoveredRun {
            started: journal.started.clone(),
            done,
            pending,
            last_record_incomplete: journal.last_record_incomplete,
        };
        Self { snapshot, report, journal, stored, base }
    }

    /// Returns the journal after the recovered state could not be saved. If it is gone since it was read, reports its
    /// changes as unrecorded.
    pub(super) fn kept_journal(&self, access: &StackAccess) -> Option<KeptJournal> {
        let path = self.stored.path.clone();
        if path.is_file() {
            return Some(KeptJournal { path, is_fallback: self.stored.is_fallback, lacks_changes: false });
        }
        let mut changes = ChangeCollector::default();
        let mut snapshot = self.base.clone();
        for records in &self.journal.phases {
            let mut ledger = Ledger::new(snapshot);
            for record in records {
                changes.add(&ledger, record);
                ledger.apply(record);
            }
            snapshot = ledger.snapshot();
        }
        access.unrecorded.set_changes(changes.changes());
        None
    }

    /// Saves the recovered state in place of the expected checkpoint, and adds the interrupted run to the history. Returns
    /// the revision of the checkpoint, and its integrity error if it has one.
    ///
    /// # Errors
    /// [`StateError`] if the checkpoint cannot be encoded or saved, or the journal cannot be closed. An entry of the
    /// history that cannot be written is no error: the journal stays, and the next run writes the entry.
    pub(super) async fn save(
        &self,
        access: &StackAccess,
        lock: &StackLock,
        secrets: &StackSecrets,
        expected: &Expected,
    ) -> Result<(Revision, Option<IntegrityError>), StateError> {
        let (text, integrity_error) =
            encode_for_saving(access, secrets, self.snapshot.clone(), expected.text_length()).await?;
        let closing = Closing { checkpoint: digest(&text), history: self.history_entry(access) };
        journal::append_close_line(&self.stored.path, self.journal.end, &closing)?;
        let revision = explained(access, access.store.save(lock, text, expected)).await?;
        // The journal is closed, so the next run does these again if one fails.
        if archive(access, closing.history.as_ref()).await.is_ok() {
            self.stored.remove().ok();
        }
        Ok((revision, integrity_error))
    }

    /// Returns the history entry of the run: its own if it had ended, and else that of a failed update. `None` if the
    /// journal does not have the kind of the update.
    fn history_entry(&self, access: &StackAccess) -> Option<HistoryEntry> {
        if let Some(closing) = &self.journal.closed {
            return closing.history.clone();
        }
        let now = Timestamp::now();
        let started: Option<Timestamp> = self.journal.started.parse().ok();
        let step = |kind: &OperationKind| match kind {
            OperationKind::Creating => "create",
            OperationKind::Updating => "update",
            OperationKind::Deleting => "delete",
            OperationKind::Reading => "read",
            OperationKind::Importing => "import",
        };
        let update = UpdateInfo {
            kind: self.journal.update?,
            start_time: started.unwrap_or(now).as_second(),
            message: String::new(),
            environment: [("exec.kind".to_owned(), "sc".to_owned())].into(),
            config: access.config.clone(),
            result: UpdateResult::Failed,
            end_time: now.as_second(),
            resource_changes: self.report.done.iter().map(|(kind, n)| (step(kind).to_owned(), *n as u64)).collect(),
        };
        Some(HistoryEntry::new(update.to_json()))
    }
}
