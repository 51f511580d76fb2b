//! State of a stack, read without a lock.

use std::sync::Arc;

use futures_util::future::try_join;

use super::access::StackAccess;
use super::late::LateReport;
use super::loading::{LoadedStack, load, load_without_secrets};
use super::recovery::{self, RecoveredRun};
use super::stack_secrets::StackSecrets;
use super::unexplained_empty;
use super::unmerged::{Unmerged, UnmergedJournal};
use crate::checkpoint::export_checkpoint;
use crate::error::{JournalConflict, StateError, UnexplainedEmptyState};
use crate::format;
use crate::integrity::{self, IntegrityError};
use crate::journal::{self, ListedJournals};
use crate::secrets::SecretsManager;
use crate::snapshot::Snapshot;
use crate::store::Revision;

/// Number of attempts to read a stack whose run ends meanwhile.
const ATTEMPTS: usize = 5;

/// State of a stack, read without a lock.
pub struct StackView {
    /// Snapshot with the changes of an interrupted run. `None`: the stack does not exist.
    pub snapshot: Option<Snapshot>,
    /// Interrupted run, if the stack has the journal of one.
    pub recovered: Option<RecoveredRun>,
    /// Resources that runs have recorded after their journals had been taken over.
    pub late: LateReport,
    /// `true` if no run was active at the time of reading: the stack was not locked, or the processes of its locks have ended. The
    /// run of a recovered journal has then ended.
    pub is_idle: bool,
    /// Journal that starts from another checkpoint; its records are not in the snapshot. Changes of the stack fail.
    pub conflict: Option<JournalConflict>,
    /// Starts (RFC 3339) of interrupted runs whose journals start from another checkpoint, although the state records all
    /// that they created. The next change of the stack removes these journals.
    pub obsolete: Vec<String>,
    /// All journals that start from another checkpoint; the first is that of the conflict.
    pub unmerged: Vec<UnmergedJournal>,
    /// Description of the state if the stack has lost its resources.
    pub unexplained_empty: Option<UnexplainedEmptyState>,
    /// Integrity error of the snapshot. The snapshot may be shown, but not used for a preview.
    pub integrity_error: Option<IntegrityError>,
    secrets: StackSecrets,
}

/// Form of the secrets in an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportedSecrets {
    /// Ciphertexts.
    Encrypted,
    /// Plaintexts.
    Plaintext,
}

impl StackView {
    /// Returns the secrets manager of the stack, if it is available.
    pub fn secrets(&self) -> Option<Arc<dyn SecretsManager>> {
        self.secrets.manager()
    }

    /// Loads the state of a stack without locking it, and without writing anything.
    ///
    /// # Errors
    /// [`StateError`].
    pub async fn open(access: &StackAccess) -> Result<Self, StateError> {
        Self::open_with(access, || load(access)).await
    }

    /// Loads the state like [`StackView::open`], for a display that masks secrets: the values of secrets in the
    /// checkpoint are null. Needs no key, unless the journal of a run contains secrets.
    ///
    /// # Errors
    /// [`StateError`].
    pub async fn open_without_secrets(access: &StackAccess) -> Result<Self, StateError> {
        Self::open_with(access, || load_without_secrets(access)).await
    }

    async fn open_with<F>(access: &StackAccess, load: impl Fn() -> F) -> Result<Self, StateError>
    where
        F: Future<Output = Result<Option<LoadedStack>, StateError>>,
    {
        // A run that ends meanwhile saves its checkpoint and removes its journal: what was read of the two may not belong
        // together.
        for _ in 0..ATTEMPTS {
            let listing = journal::list(&access.journals, &access.store, &access.stack);
            let (loaded, listed) = try_join(load(), listing).await?;
            let base = loaded.as_ref().map(|loaded| loaded.revision.clone());
            let Some(view) = Self::of_loaded(access, loaded, listed).await? else { continue };
            let is_settled = view.conflict.is_none() || !access.journals.is_remote() || {
                let again = access.store.load(&access.stack).await?;
                let digest = |revision: &Revision| revision.digest().as_str().to_owned();
                again.map(|stored| digest(&stored.revision)) == base.as_ref().map(digest)
            };
            if is_settled {
                return Ok(view);
            }
        }
        Err(StateError::JournalChanged { stack: access.stack.clone() })
    }

    async fn of_loaded(
        access: &StackAccess,
        loaded: Option<LoadedStack>,
        listed: ListedJournals,
    ) -> Result<Option<Self>, StateError> {
        let exists = loaded.is_some();
        let secrets = StackSecrets::for_reading(loaded.as_ref());
        let unexplained_empty = unexplained_empty::find(access, loaded.as_ref()).await?;
        let (base, snapshot) = loaded.map(|loaded| (loaded.revision, loaded.checkpoint.checkpoint.snapshot)).unzip();
        let snapshot = snapshot.flatten();
        let found = snapshot.clone().unwrap_or_default();
        let is_idle = access.store.locks(&access.stack).await?.iter().all(|lock| (access.locks.has_ended)(lock));
        let digest = base.as_ref().map(Revision::digest);
        let Some(found) = recovery::find_journals(access, listed, digest, &found).await? else { return Ok(None) };
        // The journal of the run explains the state.
        let unexplained_empty = unexplained_empty.filter(|_| !found.explain_checkpoint());
        let conflict = found.unmerged.first().map(|journal| journal.conflict.clone());
        let unmerged = found.unmerged.iter().map(Unmerged::journal).collect();
        let obsolete = found.obsolete.into_iter().map(|journal| journal.started).collect();
        let (snapshot, recovered) = match found.recovery {
            Some(recovery) => (Some(recovery.snapshot), Some(recovery.report)),
            None => (found.late.snapshot.or(snapshot).or_else(|| exists.then(Snapshot::default)), None),
        };
        let integrity_error = snapshot.as_ref().and_then(|snapshot| integrity::verify(snapshot).err());
        Ok(Some(Self {
            snapshot,
            recovered,
            late: found.late.report,
            is_idle,
            conflict,
            obsolete,
            unmerged,
            unexplained_empty,
            integrity_error,
            secrets,
        }))
    }

    /// Exports the state as `pulumi stack export` does, without locking the stack; `None` if the stack does not exist.
    /// Encrypted secrets are exported as they are stored without a key, unless the journal of an interrupted run has to
    /// be replayed.
    ///
    /// # Errors
    /// [`StateError`]; [`StateError::Conflict`] if a journal starts from another checkpoint.
    pub async fn export(access: &StackAccess, secrets: ExportedSecrets) -> Result<Option<String>, StateError> {
        let text = access.store.text(&access.stack).await?;
        let is_encrypted = secrets == ExportedSecrets::Encrypted;
        let has_journal = access.has_journal().await?;
        match &text {
            None if !has_journal => return Ok(None),
            Some(text) if is_encrypted && !has_journal => {
                return format::export_verbatim(text).map(Some).map_err(|error| access.checkpoint_error(error));
            }
            _ => {}
        }
        let view = Self::open(access).await?;
        if let Some(conflict) = view.conflict {
            return Err(StateError::Conflict(Box::new(conflict)));
        }
        let Some(snapshot) = view.snapshot else { return Ok(None) };
        // An interrupted first run leaves a journal and no checkpoint, which would name a secrets manager.
        let stack_secrets = if text.is_some() { view.secrets } else { StackSecrets::for_writing(access, None).await? };
        let encrypted = is_encrypted.then_some((stack_secrets.manager.as_deref().ok(), &stack_secrets.reuse));
        Ok(Some(export_checkpoint(Some(&snapshot), encrypted).await?))
    }
}
