//! Taking in what a run that died left in its journal.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;

use super::access::StackAccess;
use super::saving::write;
use super::sealer::Sealer;
use crate::error::{JournalConflict, StateError};
use crate::integrity::IntegrityError;
use crate::journal::{self, CheckpointDigest, Replay};
use crate::ledger::Ledger;
use crate::record::{Effect, Record, Subject};
use crate::snapshot::{OperationKind, Snapshot};
use crate::store::StackLock;

/// What came from the journal of a run that died.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// When that run began.
    pub started: String,
    /// What it had done, and how often.
    pub done: BTreeMap<OperationKind, usize>,
    /// What it had begun, and is not known to have ended.
    pub pending: Vec<(OperationKind, Urn)>,
    /// Whether its last record was torn and is lost. What it announced did not happen.
    pub torn: bool,
}

/// A state that was put together from a checkpoint and a journal.
#[derive(Debug)]
pub(super) struct Recovery {
    pub(super) snapshot: Snapshot,
    pub(super) told: Recovered,
    journal: Replay,
}

/// What the journals of a stack came to.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The run that died, if one did.
    pub(super) recovery: Option<Recovery>,
    /// Journals whose runs had begun nothing, or saved everything.
    pub(super) settled: Vec<PathBuf>,
}

/// Looks for the journal of a run that died. Writes nothing.
///
/// # Errors
/// [`StateError::Conflict`] if there is one that belongs to another checkpoint.
pub(super) async fn find(
    access: &StackAccess,
    checkpoint: Option<&CheckpointDigest>,
    snapshot: &Snapshot,
) -> Result<Found, StateError> {
    let mut found = Found::default();
    for path in journal::left_behind(&access.journals, &access.stack)? {
        let Some(replay) = journal::replay(&path, &access.keyring).await? else {
            found.settled.push(path);
            continue;
        };
        let checkpoint = checkpoint.map(CheckpointDigest::as_str);
        if replay.closed.is_some() && replay.closed.as_deref() == checkpoint {
            found.settled.push(path);
        } else if found.recovery.is_none() && replay.base.as_deref() == checkpoint {
            found.recovery = Some(Recovery::of(replay, snapshot.clone()));
        } else {
            let (created, creating) = creations(&replay.phases);
            let (stack, base) = (access.stack.clone(), replay.base);
            let found = checkpoint.map(ToOwned::to_owned);
            return Err(Box::new(JournalConflict { stack, journal: path, base, found, created, creating }).into());
        }
    }
    Ok(found)
}

/// Makes sure that no run that died has left anything to take in, and removes journals that are settled.
///
/// # Errors
/// [`StateError::Interrupted`], and as for [`find`].
pub(super) async fn refuse_interrupted(access: &StackAccess, checkpoint: Option<&str>) -> Result<(), StateError> {
    let digest = checkpoint.map(|text| CheckpointDigest::known(journal::digest(text)));
    let found = find(access, digest.as_ref(), &Snapshot::default()).await?;
    if let Some(Recovery { journal, .. }) = found.recovery {
        return Err(StateError::Interrupted { stack: access.stack.clone(), journal: journal.path });
    }
    for settled in &found.settled {
        journal::remove(settled)?;
    }
    Ok(())
}

/// The resources that creations brought about, and those of which nobody knows what came.
fn creations(phases: &[Vec<Record>]) -> (Vec<(Urn, Option<ResourceId>)>, Vec<Urn>) {
    let (mut created, mut unended) = (Vec::new(), Vec::new());
    for records in phases {
        let mut creating = BTreeMap::new();
        for record in records {
            match record {
                Record::Begin { operation, kind: OperationKind::Creating, subject } => {
                    // What is being created is no entry yet.
                    let urn = if let Subject::Resource(state) = subject { Some(state.urn.clone()) } else { None };
                    creating.insert(*operation, urn);
                }
                Record::End { operation, effects } if creating.remove(operation).is_some() => {
                    created.extend(effects.iter().filter_map(|effect| match effect {
                        Effect::Add(_, state) => Some((state.urn.clone(), state.id.clone())),
                        Effect::Remove(_) | Effect::Rewrite(..) | Effect::Keep(_) | Effect::DropInheritedPending => {
                            None
                        }
                    }));
                }
                Record::Begin { .. } | Record::End { .. } | Record::Change(_) => {}
            }
        }
        unended.extend(creating.into_values().flatten());
    }
    (created, unended)
}

impl Recovery {
    fn of(journal: Replay, base: Snapshot) -> Self {
        let mut snapshot = base;
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
        let told = Recovered { started: journal.started.clone(), done, pending, torn: journal.torn };
        Self { snapshot, told, journal }
    }

    /// Where the journal is.
    pub(super) fn journal(&self) -> &Path {
        &self.journal.path
    }

    /// Makes the recovered state the checkpoint, and returns its digest.
    ///
    /// # Errors
    /// [`StateError::SavedBroken`] if the state breaks its laws, as at the end of a run.
    pub(super) async fn save(
        &self,
        access: &StackAccess,
        lock: &StackLock,
        sealer: &Sealer,
    ) -> Result<(String, Option<IntegrityError>), StateError> {
        let (text, breach) = write(access, sealer, self.snapshot.clone()).await?;
        let digest = journal::digest(&text);
        journal::settle(&self.journal.path, self.journal.end, &digest)?;
        access.store.save(lock, &text).await?;
        // It is settled: if it stays, the next run removes it.
        journal::remove(&self.journal.path).ok();
        Ok((digest, breach))
    }
}
