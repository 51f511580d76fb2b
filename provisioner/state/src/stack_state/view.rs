//! The state of a stack for reading only.

use std::sync::Arc;

use super::access::StackAccess;
use super::loading::load;
use super::recovery::{self, Recovered};
use super::sealer::Sealer;
use crate::checkpoint::export_checkpoint;
use crate::error::{JournalConflict, StateError};
use crate::format;
use crate::integrity::{self, IntegrityError};
use crate::secrets::SecretsManager;
use crate::snapshot::Snapshot;

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

impl StackView {
    /// Who holds the key to the secrets of the stack, if anybody does.
    pub fn secrets(&self) -> Option<Arc<dyn SecretsManager>> {
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
