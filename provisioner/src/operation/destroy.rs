//! Destroy: deletes everything that is recorded.

use engine::events::Operation;
use state::format::UpdateKind;

use super::{OperationError, RefreshOptions, Report, StackRun};

/// Deletes everything that is recorded, dependents first. With `refresh`, what there is is read first.
///
/// # Errors
/// As [`super::provision()`].
///
/// # Cancellation
/// As [`super::provision()`].
pub async fn destroy(run: &StackRun, refresh: bool) -> Result<Report, OperationError> {
    run.on_recorded(Operation::Destroy, UpdateKind::Destroy, refresh, RefreshOptions::default()).await
}
