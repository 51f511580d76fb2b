//! The state of one stack as an operation uses it: locked, loaded, recovered, recorded, saved.

mod import;
mod manage;
mod recovery;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;

use super::checkpoint::{LoadedCheckpoint, decode_checkpoint, encode_checkpoint, export_checkpoint};
use super::error::{JournalConflict, StateError};
use super::format::{self, ConfigValue, UpdateInfo};
use super::free_aside;
use super::integrity::{self, IntegrityError, ParentMismatch};
use super::journal::{self, CheckpointDigest, Journal, JournalStart};
use super::ledger::Record;
use super::recorder::StateRecorder;
use super::secrets::{CiphertextReuse, Crypter, Keyring, SecretsError, SecretsManager};
use super::snapshot::{SecretsDescription, Snapshot};
use super::store::{LockHolder, StackLock, StackReference, StateStore, StoreError};

pub use import::{Imported, import};
pub use manage::{StackSummary, history, remove_stack, rename_stack, summary};
pub use recovery::Recovered;

/// Everything that is needed to get at the state of a stack.
#[derive(Clone)]
pub struct StackAccess {
    /// Where states are kept.
    pub store: Arc<dyn StateStore>,
    /// Which stack.
    pub stack: StackReference,
    /// The keys that the user gave.
    pub keyring: Arc<Keyring>,
    /// The secrets manager that the stack file names; without, that of the state is used, or a new one.
    pub configured_secrets: Option<SecretsDescription>,
    /// The configuration that the stack file holds, by key (`namespace:name`): for the history.
    pub config: BTreeMap<String, ConfigValue>,
    /// The folder beside whose `.pulumi` journals are kept: the store's own, or a local one.
    pub journals: PathBuf,
    /// The version that manifests are to name, with a leading `v`.
    pub engine_version: String,
}

impl StackAccess {
    /// Whether a run has left a journal, or is writing one.
    ///
    /// # Errors
    /// [`StateError`] if its folder cannot be read.
    pub fn has_journal(&self) -> Result<bool, StateError> {
        Ok(!journal::left_behind(&self.journals, &self.stack)?.is_empty())
    }
}

/// The state of a stack that is locked for a change.
pub struct StackState {
    access: StackAccess,
    lock: StackLock,
    snapshot: Snapshot,
    oddities: Vec<ParentMismatch>,
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

/// The state of a stack as it is, for looking only.
pub struct StackView {
    /// The state; what a dead run left in its journal is in it. `None`: there is no such stack.
    pub snapshot: Option<Snapshot>,
    /// What came from a journal.
    pub recovered: Option<Recovered>,
    /// Whether nobody held the lock a moment ago: the run whose journal that is has died.
    pub is_unlocked: bool,
    /// A journal that does not belong to the state, and is not in it. A change will be refused.
    pub conflict: Option<JournalConflict>,
    /// Which laws the state breaks. It may be shown all the same, but not previewed on.
    pub breach: Option<IntegrityError>,
    sealer: Sealer,
}

/// What becomes of secrets in an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportedSecrets {
    /// They stay sealed.
    Sealed,
    /// They are shown.
    Shown,
}

/// How the secrets of a stack are sealed from now on.
#[derive(Clone)]
struct Sealer {
    /// Why there may be none matters only once there is a secret.
    manager: Result<Arc<dyn SecretsManager>, SecretsError>,
    reuse: CiphertextReuse,
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
            Ok((snapshot, oddities, recovered, sealer, journal)) => {
                let journal = Arc::new(Mutex::new(journal));
                Ok(Self { access, lock, snapshot, oddities, recovered, sealer, journal })
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

    async fn open_locked(
        access: &StackAccess,
        lock: &StackLock,
        laws: Laws,
    ) -> Result<(Snapshot, Vec<ParentMismatch>, Option<Recovered>, Sealer, Journal), StateError> {
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
        let oddities = match (integrity::verify(&snapshot), laws) {
            (Ok(oddities), _) => oddities,
            (Err(_), Laws::Ignored) => Vec::new(),
            (Err(breach), Laws::Held) => return Err(breach.into()),
        };
        let start = JournalStart { stack: access.stack.clone(), base, secrets: sealer.description() };
        let journal = Journal::new(&journal::folder(&access.journals, &access.stack), start);
        Ok((snapshot, oddities, recovered, sealer, journal))
    }

    /// The stack.
    pub fn stack(&self) -> &StackReference {
        &self.access.stack
    }

    /// The state that was loaded.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// What is odd about the loaded state, and does no harm.
    pub fn oddities(&self) -> &[ParentMismatch] {
        &self.oddities
    }

    /// What a run that died had done, and what it had begun; it is in the loaded state.
    pub fn recovered(&self) -> Option<&Recovered> {
        self.recovered.as_ref()
    }

    /// Who holds the key to the secrets of the stack, if anybody does.
    pub(crate) fn secrets(&self) -> Option<Arc<dyn SecretsManager>> {
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

impl StackView {
    /// Who holds the key to the secrets of the stack, if anybody does.
    pub(crate) fn secrets(&self) -> Option<Arc<dyn SecretsManager>> {
        self.sealer.secrets()
    }

    /// Loads the state of a stack without locking it, and without writing anything.
    ///
    /// # Errors
    /// [`StateError`].
    pub async fn open(access: &StackAccess) -> Result<Self, StateError> {
        let loaded = load(access).await?;
        let exists = loaded.is_some();
        let sealer = Sealer::of_state(loaded.as_ref());
        let (base, snapshot) = loaded.map(|loaded| (loaded.digest, loaded.checkpoint.checkpoint.snapshot)).unzip();
        let snapshot = snapshot.flatten();
        let found = snapshot.clone().unwrap_or_default();
        let is_unlocked = access.store.locks(&access.stack).await?.is_empty();
        let (snapshot, recovered, conflict) = match recovery::find(access, base.as_ref(), &found).await {
            Ok(recovery::Found { recovery: Some(recovery), .. }) => {
                (Some(recovery.snapshot), Some(recovery.told), None)
            }
            Ok(_) => (snapshot.or_else(|| exists.then(Snapshot::default)), None, None),
            Err(StateError::Conflict(conflict)) => (snapshot, None, Some(*conflict)),
            Err(error) => return Err(error),
        };
        let breach = snapshot.as_ref().and_then(|snapshot| integrity::verify(snapshot).err());
        Ok(Self { snapshot, recovered, is_unlocked, conflict, breach, sealer })
    }

    /// The state as `pulumi stack export` shows it and `pulumi stack import` takes it, without locking the stack; `None`:
    /// there is no such stack. What stays sealed is given out as it is stored, and no key is needed, unless the journal of
    /// a run that died has to be taken in.
    ///
    /// # Errors
    /// [`StateError`]; [`StateError::Conflict`] with a journal that would be missing in it.
    pub async fn export(access: &StackAccess, secrets: ExportedSecrets) -> Result<Option<String>, StateError> {
        let text = access.store.load(&access.stack).await?;
        let sealed = secrets == ExportedSecrets::Sealed;
        let has_journal = access.has_journal()?;
        match &text {
            None if !has_journal => return Ok(None),
            Some(text) if sealed && !has_journal => {
                let failed = |error| StateError::Checkpoint { stack: access.stack.clone(), source: Box::new(error) };
                return format::reexport(text).map(Some).map_err(failed);
            }
            _ => {}
        }
        let view = Self::open(access).await?;
        if let Some(conflict) = view.conflict {
            return Err(StateError::Conflict(Box::new(conflict)));
        }
        let Some(snapshot) = view.snapshot else { return Ok(None) };
        // A first run that died has left a journal and no checkpoint that would name a key.
        let sealer = if text.is_some() { view.sealer } else { Sealer::choose(access, None).await? };
        let sealing = sealed.then_some((sealer.manager.as_deref().ok(), &sealer.reuse));
        Ok(Some(export_checkpoint(Some(&snapshot), sealing).await?))
    }
}

impl Sealer {
    async fn choose(access: &StackAccess, loaded: Option<&Loaded>) -> Result<Self, StateError> {
        let configured = access.configured_secrets.as_ref().map(|description| access.keyring.manager(description));
        let in_state = loaded.and_then(|loaded| loaded.checkpoint.manager.clone());
        let manager = match (configured, in_state.clone()) {
            (Some(configured), _) => configured,
            (None, Some(in_state)) => in_state,
            (None, None) => access.keyring.new_manager().await,
        };
        // What was sealed with another key has to be sealed again.
        let same = match (&manager, &in_state) {
            (Ok(manager), Some(Ok(in_state))) => manager.describe() == in_state.describe(),
            (Err(_), Some(Err(_))) => true,
            _ => false,
        };
        let reuse = loaded.filter(|_| same).map(|loaded| loaded.checkpoint.reuse.clone()).unwrap_or_default();
        Ok(Self { manager, reuse })
    }

    /// As the state itself has it.
    fn of_state(loaded: Option<&Loaded>) -> Self {
        let manager = loaded.and_then(|loaded| loaded.checkpoint.manager.clone());
        let reuse = loaded.map(|loaded| loaded.checkpoint.reuse.clone()).unwrap_or_default();
        Self { manager: manager.unwrap_or(Err(SecretsError::KeyNeeded)), reuse }
    }

    fn secrets(&self) -> Option<Arc<dyn SecretsManager>> {
        self.manager.as_ref().ok().cloned()
    }

    fn description(&self) -> Option<SecretsDescription> {
        self.manager.as_ref().ok().map(|manager| manager.describe())
    }
}

/// A checkpoint, and how journals know it.
struct Loaded {
    digest: CheckpointDigest,
    checkpoint: LoadedCheckpoint,
}

async fn load(access: &StackAccess) -> Result<Option<Loaded>, StateError> {
    let Some(text) = access.store.load(&access.stack).await? else { return Ok(None) };
    let failed = |error| StateError::Checkpoint { stack: access.stack.clone(), source: Box::new(error) };
    let digest = CheckpointDigest::of(text);
    let checkpoint = decode_checkpoint(digest.checkpoint(), &access.keyring).await.map_err(failed)?;
    Ok(Some(Loaded { digest, checkpoint }))
}

/// The text of the checkpoint to save, and which laws it breaks. What breaks them is marked so that others can tell.
async fn write(
    access: &StackAccess,
    sealer: &Sealer,
    mut snapshot: Snapshot,
) -> Result<(String, Option<IntegrityError>), StateError> {
    snapshot.manifest.time = Timestamp::now().to_string();
    snapshot.manifest.version.clone_from(&access.engine_version);
    snapshot.manifest.wrong_checksum = None;
    if let Some(description) = sealer.description() {
        snapshot.secrets = Some(description);
    }
    let breach = integrity::verify(&snapshot).err();
    snapshot.rest.metadata.shift_remove("integrity_error");
    if let Some(breach) = &breach {
        let mark =
            serde_json::json!({ "version": access.engine_version, "command": "sc", "error": breach.to_string() });
        snapshot.rest.metadata.insert("integrity_error".to_owned(), mark);
    }
    let manager = sealer.manager.as_deref();
    let name = access.store.full_name(&access.stack);
    let text = encode_checkpoint(&name, Some(&snapshot), manager.ok(), &sealer.reuse).await;
    free_aside(snapshot);
    match (text, &sealer.manager) {
        (Ok(text), _) => Ok((text, breach)),
        // Why there is no key says more than that there is none.
        (Err(SecretsError::KeyNeeded), Err(reason)) => Err(reason.clone().into()),
        (Err(error), _) => Err(error.into()),
    }
}

/// Writes the records of a run to its journal.
pub struct JournalRecorder {
    journal: Arc<Mutex<Journal>>,
    manager: Result<Arc<dyn SecretsManager>, SecretsError>,
    crypter: Option<Arc<dyn Crypter>>,
}

impl JournalRecorder {
    /// Begins to make the key to the secrets ready, without which nothing is changed.
    pub(crate) fn prepare_secrets(&self) {
        if let Ok(manager) = &self.manager {
            manager.prepare();
        }
    }
}

#[async_trait]
impl StateRecorder for JournalRecorder {
    fn append(&mut self, record: &Record) -> Result<(), StateError> {
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        journal.append(record, self.crypter.as_deref())
    }

    fn defer(&mut self, record: Record) {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner).defer(record);
    }

    async fn secrets_ready(&mut self) -> Result<(), StateError> {
        if self.crypter.is_none() {
            self.crypter = Some(self.manager.clone()?.crypter().await?);
        }
        Ok(())
    }
}
