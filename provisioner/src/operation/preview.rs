//! Previews of operations: change no resource and no state, and take no lock.

use engine::events::{ActivityKind, Operation};
use state::{StackView, StateError};

use super::deploy::DeployMode;
use super::pending_resolution::Resolution;
use super::undecided_resources::UndecidedRule;
use super::{OperationError, Report, StackRun};

/// Previews [`super::provision()`]. With `refresh`, reads the actual state of all resources first, without recording
/// it.
///
/// # Errors
/// [`OperationError`] if plugins do not load, or the state cannot be read or violates the integrity of snapshots.
pub async fn preview(run: &StackRun, refresh: bool) -> Result<Report, OperationError> {
    run.preview_operation(Operation::Update, refresh).await
}

/// Previews the changes that [`super::refresh()`] would record.
///
/// # Errors
/// Returns the errors of [`preview`].
pub async fn preview_refresh(run: &StackRun) -> Result<Report, OperationError> {
    run.preview_operation(Operation::Refresh, false).await
}

/// Previews the deletions of [`super::destroy()`].
///
/// # Errors
/// Returns the errors of [`preview`].
pub async fn preview_destroy(run: &StackRun, refresh: bool) -> Result<Report, OperationError> {
    run.preview_operation(Operation::Destroy, refresh).await
}

impl StackRun {
    async fn preview_operation(&self, operation: Operation, refresh: bool) -> Result<Report, OperationError> {
        // Before plugins start, so that a passphrase that is missing or wrong is found first.
        let opening = self.begin(ActivityKind::OpenState);
        let view = StackView::open(&self.access).await?;
        drop(opening);
        self.preview_view(operation, refresh, view, UndecidedRule::Kept).await
    }

    /// Previews an operation on a state that is open.
    pub(super) async fn preview_view(
        &self,
        operation: Operation,
        refresh: bool,
        view: StackView,
        undecided: UndecidedRule,
    ) -> Result<Report, OperationError> {
        let is_refreshed = refresh && view.snapshot.as_ref().is_some_and(|snapshot| !snapshot.resources.is_empty());
        let first_instances = if is_refreshed && operation == Operation::Update { 2 } else { 1 };
        let host = self.load_plugins(first_instances).await?;
        self.check_types(&host, operation).await?;
        self.report_recovery(view.recovered.as_ref(), view.is_idle);
        self.report_late(&view.late);
        self.report_obsolete(&view.obsolete);
        self.report_unexplained_empty(view.unexplained_empty.as_ref());
        if let Some(conflict) = view.conflict {
            return Err(StateError::Conflict(Box::new(conflict)).into());
        }
        if let Some(error) = view.integrity_error {
            return Err(StateError::Integrity(error).into());
        }
        // Only a destroy may continue after its preview, if the user confirms it.
        let mode = DeployMode::Preview(view.secrets().filter(|_| operation == Operation::Destroy));
        if view.snapshot.is_none() {
            self.check_new_stack(operation, &state::namesakes(&self.access).await, true).await?;
        }
        let snapshot = view.snapshot.unwrap_or_default();
        self.check_recorded(&host, operation, &snapshot).await?;
        let snapshot = match self.resolve_pending_creates(&host, &snapshot, || DeployMode::Preview(None)).await? {
            Resolution::Resolved(resolved, _) => *resolved,
            Resolution::Failed(report) => return Ok(*report),
            Resolution::Unchanged | Resolution::Ended => snapshot,
        };
        self.report_pending_creates(&snapshot);
        let mut run = if self.has_program(operation) { self.decided(&host, &snapshot).await? } else { self.clone() };
        if !self.program.stack().deciding.is_empty() {
            run.check_types(&host, operation).await?;
        }
        run.resolve_names(&snapshot).await?;
        match undecided {
            UndecidedRule::Refused => run.refuse_undecided()?,
            UndecidedRule::Kept if operation == Operation::Update => run.keep_undecided(&snapshot),
            UndecidedRule::Kept => {}
        }
        let report = run.deploy(&host, operation, refresh, snapshot, mode).await;
        self.warn_of_missing(&report);
        if operation == Operation::Destroy {
            self.report_nothing_found(&report);
        }
        Ok(report)
    }
}
