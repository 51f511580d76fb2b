//! Destroy: deletes all recorded resources.

use engine::events::Operation;
use state::format::UpdateKind;

use super::{OperationError, RefreshOptions, Report, StackRun};

/// Deletes all recorded resources, dependents first. With `refresh`, reads their actual state first.
///
/// # Errors
/// Returns the errors of [`super::provision()`].
///
/// # Cancellation
/// Is cancelled like [`super::provision()`].
pub async fn destroy(run: &StackRun, refresh: bool) -> Result<Report, OperationError> {
    run.refresh_or_destroy(Operation::Destroy, UpdateKind::Destroy, refresh, RefreshOptions::default()).await
}
