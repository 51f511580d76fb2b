//! State of a stack that is locked for a change.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::{join, try_join};

use super::access::StackAccess;
use super::late::LateReport;
use super::loading::load;
use super::locking::{self, HeldLock};
use super::namesakes::{Namesake, namesakes};
use super::recorder::JournalRecorder;
use super::recovery::{self, RecoveredRun};
use super::saving::{encode_for_saving, explained};
use super::stack_secrets::{SecretsChange, StackSecrets};
use super::unexplained_empty;
use super::unmerged::{Unmerged, UnmergedJournal};
use crate::error::{StateError, UnexplainedEmptyState};
use crate::format::{UpdateInfo, UpdateKind, UpdateOrigin};
use crate::integrity;
use crate::journal::{self, Journal, JournalHeader, JournalPlan, SegmentPlace, SegmentWriter};
use crate::secrets::SecretsManager;
use crate::snapshot::{Snapshot, drop_in_background};
use crate::store::{Expected, HistoryEntry, LockHolder, Revision, StackLock, StackReference};

/// State of a stack that is locked for a change.
pub struct StackState {
    access: StackAccess,
    lock: HeldLock,
    snapshot: Snapshot,
    recovered: Option<RecoveredRun>,
    late: LateReport,
    obsolete: Vec<String>,
    /// Number of journals that the store does not allow to remove.
    undeleted: usize,
    unexplained_empty: Option<UnexplainedEmptyState>,
    namesakes: Vec<Namesake>,
    secrets: StackSecrets,
    /// Checkpoint that the run has read or recovered, and replaces.
    expected: Expected,
    /// Journals that the next save replaces.
    unmerged: Vec<Unmerged>,
    journal: Arc<Mutex<Journal>>,
}

/// Parts of a stack that is locked, and whose run records nothing.
pub(super) struct LockedParts {
    pub(super) access: StackAccess,
    pub(super) lock: HeldLock,
    pub(super) secrets: StackSecrets,
    /// Checkpoint that was read or recovered, and is replaced.
    pub(super) expected: Expected,
}

/// Purpose for which a stack is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// The state is changed or used.
    Run,
    /// The state is repaired: it may violate its invariants, and there may be journals that cannot be merged.
    Repair,
}

/// Number of attempts to read the journal of a run that still changes it.
const ATTEMPTS: usize = 5;

/// Returns where the run that has a lock writes its journal.
fn journal_plan(access: &StackAccess, lock: &StackLock, holder: &LockHolder) -> JournalPlan {
    let (folders, mode, run) = (access.journals.clone(), access.journal_mode, lock.run().to_owned());
    let segments = access.has_stored_journal().then(|| {
        let by = format!("{}@{}", holder.username, holder.hostname);
        let place = SegmentPlace { store: access.store.clone(), stack: access.stack.clone(), run: run.clone(), by };
        SegmentWriter::new(place, access.locks.wait.stop.clone(), access.locks.lost.clone())
    });
    JournalPlan { folders, run, mode, segments }
}

/// Content of a stack that was locked.
struct OpenedStack {
    snapshot: Snapshot,
    recovered: Option<RecoveredRun>,
    late: LateReport,
    obsolete: Vec<String>,
    undeleted: usize,
    unexplained_empty: Option<UnexplainedEmptyState>,
    namesakes: Vec<Namesake>,
    secrets: StackSecrets,
    expected: Expected,
    unmerged: Vec<Unmerged>,
    journal: Journal,
}

impl StackState {
    /// Locks a stack, loads its state, and recovers the journal of an interrupted run. A stack that does not exist is
    /// empty.
    ///
    /// # Errors
    /// [`StateError`]. The lock is released, except on [`StateError::Unsaved`]: the recovered state could not be saved.
    pub async fn open(access: StackAccess, holder: &LockHolder) -> Result<Self, StateError> {
        Self::open_for(access, holder, Purpose::Run).await
    }

    /// Opens a stack like [`StackState::open`] for a repair: accepts a state that violates its invariants, and journals
    /// that start from another checkpoint, which [`StackState::unmerged`] returns. [`StackState::close`] removes these
    /// journals after the state is saved, so the state must have all that they have then.
    ///
    /// # Errors
    /// As [`StackState::open`], except [`StateError::Integrity`], [`StateError::SavedInvalid`] and
    /// [`StateError::Conflict`].
    pub async fn open_for_repair(access: StackAccess, holder: &LockHolder) -> Result<Self, StateError> {
        Self::open_for(access, holder, Purpose::Repair).await
    }

    async fn open_for(access: StackAccess, holder: &LockHolder, purpose: Purpose) -> Result<Self, StateError> {
        let lock = locking::lock(&access, holder).await?;
        match Self::open_locked(&access, &lock.lock, holder, purpose).await {
            Ok(opened) => {
                let OpenedStack { snapshot, recovered, late, obsolete, undeleted, .. } = opened;
                let (unexplained_empty, namesakes) = (opened.unexplained_empty, opened.namesakes);
                let (secrets, expected) = (opened.secrets, opened.expected);
                let (unmerged, journal) = (opened.unmerged, Arc::new(Mutex::new(opened.journal)));
                Ok(Self {
                    access,
                    lock,
                    snapshot,
                    recovered,
                    late,
                    obsolete,
                    undeleted,
                    unexplained_empty,
                    namesakes,
                    secrets,
                    expected,
                    unmerged,
                    journal,
                })
            }
            // The recovered state could not be saved. The lock is kept: a run from the old checkpoint would lose the
            // records.
            Err(error @ StateError::Unsaved { .. }) => {
                lock.leave(&access).await;
                Err(error)
            }
            Err(error) => {
                // The first error is returned; the next run reports a lock that could not be released.
                lock.release(&access).await.ok();
                Err(error)
            }
        }
    }

    async fn open_locked(
        access: &StackAccess,
        lock: &StackLock,
        holder: &LockHolder,
        purpose: Purpose,
    ) -> Result<OpenedStack, StateError> {
        if access.begins_anew {
            access.store.remove_renamed_mark(&access.stack).await?;
        }
        // A run whose lock was taken over may still send what it had under way.
        for _ in 0..ATTEMPTS {
            if let Some(opened) = Self::try_open(access, lock, holder, purpose).await? {
                return Ok(opened);
            }
        }
        Err(StateError::JournalChanged { stack: access.stack.clone() })
    }

    /// Opens a stack under its lock. Returns `None`, and has changed nothing, if the journal of another run has changed
    /// meanwhile.
    async fn try_open(
        access: &StackAccess,
        lock: &StackLock,
        holder: &LockHolder,
        purpose: Purpose,
    ) -> Result<Option<OpenedStack>, StateError> {
        let listing = journal::list(&access.journals, &access.store, &access.stack);
        let (loaded, listed) = try_join(load(access), listing).await?;
        let secrets = StackSecrets::for_writing(access, loaded.as_ref()).await?;
        let is_searched = loaded.is_none() && !access.begins_anew;
        let found_namesakes = async { if is_searched { namesakes(access).await } else { Vec::new() } };
        let (unexplained_empty, namesakes) =
            join(unexplained_empty::find(access, loaded.as_ref()), found_namesakes).await;
        let unexplained_empty = unexplained_empty?;
        let (mut base, snapshot) =
            loaded.map(|loaded| (loaded.revision, loaded.checkpoint.checkpoint.snapshot)).unzip();
        let mut expected = base.clone().map_or(Expected::Missing, Expected::Revision);
        let mut snapshot = snapshot.flatten().unwrap_or_default();
        let digest = base.as_ref().map(Revision::digest);
        let Some(mut found) = recovery::find_journals(access, listed, digest, &snapshot).await? else {
            return Ok(None);
        };
        if purpose == Purpose::Run {
            found.refuse_unmerged()?;
        }
        // The journal of the run explains the state.
        let unexplained_empty = unexplained_empty.filter(|_| !found.explain_checkpoint());
        found.finish_completed(access).await?;
        let mut recovered = None;
        if let Some(adopted) = found.late.snapshot.take() {
            let revision = recovery::save_adopted(access, lock, &secrets, &expected, &adopted).await?;
            (expected, base) = (Expected::Revision(revision.clone()), Some(revision));
            snapshot = adopted;
        }
        if let Some(mut recovery) = found.recovery.take() {
            let saved = recovery.save(access, lock, &secrets, &expected).await.map_err(|source| {
                let (stack, kept) = (access.stack.clone(), recovery.kept_journal(access));
                StateError::Unsaved { stack, kept, source: Box::new(source) }
            })?;
            let Some((revision, integrity_error)) = saved else { return Ok(None) };
            recovery.finish(access, lock).await?;
            if let (Some(integrity_error), Purpose::Run) = (integrity_error, purpose) {
                return Err(StateError::SavedInvalid(integrity_error));
            }
            (expected, base) = (Expected::Revision(revision.clone()), Some(revision));
            (snapshot, recovered) = (recovery.snapshot, Some(recovery.report));
        }
        found.finish_late(access).await?;
        if let (Err(integrity_error), Purpose::Run) = (integrity::verify(&snapshot), purpose) {
            return Err(integrity_error.into());
        }
        let base = base.map(|revision| revision.digest().clone());
        let header = JournalHeader { stack: access.stack.clone(), base, secrets: secrets.description() };
        let journal =
            Journal::new(journal_plan(access, lock, holder), header, snapshot.clone(), access.unrecorded.clone());
        let late = found.late.report;
        let obsolete = found.obsolete.into_iter().map(|journal| journal.started).collect();
        let unmerged = found.unmerged;
        Ok(Some(OpenedStack {
            snapshot,
            recovered,
            late,
            obsolete,
            undeleted: found.undeleted,
            unexplained_empty,
            namesakes,
            secrets,
            expected,
            unmerged,
            journal,
        }))
    }

    /// Returns the name of the stack.
    pub fn stack(&self) -> &StackReference {
        &self.access.stack
    }

    /// Returns the loaded state.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Returns `true` if the stack does not exist yet.
    pub fn is_new(&self) -> bool {
        matches!(self.expected, Expected::Missing)
    }

    /// Returns the recovered run, if a run was interrupted; its changes are in the loaded state.
    pub fn recovered(&self) -> Option<&RecoveredRun> {
        self.recovered.as_ref()
    }

    /// Returns what became of resources that runs have recorded after their journals had been taken over.
    pub fn late(&self) -> &LateReport {
        &self.late
    }

    /// Returns the starts (RFC 3339) of interrupted runs whose journals start from another checkpoint, although the state
    /// records all that they created. The journals are removed.
    pub fn obsolete(&self) -> &[String] {
        &self.obsolete
    }

    /// Returns the location of the journals that stay in the store, because it does not allow to remove them; `None` if all were
    /// removed. They do not count any more, but each run reads them.
    pub fn undeleted_journals(&self) -> Option<String> {
        (self.undeleted > 0).then(|| self.access.store.journals_location(&self.access.stack))
    }

    /// Returns the journals that start from another checkpoint; none unless the stack was opened for a repair.
    pub fn unmerged(&self) -> Vec<UnmergedJournal> {
        self.unmerged.iter().map(Unmerged::journal).collect()
    }

    /// Returns a description of the state if the stack has lost its resources. A run must not continue from such a state
    /// unless the user agrees.
    pub fn unexplained_empty(&self) -> Option<&UnexplainedEmptyState> {
        self.unexplained_empty.as_ref()
    }

    /// Returns the stacks of the same name below other projects of the store, if this one does not exist and is not begun in spite of
    /// them.
    pub fn namesakes(&self) -> &[Namesake] {
        &self.namesakes
    }

    /// Returns the change of the secrets manager, if the next save encrypts all secrets anew with another one.
    pub fn secrets_change(&self) -> Option<&SecretsChange> {
        self.secrets.change.as_ref()
    }

    /// Returns the secrets manager of the stack, if it is available.
    pub fn secrets(&self) -> Option<Arc<dyn SecretsManager>> {
        self.secrets.manager()
    }

    /// Sets the origin of the run, for the history entry that an interrupted run gets when it is recovered. Call it before the first
    /// recorder; later calls have no effect once something is recorded.
    pub fn set_origin(&self, origin: UpdateOrigin) {
        self.journal().set_origin(origin);
    }

    /// Returns a recorder for one deployment. `kind` is that of the history entry of the run, if the run ends with this
    /// deployment; an interrupted run gets such an entry when it is recovered. Call it once for each deployment that
    /// changes the state, in their order: the first one numbers entries from the resources of [`StackState::snapshot`],
    /// each following one from the resources of the final snapshot of the previous one, in the same order. Pending
    /// operations may differ; their removal is not journaled.
    pub fn recorder(&self, kind: UpdateKind) -> JournalRecorder {
        self.journal().begin_phase(kind);
        let manager = self.secrets.manager.clone();
        JournalRecorder { journal: Arc::clone(&self.journal), manager, lease: self.lock.lease.clone() }
    }

    /// Saves the final state of a run, adds the entry to the history if there is one, and unlocks the stack.
    ///
    /// # Errors
    /// [`StateError::SavedInvalid`] if the state violates its invariants. [`StateError::Unsaved`] if it could not be
    /// saved, for example because the lock was broken, or another program has replaced the checkpoint: a journal is
    /// kept if one can be written, and the lock if it is still held; [`StackAccess::unrecorded`] has what no journal
    /// contains. After later errors ([`StateError::HistoryNotWritten`], [`StateError::NotReleased`]) the state is saved. The
    /// journal stays if the entry could not be added to the history: the next run adds it. A journal of
    /// [`StackState::unmerged`] that could not be removed ([`StateError::Journal`]) is removed by a second repair, which finds
    /// its creations recorded.
    pub async fn close(self, snapshot: Snapshot, update: Option<&UpdateInfo>) -> Result<(), StateError> {
        let history = update.map(|update| HistoryEntry::new(update.to_json()));
        let earlier_length = self.expected.text_length();
        let encoded = encode_for_saving(&self.access, &self.secrets, snapshot, earlier_length).await;
        let (text, integrity_error) = match encoded {
            Ok(written) => written,
            Err(error) => return Err(self.save_error(error).await),
        };
        // A failed journal may lack the last records, but the checkpoint has them, so it is saved in any case. If the
        // process dies before the journal is removed, the next run reports that journal and checkpoint do not match.
        self.journal().close(&text, history.clone()).ok();
        // A machine that is lost between the two must not leave a journal that contradicts the checkpoint. A store that refuses
        // the journal may accept the checkpoint, which has more.
        let segments = self.journal().segments();
        let flushed = async {
            if let Some(segments) = &segments {
                segments.flush().await.ok();
            }
        };
        let saving = self.access.store.save_after(flushed, &self.lock.lock, text, &self.expected);
        if let Err(error) = explained(&self.access, saving).await {
            return Err(self.save_error(error).await);
        }
        let Self { access, lock, snapshot, unmerged, journal, .. } = self;
        locked(&journal).mark_saved();
        // Until the history has the entry, the journal explains the checkpoint.
        let archived = recovery::archive(&access, history.as_ref()).await;
        let (mut removed, mut last_segment) = (Ok(()), None);
        if let (Ok(()), Some(segments)) = (&archived, &segments) {
            match segments.remove_but_last().await {
                Ok(last) => last_segment = Some(last),
                Err(error) => removed = Err(StateError::from(error)),
            }
        }
        for journal in &unmerged {
            removed = removed.and(journal.remove(&access).await.map(drop));
        }
        let last_removed = async {
            match last_segment {
                Some(segment) => segment.remove().await.map_err(StateError::from),
                None => Ok(()),
            }
        };
        let (last_removed, released) = join(last_removed, lock.release(&access)).await;
        removed = removed.and(last_removed);
        // The file, which has the `close` line for certain, explains the state as long as segments are there.
        if archived.is_ok() && removed.is_ok() {
            removed = locked(&journal).remove().map_err(StateError::from);
        }
        drop_in_background((snapshot, journal));
        removed?;
        archived?;
        integrity_error.map_or(Ok(()), |integrity_error| Err(StateError::SavedInvalid(integrity_error)))?;
        let stack = access.stack;
        released.map_err(|source| StateError::NotReleased { stack, source: Box::new(source) })
    }

    /// Returns what a change of two stacks at once needs. Only for a stack without records.
    pub(super) fn into_parts(self) -> LockedParts {
        let Self { access, lock, secrets, expected, .. } = self;
        LockedParts { access, lock, secrets, expected }
    }

    /// Unlocks the stack without saving. Only for a run that recorded nothing.
    ///
    /// # Errors
    /// [`StateError`] if the lock cannot be released.
    pub async fn release(self) -> Result<(), StateError> {
        Ok(self.lock.release(&self.access).await?)
    }

    /// Returns the error of a failed save. Makes sure first that a journal has the records of the run: the backend may
    /// have failed for the journal, too, or another run may have broken the lock, recovered the journal and removed it.
    /// Keeps the lock if there are records: a run from the old checkpoint would lose them.
    async fn save_error(self, source: StateError) -> StateError {
        if !self.journal().has_records() {
            self.lock.release(&self.access).await.ok();
            return source;
        }
        let kept = self.journal().keep();
        let segments = self.journal().segments();
        if let Some(segments) = segments {
            // The error of the run says what happened; the lines are on this machine, unless that failed, too.
            segments.flush().await.ok();
        }
        self.lock.leave(&self.access).await;
        StateError::Unsaved { stack: self.access.stack, kept, source: Box::new(source) }
    }

    fn journal(&self) -> MutexGuard<'_, Journal> {
        locked(&self.journal)
    }
}

fn locked(journal: &Mutex<Journal>) -> MutexGuard<'_, Journal> {
    journal.lock().unwrap_or_else(PoisonError::into_inner)
}
