//! Previews: what an operation would do, without creating, saving or locking anything.

use engine::events::Operation;
use state::{StackView, StateError};

use super::deploy::Effect;
use super::{OperationError, Report, StackRun, check_served};

/// Returns what [`super::provision()`] would do. With `refresh`, reads the actual state of all resources before, in
/// memory only.
///
/// # Errors
/// [`OperationError`] if plugins do not load, or the state cannot be read or violates the integrity of snapshots.
pub async fn preview(run: &StackRun, refresh: bool) -> Result<Report, OperationError> {
    run.look(Operation::Update, refresh).await
}

/// Returns the changes that [`super::refresh()`] would record.
///
/// # Errors
/// Returns the errors of [`preview`].
pub async fn preview_refresh(run: &StackRun) -> Result<Report, OperationError> {
    run.look(Operation::Refresh, false).await
}

/// Returns the deletions that [`super::destroy()`] would carry out.
///
/// # Errors
/// Returns the errors of [`preview`].
pub async fn preview_destroy(run: &StackRun, refresh: bool) -> Result<Report, OperationError> {
    run.look(Operation::Destroy, refresh).await
}

impl StackRun {
    async fn look(&self, operation: Operation, refresh: bool) -> Result<Report, OperationError> {
        let host = self.load_plugins().await?;
        let outcome = async {
            let view = StackView::open(&self.access).await?;
            self.tell_recovery(view.recovered.as_ref(), view.is_unlocked);
            if let Some(conflict) = view.conflict {
                return Err(StateError::Conflict(Box::new(conflict)).into());
            }
            if let Some(breach) = view.breach {
                return Err(StateError::Integrity(breach).into());
            }
            // Only a destroy may continue with a real run, if the user confirms it. The other operations that use this
            // function are previewed only.
            let effect = Effect::Preview(view.secrets().filter(|_| operation == Operation::Destroy));
            let snapshot = view.snapshot.unwrap_or_default();
            check_served(&host, &snapshot)?;
            Ok(self.deploy(&host, operation, refresh, snapshot, effect).await)
        };
        let outcome = outcome.await;
        host.close().await;
        outcome
    }
}
