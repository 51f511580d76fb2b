//! An export in place of the state of a stack (spec of the state, section 9).

use std::sync::Arc;

use pulumi_proto::urn::Urn;

use super::access::StackAccess;
use super::recovery;
use crate::checkpoint::{LoadedCheckpoint, decode_export, encode_checkpoint};
use crate::error::{ImportProblem, StateError};
use crate::format::FormatError;
use crate::integrity;
use crate::secrets::{SecretsError, SecretsManager};
use crate::snapshot::{OperationKind, Snapshot};
use crate::store::{LockHolder, StackLock};

/// The manager of a hosted backend: what it sealed only it can open, and nobody else can go on with it.
const HOSTED: &str = "service";

/// What an import brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// How many resources the state now holds.
    pub resources: usize,
    /// Operations that were under way when it was exported; they are not in the state any more.
    pub dropped: Vec<(OperationKind, Urn)>,
    /// What would have kept it out, had nobody insisted.
    pub problems: Vec<ImportProblem>,
}

/// Makes an export the state of a stack. Secrets are sealed with the manager that the export names; what it holds in clear
/// is sealed, too. The manifest stays, the history gets no entry, and the state before is kept as the backup.
///
/// With `force` an export with [`ImportProblem`]s is taken all the same.
///
/// # Errors
/// [`StateError`]; the state is untouched then, unless only the lock could not be given back.
pub async fn import(
    access: &StackAccess,
    holder: &LockHolder,
    export: &str,
    force: bool,
) -> Result<Imported, StateError> {
    let decoded = decode_export(export, &access.keyring).await.map_err(|error| match error {
        FormatError::Malformed(error) => StateError::NoExport(error),
        error => StateError::Export(Box::new(error)),
    })?;
    let LoadedCheckpoint { checkpoint, manager, reuse } = decoded;
    let manager = match manager {
        Some(Err(SecretsError::UnknownManager(kind))) if kind == HOSTED => Some(own_manager(access).await?),
        manager => manager.transpose()?,
    };
    let mut imported = Imported::default();
    let snapshot = match checkpoint.snapshot {
        Some(snapshot) => Some(taken_in(snapshot, access, manager.as_deref(), force, &mut imported)?),
        None => None,
    };
    let name = access.store.full_name(&access.stack);
    let text = encode_checkpoint(&name, snapshot.as_ref(), manager.as_deref(), &reuse).await?;

    let lock = access.store.lock(&access.stack, holder).await?;
    let saved = replace(access, &lock, &text).await;
    let unlocked = access.store.unlock(lock).await;
    saved?;
    unlocked?;
    Ok(imported)
}

/// The manager that new states of the stack get.
async fn own_manager(access: &StackAccess) -> Result<Arc<dyn SecretsManager>, SecretsError> {
    match &access.configured_secrets {
        Some(configured) => access.keyring.manager(configured),
        None => access.keyring.new_manager().await,
    }
}

/// The snapshot as it is stored, held to what a state of the stack has to be.
fn taken_in(
    mut snapshot: Snapshot,
    access: &StackAccess,
    manager: Option<&dyn SecretsManager>,
    force: bool,
    imported: &mut Imported,
) -> Result<Snapshot, StateError> {
    let stack = access.stack.stack();
    let strangers: Vec<&Urn> =
        snapshot.resources.iter().map(|resource| &resource.urn).filter(|urn| urn.stack() != stack).collect();
    if let Some(first) = strangers.first() {
        let (stack, count, first) = (stack.to_owned(), strangers.len(), (*first).clone());
        imported.problems.push(ImportProblem::OtherStack { stack, count, first });
    }
    imported.problems.extend(integrity::verify(&snapshot).err().map(ImportProblem::Broken));
    if let (Some(problem), false) = (imported.problems.first(), force) {
        return Err(problem.clone().into());
    }
    let dropped = std::mem::take(&mut snapshot.pending_operations);
    imported.dropped = dropped.iter().map(|pending| (pending.kind, pending.resource.urn.clone())).collect();
    imported.resources = snapshot.resources.len();
    snapshot.manifest.wrong_checksum = None;
    snapshot.secrets = manager.map(SecretsManager::describe);
    Ok(snapshot)
}

/// Saves the text, unless a run that died would be forgotten with the state that it started from.
async fn replace(access: &StackAccess, lock: &StackLock, text: &str) -> Result<(), StateError> {
    let there = access.store.load(&access.stack).await?;
    recovery::refuse_interrupted(access, there.as_deref()).await?;
    Ok(access.store.save(lock, text).await?)
}
