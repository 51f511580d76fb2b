//! The state of a stack that is locked for a change.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::access::StackAccess;
use super::loading::load;
use super::recorder::JournalRecorder;
use super::recovery::{self, Recovered};
use super::saving::write;
use super::sealer::Sealer;
use crate::background::free_aside;
use crate::error::StateError;
use crate::format::UpdateInfo;
use crate::integrity;
use crate::journal::{self, CheckpointDigest, Journal, JournalStart};
use crate::secrets::SecretsManager;
use crate::snapshot::Snapshot;
use crate::store::{LockHolder, StackLock, StackReference, StoreError};

/// The state of a stack that is locked for a change.
pub struct StackState {
    access: StackAccess,
    lock: StackLock,
    snapshot: Snapshot,
    recovered: Option<Recovered>,
    sealer: Sealer,
    journal: Arc<Mutex<Journal>>,
}

/// Whether a state that breaks its laws is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Laws {
    Held,
    Ignored,
}

/// The content of a stack that was locked.
struct Opened {
    snapshot: Snapshot,
    recovered: Option<Recovered>,
    sealer: Sealer,
    journal: Journal,
}

impl StackState {
    /// Locks a stack, loads its state, and takes in what a run that died left in its journal. A stack that does not exist is
    /// an empty one.
    ///
    /// # Errors
    /// [`StateError`]. The lock is given back, unless what a dead run did could not be taken in ([`StateError::Unsaved`]).
    pub async fn open(access: StackAccess, holder: &LockHolder) -> Result<Self, StateError> {
        Self::open_by(access, holder, Laws::Held).await
    }

    /// The same for a state that may break its laws: to mend it.
    ///
    /// # Errors
    /// As [`StackState::open`], but for [`StateError::Integrity`].
    pub async fn open_broken(access: StackAccess, holder: &LockHolder) -> Result<Self, StateError> {
        Self::open_by(access, holder, Laws::Ignored).await
    }

    async fn open_by(access: StackAccess, holder: &LockHolder, laws: Laws) -> Result<Self, StateError> {
        let lock = access.store.lock(&access.stack, holder).await?;
        match Self::open_locked(&access, &lock, laws).await {
            Ok(Opened { snapshot, recovered, sealer, journal }) => {
                let journal = Arc::new(Mutex::new(journal));
                Ok(Self { access, lock, snapshot, recovered, sealer, journal })
            }
            // What a dead run did could not be taken in: whoever went on from the old checkpoint would forget it.
            Err(error @ StateError::Unsaved { .. }) => Err(error),
            Err(error) => {
                // That comes first; a lock that stays is told by whoever meets it.
                access.store.unlock(lock).await.ok();
                Err(error)
            }
        }
    }

    async fn open_locked(access: &StackAccess, lock: &StackLock, laws: Laws) -> Result<Opened, StateError> {
        let loaded = load(access).await?;
        let sealer = Sealer::choose(access, loaded.as_ref()).await?;
        let (mut base, snapshot) = loaded.map(|loaded| (loaded.digest, loaded.checkpoint.checkpoint.snapshot)).unzip();
        let mut snapshot = snapshot.flatten().unwrap_or_default();
        let found = recovery::find(access, base.as_ref(), &snapshot).await?;
        for journal in &found.settled {
            journal::remove(journal)?;
        }
        let mut recovered = None;
        if let Some(recovery) = found.recovery {
            let (digest, breach) = recovery.save(access, lock, &sealer).await.map_err(|source| {
                let (stack, journal) = (access.stack.clone(), recovery.journal().to_owned());
                StateError::Unsaved { stack, journal, source: Box::new(source) }
            })?;
            if let (Some(breach), Laws::Held) = (breach, laws) {
                return Err(StateError::SavedBroken(breach));
            }
            base = Some(CheckpointDigest::known(digest));
            (snapshot, recovered) = (recovery.snapshot, Some(recovery.told));
        }
        if let (Err(breach), Laws::Held) = (integrity::verify(&snapshot), laws) {
            return Err(breach.into());
        }
        let start = JournalStart { stack: access.stack.clone(), base, secrets: sealer.description() };
        let journal = Journal::new(&journal::folder(&access.journals, &access.stack), start);
        Ok(Opened { snapshot, recovered, sealer, journal })
    }

    /// The stack.
    pub fn stack(&self) -> &StackReference {
        &self.access.stack
    }

    /// The state that was loaded.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// What a run that died had done, and what it had begun; it is in the loaded state.
    pub fn recovered(&self) -> Option<&Recovered> {
        self.recovered.as_ref()
    }

    /// Who holds the key to the secrets of the stack, if anybody does.
    pub fn secrets(&self) -> Option<Arc<dyn SecretsManager>> {
        self.sealer.secrets()
    }

    /// What a deployment writes to while it runs. Ask once for each deployment of a run that changes the state, in their
    /// order: the entries of the first are numbered from [`StackState::snapshot`], those of the next from the snapshot that
    /// the one before ended with, which must be passed on as it is.
    pub fn recorder(&self) -> JournalRecorder {
        self.journal().begin_phase();
        let manager = self.sealer.manager.clone();
        JournalRecorder { journal: Arc::clone(&self.journal), manager, crypter: None }
    }

    /// Saves the state that a run led to, adds an entry to the history if there is one, and unlocks the stack.
    ///
    /// # Errors
    /// [`StateError::SavedBroken`] if the state breaks its laws; [`StateError::Unsaved`] if it could not be saved (nor may be,
    /// because somebody took the lock away), in which case the journal stays, and the lock if it is still held. An error after
    /// that ([`StateError::Unarchived`], the lock) does not take the saving back.
    pub async fn close(self, snapshot: Snapshot, update: Option<&UpdateInfo>) -> Result<(), StateError> {
        let stack = self.access.stack.clone();
        let (text, breach) = match write(&self.access, &self.sealer, snapshot).await {
            Ok(written) => written,
            Err(error) => return Err(self.unsaved(error).await),
        };
        // A journal that takes no more may lack the end of what this run did, and the checkpoint has it: that is saved all the
        // same. Should the run die before the journal is removed, the next one finds that the two do not belong together.
        self.journal().close(&text).ok();
        if let Err(error) = self.access.store.save(&self.lock, &text).await {
            return Err(self.unsaved(error.into()).await);
        }
        let journal = self.journal().path().map(ToOwned::to_owned);
        let settled = journal.map_or(Ok(()), |path| journal::remove(&path));
        let archived = match update {
            Some(update) => self.access.store.archive(&stack, &update.to_json()).await,
            None => Ok(()),
        };
        let archived = archived.map_err(|source| StateError::Unarchived { stack, source: Box::new(source) });
        self.access.store.unlock(self.lock).await?;
        free_aside((self.snapshot, self.journal));
        settled?;
        archived?;
        breach.map_or(Ok(()), |breach| Err(StateError::SavedBroken(breach)))
    }

    /// Unlocks the stack without saving anything. Only for a run that recorded nothing.
    ///
    /// # Errors
    /// [`StateError`] if the lock cannot be given back.
    pub async fn release(self) -> Result<(), StateError> {
        Ok(self.access.store.unlock(self.lock).await?)
    }

    /// Keeps the lock if there is a journal: whoever went on from the old checkpoint would forget what it holds.
    async fn unsaved(self, source: StateError) -> StateError {
        let journal = self.journal().path().map(ToOwned::to_owned);
        let source = match &source {
            // Whoever took the lock took this for the journal of a dead run, and what it held until then.
            StateError::Store(StoreError::LockLost { .. }) => {
                let restored = self.journal().restore();
                restored.map_or_else(StateError::from, |()| source)
            }
            _ => source,
        };
        match journal {
            Some(journal) => StateError::Unsaved { stack: self.access.stack, journal, source: Box::new(source) },
            None => {
                self.access.store.unlock(self.lock).await.ok();
                source
            }
        }
    }

    fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
