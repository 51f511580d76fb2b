//! Change of the secrets manager of a state (docs/spec/state-and-secrets.md#5.6).

use super::access::StackAccess;
use super::loading::{self, LoadedStack};
use super::locking;
use super::recovery;
use super::saving::explained;
use super::stack_secrets::SecretsChange;
use crate::checkpoint::encode_checkpoint;
use crate::error::StateError;
use crate::format::StoredText;
use crate::secrets::{CiphertextReuse, SecretsManager};
use crate::snapshot::SecretsDescription;
use crate::store::{Expected, LockHolder, StackLock};

/// Encrypts all secrets of a state anew with another manager, and saves the state. The history gets no entry, and the
/// previous state is kept as the backup, under the previous manager. `prepare` is called under the lock, directly before the
/// state is saved. Returns `None` for a state that named no manager.
///
/// # Errors
/// The error of `prepare`, and [`StateError`]: the stack does not exist, its secrets cannot be decrypted, a run was
/// interrupted, another program has replaced the state. The state is then unchanged, unless only the lock could not be
/// released: [`stored_secrets`] returns the manager that it names.
pub async fn change_secrets<E: From<StateError>>(
    access: &StackAccess,
    holder: &LockHolder,
    manager: &dyn SecretsManager,
    prepare: impl FnOnce() -> Result<(), E>,
) -> Result<Option<SecretsChange>, E> {
    let lock = locking::lock(access, holder).await?;
    let changed = change_locked(access, &lock.lock, manager, prepare).await;
    let unlocked = lock.release(access).await;
    let changed = changed?;
    unlocked.map_err(StateError::from)?;
    Ok(changed)
}

async fn change_locked<E: From<StateError>>(
    access: &StackAccess,
    lock: &StackLock,
    manager: &dyn SecretsManager,
    prepare: impl FnOnce() -> Result<(), E>,
) -> Result<Option<SecretsChange>, E> {
    let loaded = loading::load(access).await?.ok_or_else(|| StateError::NoStack(access.stack.clone()))?;
    let LoadedStack { revision, checkpoint } = loaded;
    let mut snapshot = checkpoint.checkpoint.snapshot.unwrap_or_default();
    recovery::refuse_interrupted_after(access, Some(revision.digest()), &snapshot).await?;
    let expected = Expected::Revision(revision);
    let to = manager.describe();
    let from = snapshot.secrets.replace(to.clone());
    let name = access.store.full_name(&access.stack);
    let reuse = CiphertextReuse::default();
    let text = encode_checkpoint(&name, Some(&snapshot), Some(manager), &reuse).await.map_err(StateError::from)?;
    prepare()?;
    explained(access, access.store.save(lock, text, &expected)).await?;
    Ok(from.map(|from| SecretsChange { from, to }))
}

/// Returns the secrets manager that a state names; `None` if the stack does not exist, or names none. Needs no key.
///
/// # Errors
/// [`StateError`] if the state cannot be read.
pub async fn stored_secrets(access: &StackAccess) -> Result<Option<SecretsDescription>, StateError> {
    let Some(text) = access.store.text(&access.stack).await? else { return Ok(None) };
    let stored = StoredText::parse(&text).map_err(|error| access.checkpoint_error(error))?;
    Ok(stored.secrets())
}
