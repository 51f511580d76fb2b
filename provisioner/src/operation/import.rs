//! Import: adds existing resources to the state.

use jiff::Timestamp;

use engine::ImportGoal;
use engine::events::Operation;
use state::format::UpdateKind;

use super::deploy::DeployMode;
use super::{OperationError, Report, RunOptions, StackRun};

/// Reads existing resources and records them, without changing them. A failed import does not stop the other imports.
///
/// # Errors
/// Returns the errors of [`super::provision()`].
///
/// # Cancellation
/// Is cancelled like [`super::provision()`].
pub async fn import(run: &StackRun, imports: Vec<ImportGoal>) -> Result<Report, OperationError> {
    let run = StackRun { options: RunOptions { imports, ..run.options.clone() }, ..run.clone() };
    let host = run.load_plugins().await?;
    let outcome = async {
        let started = Timestamp::now().as_second();
        let state = run.open(&host).await?;
        let mode = DeployMode::Apply(state.recorder(UpdateKind::Import));
        let report = run.deploy(&host, Operation::Import, false, state.snapshot().clone(), mode).await;
        state.close(report.snapshot.clone(), Some(&run.history(UpdateKind::Import, started, &report))).await?;
        Ok(report)
    };
    let outcome = outcome.await;
    host.close().await;
    outcome
}
