//! Import of an exported deployment (docs/spec/state-and-secrets.md#9).

use std::sync::Arc;

use pulumi_proto::urn::Urn;

use super::access::StackAccess;
use super::locking;
use super::recovery;
use super::saving::explained;
use crate::checkpoint::{LoadedCheckpoint, decode_export, encode_checkpoint};
use crate::error::{ImportProblem, StateError};
use crate::format::FormatError;
use crate::integrity;
use crate::secrets::{SecretsError, SecretsManager};
use crate::snapshot::{OperationKind, PendingOperation, Snapshot};
use crate::store::{Expected, LockHolder, StackLock};

/// Secrets manager of a hosted backend. Other backends can neither decrypt its secrets nor encrypt with it.
const HOSTED_MANAGER_KIND: &str = "service";

/// Result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// Number of resources in the state.
    pub resources: usize,
    /// Pending operations of the export that are not in the state any more: all but creates whose id is known.
    pub dropped: Vec<(OperationKind, Urn)>,
    /// Problems that were ignored because of `force`.
    pub problems: Vec<ImportProblem>,
}

/// Replaces the state of a stack by an exported deployment. Secrets are encrypted with the manager that the export
/// names; plaintext secrets are encrypted, too. The manifest of the export is kept, except a wrong checksum. The
/// history gets no entry, and the previous state is kept as the backup.
///
/// With `force`, [`ImportProblem`]s do not prevent the import.
///
/// # Errors
/// [`StateError`]; the state is then unchanged, unless only the lock could not be released.
pub async fn import(
    access: &StackAccess,
    holder: &LockHolder,
    export: &str,
    force: bool,
) -> Result<ImportReport, StateError> {
    let decoded = decode_export(export, &access.keyring).await.map_err(|error| match error {
        FormatError::Malformed(error) => StateError::NotAnExport(error),
        error => StateError::Export(Box::new(error)),
    })?;
    let LoadedCheckpoint { checkpoint, manager, reuse } = decoded;
    let manager = match manager {
        Some(Err(SecretsError::UnknownManager(kind))) if kind == HOSTED_MANAGER_KIND => {
            Some(configured_manager(access).await?)
        }
        manager => manager.transpose()?,
    };
    let mut report = ImportReport::default();
    let snapshot = match checkpoint.snapshot {
        Some(snapshot) => Some(prepare_snapshot(snapshot, access, manager.as_deref(), force, &mut report)?),
        None => None,
    };
    let name = access.store.full_name(&access.stack);
    let text = encode_checkpoint(&name, snapshot.as_ref(), manager.as_deref(), &reuse).await?;

    let lock = locking::lock(access, holder).await?;
    let saved = replace_checkpoint(access, &lock.lock, &text).await;
    let unlocked = lock.release(access).await;
    saved?;
    unlocked?;
    Ok(report)
}

/// Returns the secrets manager of the stack file, else a new one.
async fn configured_manager(access: &StackAccess) -> Result<Arc<dyn SecretsManager>, SecretsError> {
    match &access.configured_secrets {
        Some(configured) => access.keyring.manager(configured),
        None => access.keyring.new_manager(None).await,
    }
}

/// Validates an imported snapshot and prepares it for saving.
fn prepare_snapshot(
    mut snapshot: Snapshot,
    access: &StackAccess,
    manager: Option<&dyn SecretsManager>,
    force: bool,
    report: &mut ImportReport,
) -> Result<Snapshot, StateError> {
    let stack = access.stack.stack();
    let foreign: Vec<&Urn> =
        snapshot.resources.iter().map(|resource| &resource.urn).filter(|urn| urn.stack() != stack).collect();
    if let Some(first) = foreign.first() {
        let (stack, count, first) = (stack.to_owned(), foreign.len(), (*first).clone());
        report.problems.push(ImportProblem::OtherStack { stack, count, first });
    }
    report.problems.extend(integrity::verify(&snapshot).err().map(ImportProblem::Integrity));
    if let (Some(problem), false) = (report.problems.first(), force) {
        return Err(problem.clone().into());
    }
    // A created resource whose id is known is not forgotten: the next run reads it.
    let (kept, dropped): (Vec<_>, Vec<_>) =
        snapshot.pending_operations.into_iter().partition(PendingOperation::is_create_with_id);
    snapshot.pending_operations = kept;
    report.dropped = dropped.iter().map(|pending| (pending.kind, pending.resource.urn.clone())).collect();
    report.resources = snapshot.resources.len();
    snapshot.manifest.wrong_checksum = None;
    snapshot.secrets = manager.map(SecretsManager::describe);
    Ok(snapshot)
}

/// Saves the text, unless an interrupted run has left a journal that is not recovered yet.
async fn replace_checkpoint(access: &StackAccess, lock: &StackLock, text: &str) -> Result<(), StateError> {
    let current = access.store.load(&access.stack).await?;
    recovery::refuse_interrupted(access, current.as_ref()).await?;
    let expected = Expected::unchanged(current.as_ref());
    explained(access, access.store.save(lock, text, &expected)).await.map(drop)
}
