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
//! - Another run has taken it over and saved (a seal in the store says so): its records are in the state. What the run has sent
//!   later, because calls were under way, is late.
//! - Its base is another checkpoint: somebody has saved since, for instance `pulumi`, or another machine. Its records do not
//!   apply to a state that they did not start from. If the state has all that it created, it is obsolete and removed; else the
//!   command fails with the list of what it created, since a removal would forget resources.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use pulumi_proto::urn::Urn;

use super::access::StackAccess;
use super::late::{Late, LateCreations};
use super::loading::read_snapshot;
use super::saving::{encode_for_saving, explained};
use super::stack_secrets::StackSecrets;
use super::unmerged::{Unmerged, is_obsolete};
use crate::digest::{CheckpointDigest, digest};
use crate::error::StateError;
use crate::format::{UpdateInfo, UpdateOrigin, UpdateResult};
use crate::integrity::IntegrityError;
use crate::journal::{self, Closing, KeptJournal, ListedJournals, Replay, StoredJournal};
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
    /// User and host of the run, such as `ada@reefbox`; `None` if its journal was on this machine alone.
    pub by: Option<String>,
    /// Number of finished operations by kind.
    pub done: BTreeMap<OperationKind, usize>,
    /// Operations that had begun and are not known to have ended.
    pub pending: Vec<(OperationKind, Urn)>,
    /// `true` if the last record is incomplete and was dropped. The operation or report that it announced did not
    /// happen.
    pub last_record_incomplete: bool,
    /// Time at which the store had received the last lines; `None` if the journal was on this machine alone.
    pub last_sent: Option<Timestamp>,
}

/// State that results from a checkpoint and a journal.
#[derive(Debug)]
pub(super) struct Recovery {
    pub(super) snapshot: Snapshot,
    pub(super) report: RecoveredRun,
    journal: Replay,
    stored: StoredJournal,
    /// `true` if the journal stays after the save, because the state has another resource in place of one that came late.
    has_late_conflict: bool,
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
    /// Creations that came late.
    pub(super) late: Late,
    /// Number of journals that stay, because the store does not allow to remove them.
    pub(super) undeleted: usize,
    /// Digest of the current checkpoint.
    checkpoint: Option<String>,
}

/// Journal that has nothing to recover.
#[derive(Debug)]
pub(super) struct CompletedJournal {
    stored: StoredJournal,
    /// End of the run, if it has saved the checkpoint.
    closed: Option<Closing>,
    /// Number of lines that a checkpoint has.
    lines: usize,
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
    /// entries have fixed times, so an entry that the run had added before it died is not added twice. Marks the journals as
    /// merged whose runs have ended between save and mark: the next save replaces the checkpoint that shows it.
    ///
    /// # Errors
    /// [`StateError::HistoryNotWritten`], [`StateError::Journal`]; [`StateError::Store`] if the mark cannot be written.
    pub(super) async fn finish_completed(&mut self, access: &StackAccess) -> Result<(), StateError> {
        for CompletedJournal { stored, closed, .. } in &mut self.completed {
            stored.complete_mark(&access.store, self.checkpoint.as_deref()).await?;
            archive(access, closed.as_ref().and_then(|closing| closing.history.as_ref())).await?;
            if !self.late.has_run(&stored.run) {
                self.undeleted += usize::from(!stored.remove(&access.store, self.checkpoint.as_deref()).await?);
            }
        }
        for journal in self.obsolete.iter().filter(|journal| !self.late.has_run(journal.run())) {
            self.undeleted += usize::from(!journal.remove(access).await?);
        }
        Ok(())
    }

    /// Removes the completed journals with late creations, after the state with these is saved. The late part of a journal of a
    /// resource that the state has with another id stays.
    ///
    /// # Errors
    /// [`StateError`] if something cannot be removed.
    pub(super) async fn finish_late(&mut self, access: &StackAccess) -> Result<(), StateError> {
        for CompletedJournal { stored, lines, .. } in &self.completed {
            match (self.late.has_run(&stored.run), self.late.has_conflict(&stored.run)) {
                (true, true) => stored.remove_merged(&access.store, *lines).await?,
                (true, false) => {
                    self.undeleted += usize::from(!stored.remove(&access.store, self.checkpoint.as_deref()).await?)
                }
                (false, _) => {}
            }
        }
        let is_settled = |run: &str| self.late.has_run(run) && !self.late.has_conflict(run);
        for journal in self.obsolete.iter().filter(|journal| is_settled(journal.run())) {
            self.undeleted += usize::from(!journal.remove(access).await?);
        }
        Ok(())
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

/// Saves a state with creations that came late in place of the expected checkpoint, and returns its revision.
///
/// # Errors
/// [`StateError`] if the checkpoint cannot be encoded or saved. The journals stay then.
pub(super) async fn save_adopted(
    access: &StackAccess,
    lock: &StackLock,
    secrets: &StackSecrets,
    expected: &Expected,
    snapshot: &Snapshot,
) -> Result<Revision, StateError> {
    let (text, _) = encode_for_saving(access, secrets, snapshot.clone(), expected.text_length()).await?;
    explained(access, access.store.save(lock, text, expected)).await
}

/// Searches for the journal of an interrupted run. Writes nothing. `snapshot` is that of the checkpoint. Returns `None` if an
/// object is gone since it was listed: the checkpoint has to be read again.
///
/// # Errors
/// [`StateError::Journal`] if a journal cannot be read.
pub(super) async fn find_journals(
    access: &StackAccess,
    listed: ListedJournals,
    checkpoint: Option<&CheckpointDigest>,
    snapshot: &Snapshot,
) -> Result<Option<FoundJournals>, StateError> {
    let (mut others, mut late) = (Vec::new(), Vec::new());
    let checkpoint = checkpoint.map(CheckpointDigest::as_str);
    let mut found = FoundJournals { checkpoint: checkpoint.map(str::to_owned), ..FoundJournals::default() };
    let Some(journals) = listed.read(&access.store, &access.stack).await? else { return Ok(None) };
    for stored in journals {
        let Some(mut replay) = journal::replay(&stored, checkpoint, &access.keyring).await? else {
            found.completed.push(CompletedJournal { stored, closed: None, lines: 0 });
            continue;
        };
        late.extend(LateCreations::new(&stored, std::mem::take(&mut replay.late)));
        let lines = replay.lines;
        if replay.is_merged {
            found.completed.push(CompletedJournal { stored, closed: replay.closed, lines });
        } else if let Some(closing) = &replay.closed
            && checkpoint == Some(closing.checkpoint.as_str())
        {
            found.completed.push(CompletedJournal { stored, closed: replay.closed, lines });
        } else if found.recovery.is_none() && replay.base.as_deref() == checkpoint {
            found.recovery = Some(Recovery::new(replay, stored, snapshot.clone()));
        } else {
            others.push(Unmerged::new(access, replay, stored, checkpoint));
        }
    }
    let state = found.recovery.as_ref().map_or(snapshot, |recovery| &recovery.snapshot);
    found.late = Late::new(late, state);
    if let Some(recovery) = &mut found.recovery {
        recovery.has_late_conflict = found.late.has_conflict(&recovery.stored.run);
        recovery.snapshot = found.late.snapshot.take().unwrap_or_else(|| std::mem::take(&mut recovery.snapshot));
    }
    // A resource that the recovered run has created is recorded as well.
    let state = found.recovery.as_ref().map_or(snapshot, |recovery| &recovery.snapshot);
    (found.obsolete, found.unmerged) = others.into_iter().partition(|journal| is_obsolete(&journal.creations, state));
    Ok(Some(found))
}

/// Fails if the stack has the journal of any run.
///
/// # Errors
/// [`StateError::Interrupted`].
pub(super) async fn refuse_journals(access: &StackAccess) -> Result<(), StateError> {
    let listed = journal::list(&access.journals, &access.store, &access.stack).await?;
    let journals = listed.read(&access.store, &access.stack).await?;
    let stack = || access.stack.clone();
    let first =
        |journals: Vec<StoredJournal>| journals.iter().find(|journal| journal.has_lines()).map(StoredJournal::path);
    match journals.map(first) {
        None => Err(StateError::JournalChanged { stack: stack() }),
        Some(Some(journal)) => Err(StateError::Interrupted { stack: stack(), journal }),
        Some(None) => Ok(()),
    }
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
    let listed = journal::list(&access.journals, &access.store, &access.stack).await?;
    // Under the lock only a run that was taken over removes objects.
    let Some(mut found) = find_journals(access, listed, checkpoint, snapshot).await? else {
        return Err(StateError::JournalChanged { stack: access.stack.clone() });
    };
    found.refuse_unmerged()?;
    let stored = found.recovery.as_ref().map(|recovery| recovery.stored.path());
    if let Some(journal) = stored.or_else(|| found.late.unsettled_journal().map(Path::to_owned)) {
        return Err(StateError::Interrupted { stack: access.stack.clone(), journal });
    }
    found.finish_completed(access).await?;
    // The state has what came late.
    found.finish_late(access).await
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
            by: journal.by.clone(),
            done,
            pending,
            last_record_incomplete: journal.last_record_incomplete,
            last_sent: stored.last_sent(),
        };
        Self { snapshot, report, journal, stored, has_late_conflict: false, base }
    }

    /// Returns the journal after the recovered state could not be saved. If it is gone since it was read, reports its
    /// changes as unrecorded.
    pub(super) fn kept_journal(&self, access: &StackAccess) -> Option<KeptJournal> {
        match self.stored.files() {
            Some(files) if files.path.is_file() => {
                let (path, is_fallback) = (files.path.clone(), files.is_fallback);
                return Some(KeptJournal { path, is_fallback, lacks_changes: false });
            }
            Some(_) => {}
            // The store has it.
            None => return Some(KeptJournal { path: self.stored.path(), is_fallback: false, lacks_changes: false }),
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

    /// Saves the recovered state in place of the expected checkpoint. Returns the revision of the checkpoint, and its integrity
    /// error if it has one. Returns `None`, and saves nothing, if the journal has grown in the store since it was read. Call
    /// [`Recovery::finish`] then.
    ///
    /// # Errors
    /// [`StateError`] if the checkpoint cannot be encoded or saved, or the journal cannot be closed.
    pub(super) async fn save(
        &mut self,
        access: &StackAccess,
        lock: &StackLock,
        secrets: &StackSecrets,
        expected: &Expected,
    ) -> Result<Option<(Revision, Option<IntegrityError>)>, StateError> {
        let (text, integrity_error) =
            encode_for_saving(access, secrets, self.snapshot.clone(), expected.text_length()).await?;
        let closing = Closing { checkpoint: digest(&text), history: self.history_entry(access) };
        if !self.stored.seal(&access.store, lock.run(), self.journal.lines, &closing).await? {
            return Ok(None);
        }
        if let Some(files) = self.stored.files().filter(|_| self.journal.has_file) {
            let closed = journal::append_close_line(&files.path, self.journal.end, &closing);
            // The seal says the same.
            closed.or_else(|error| if access.journals.is_remote() { Ok(()) } else { Err(error) })?;
        }
        let revision = explained(access, access.store.save(lock, text, expected)).await?;
        self.journal.closed = Some(closing);
        Ok(Some((revision, integrity_error)))
    }

    /// Marks the journal as merged after [`Recovery::save`], adds the interrupted run to the history, and removes the journal.
    ///
    /// # Errors
    /// [`StateError`] if the mark or the entry of the history cannot be written. The state is saved, the journal stays, and the
    /// next run does the rest; a run that went on would make the journal contradict its own checkpoint.
    pub(super) async fn finish(&mut self, access: &StackAccess, lock: &StackLock) -> Result<(), StateError> {
        let Some(closing) = &self.journal.closed else { return Ok(()) };
        self.stored.mark_merged(&access.store, lock.run(), self.journal.lines, closing).await?;
        archive(access, closing.history.as_ref()).await?;
        let removed = match self.has_late_conflict {
            true => self.stored.remove_merged(&access.store, self.journal.lines).await,
            false => self.stored.remove(&access.store, None).await.map(drop),
        };
        // The seal says that the journal is merged, so the next run removes it if this fails.
        removed.or_else(|error| if access.journals.is_remote() { Ok(()) } else { Err(error) })
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
        let UpdateOrigin { message, mut environment } = self.journal.origin.clone().unwrap_or_default();
        environment.entry("exec.kind".to_owned()).or_insert_with(|| "sc".to_owned());
        let update = UpdateInfo {
            kind: self.journal.update?,
            start_time: started.unwrap_or(now).as_second(),
            message,
            environment,
            config: access.config.clone(),
            result: UpdateResult::Failed,
            end_time: now.as_second(),
            resource_changes: self.report.done.iter().map(|(kind, n)| (step(kind).to_owned(), *n as u64)).collect(),
        };
        Some(HistoryEntry::new(update.to_json()))
    }
}
