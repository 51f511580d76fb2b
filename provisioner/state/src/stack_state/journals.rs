//! Journals of a stack for people: listed, adopted, discarded.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;

use super::access::StackAccess;
use super::late::{Late, LateCreations, LateReport};
use super::loading::{load, read_snapshot};
use super::locking;
use super::recovery::save_adopted;
use super::stack_secrets::StackSecrets;
use super::unmerged::is_obsolete;
use crate::error::StateError;
use crate::journal::{self, Creations, ListedRun, Replay, StoredJournal};
use crate::resource::ResourceState;
use crate::snapshot::Snapshot;
use crate::state_edit::record_creations;
use crate::store::{Expected, LockHolder, StackLock};

/// Journal of a run that has not ended as it should, or is active.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalSummary {
    /// Id of the run.
    pub run: String,
    /// File of this machine, or location in the store.
    pub location: PathBuf,
    /// Start of the run, RFC 3339; empty if it is not known.
    pub started: String,
    /// User and host of the run; `None` if its journal is on this machine alone.
    pub by: Option<String>,
    /// Time at which the store had received the last lines.
    pub last_sent: Option<Timestamp>,
    /// Treatment by the next run.
    pub status: JournalStatus,
    /// Created resources, with their ids.
    pub created: Vec<(Urn, ResourceId)>,
    /// Resources whose Create has begun and has an unknown outcome.
    pub creating: Vec<Urn>,
}

/// Treatment of a journal by the next run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JournalStatus {
    /// Merged into the state. The run may still be active, if the stack is locked.
    Mergeable,
    /// Removed: the state has all that it has.
    Merged,
    /// Resources are adopted that the run has created after its journal was taken over.
    Late,
    /// The next run refuses to start, because the journal depends on a state that is no more.
    Conflict,
    /// The next run refuses to start, because the journal cannot be read, for this reason.
    Unreadable(String),
}

impl JournalStatus {
    /// Returns the name of the status.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Mergeable => "mergeable",
            Self::Merged => "merged",
            Self::Late => "late",
            Self::Conflict => "conflict",
            Self::Unreadable(_) => "unreadable",
        }
    }
}

/// Lists the journals of a stack, without locking it. Needs the key only if a journal has secrets.
///
/// # Errors
/// [`StateError`] if the store cannot be read. A journal that cannot be read is listed with the reason.
pub async fn journals(access: &StackAccess) -> Result<Vec<JournalSummary>, StateError> {
    let checkpoint = access.store.load(&access.stack).await?;
    let digest = checkpoint.as_ref().map(|stored| stored.revision.digest().as_str().to_owned());
    let snapshot = checkpoint.and_then(|stored| read_snapshot(&stored.text).ok()).unwrap_or_default();
    let listed = journal::list(&access.journals, &access.store, &access.stack).await?;
    let mut summaries = Vec::new();
    for listed in listed.into_runs() {
        let (run, location) = (listed.name().to_owned(), listed.location(&access.store, &access.stack));
        summaries.extend(match read(access, listed, digest.as_deref()).await {
            Ok(None) => None,
            Ok(Some((stored, replay))) => Some(summarize(&stored, replay, digest.as_deref(), &snapshot)),
            Err(error) => Some(JournalSummary {
                run,
                location,
                started: String::new(),
                by: None,
                last_sent: None,
                status: JournalStatus::Unreadable(bridge::error::chain(&error).to_string()),
                created: Vec::new(),
                creating: Vec::new(),
            }),
        });
    }
    Ok(summaries)
}

/// Makes each resource that a run has created, and that the state lacks, a pending create with its id, and removes the journal
/// unless the state has another resource in place of one of them.
///
/// # Errors
/// [`StateError`] if the journal cannot be read, or the state cannot be saved.
pub async fn adopt_journal(access: &StackAccess, holder: &LockHolder, run: &str) -> Result<LateReport, StateError> {
    let lock = locking::lock(access, holder).await?;
    let adopted = adopt_locked(access, &lock.lock, run).await;
    let unlocked = lock.release(access).await;
    let adopted = adopted?;
    unlocked?;
    Ok(adopted)
}

async fn adopt_locked(access: &StackAccess, lock: &StackLock, run: &str) -> Result<LateReport, StateError> {
    let loaded = load(access).await?;
    let secrets = StackSecrets::for_writing(access, loaded.as_ref()).await?;
    let (base, snapshot) = loaded.map(|loaded| (loaded.revision, loaded.checkpoint.checkpoint.snapshot)).unzip();
    let snapshot = snapshot.flatten().unwrap_or_default();
    let digest = base.as_ref().map(|revision| revision.digest().as_str().to_owned());
    let listed = journal::list(&access.journals, &access.store, &access.stack).await?;
    let Some(listed) = listed.into_runs().into_iter().find(|listed| listed.name() == run) else {
        return Err(no_journal(access, run));
    };
    let Some((stored, mut replay)) = read(access, listed, digest.as_deref()).await? else {
        return Err(no_journal(access, run));
    };
    let late = std::mem::take(&mut replay.late);
    let all = Creations::of(&replay.phases);
    let created = all.created.into_iter().chain(late.created).chain(late.creating);
    let (known, unknown): (Vec<_>, Vec<_>) = created.chain(all.creating).partition(|state| state.id.is_some());
    let mut adopted = Late::new(LateCreations::of(&stored, known).into_iter().collect(), &snapshot);
    // What may exist is named, too.
    let unknown = Creations { creating: unknown, ..Creations::default() };
    let mut with_unknown = adopted.snapshot.clone().unwrap_or(snapshot);
    if !record_creations(&mut with_unknown, &unknown).is_empty() {
        adopted.snapshot = Some(with_unknown);
    }
    if let Some(snapshot) = &adopted.snapshot {
        let expected = base.map_or(Expected::Missing, Expected::Revision);
        save_adopted(access, lock, &secrets, &expected, snapshot).await?;
    }
    if adopted.report.conflicts.is_empty() {
        // What cannot be removed is marked as merged.
        stored.remove(&access.store, None).await?;
    }
    Ok(adopted.report)
}

/// Removes a journal without using it, also one that cannot be read.
///
/// # Errors
/// [`StateError`] if there is none, or it cannot be removed.
pub async fn discard_journal(access: &StackAccess, holder: &LockHolder, run: &str) -> Result<(), StateError> {
    let lock = locking::lock(access, holder).await?;
    let discarded = discard_locked(access, run).await;
    let unlocked = lock.release(access).await;
    discarded?;
    Ok(unlocked?)
}

async fn discard_locked(access: &StackAccess, run: &str) -> Result<(), StateError> {
    let listed = journal::list(&access.journals, &access.store, &access.stack).await?;
    match listed.into_runs().into_iter().find(|listed| listed.name() == run) {
        Some(listed) => listed.remove(&access.store, &access.stack).await,
        None => Err(no_journal(access, run)),
    }
}

fn no_journal(access: &StackAccess, run: &str) -> StateError {
    StateError::NoJournal { stack: access.stack.clone(), run: run.to_owned() }
}

/// Reads a listed journal; `None` if it is gone, or has no line.
async fn read(
    access: &StackAccess,
    listed: ListedRun,
    checkpoint: Option<&str>,
) -> Result<Option<(StoredJournal, Replay)>, StateError> {
    let Some(stored) = listed.read(&access.store, &access.stack).await? else { return Ok(None) };
    let replay = journal::replay(&stored, checkpoint, &access.keyring).await?;
    Ok(replay.map(|replay| (stored, replay)))
}

fn summarize(stored: &StoredJournal, replay: Replay, checkpoint: Option<&str>, snapshot: &Snapshot) -> JournalSummary {
    let Replay { late, phases, closed, base, started, by, is_merged, .. } = replay;
    let is_saved = closed.as_ref().is_some_and(|closing| checkpoint == Some(closing.checkpoint.as_str()));
    let creations = Creations::of(&phases);
    let has_late = !late.created.is_empty() || !late.creating.is_empty();
    let status = match () {
        () if is_merged && has_late => JournalStatus::Late,
        () if is_merged || is_saved => JournalStatus::Merged,
        () if base.as_deref() == checkpoint => JournalStatus::Mergeable,
        () if is_obsolete(&creations, snapshot) => JournalStatus::Merged,
        () => JournalStatus::Conflict,
    };
    let with_id = |state: Arc<ResourceState>| Some((state.urn.clone(), state.id.clone()?));
    let (creating, known): (Vec<_>, Vec<_>) =
        creations.creating.into_iter().chain(late.creating).partition(|state| state.id.is_none());
    JournalSummary {
        run: stored.run.clone(),
        location: stored.path(),
        started,
        by,
        last_sent: stored.last_sent(),
        status,
        created: creations.created.into_iter().chain(late.created).chain(known).filter_map(with_id).collect(),
        creating: creating.into_iter().map(|state| state.urn.clone()).collect(),
    }
}
