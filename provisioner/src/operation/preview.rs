//! Previews: what an operation would do. Nothing is created, saved or locked.

use engine::events::Operation;
use state::{StackView, StateError};

use super::deploy::Effect;
use super::{OperationError, Report, StackRun, check_served};

/// What [`super::provision()`] would do. With `refresh`, what there is is read first, in memory.
///
/// # Errors
/// [`OperationError`] if plugins do not load, or the state cannot be read or breaks its laws.
pub async fn preview(run: &StackRun, refresh: bool) -> Result<Report, OperationError> {
    run.look(Operation::Update, refresh).await
}

/// What [`super::refresh()`] would find.
///
/// # Errors
/// As [`preview`].
pub async fn preview_refresh(run: &StackRun) -> Result<Report, OperationError> {
    run.look(Operation::Refresh, false).await
}

/// What [`super::destroy()`] would delete.
///
/// # Errors
/// As [`preview`].
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
            // Of the commands that look only a destroy may go on, if the user says so.
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
