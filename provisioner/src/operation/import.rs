//! Import: adds existing resources to the state.

use jiff::Timestamp;

use bridge::host::{PluginHost, ProviderHost as _};
use engine::events::Operation;
use engine::{ImportGoal, ImportProvider};
use state::format::UpdateKind;

use super::{OperationError, Report, StackRun};
use crate::program::Program;

/// Reads existing resources and records them, without changing them. A failed import does not stop the other imports.
///
/// # Errors
/// Returns the errors of [`super::provision()`].
///
/// # Cancellation
/// Is cancelled like [`super::provision()`].
pub async fn import(run: &StackRun, imports: Vec<ImportGoal>) -> Result<Report, OperationError> {
    let host = run.load_plugins(1).await?;
    run.check_declared_types(&host).await?;
    let mut run = run.clone();
    run.options.deployment.imports = resolve_types(&host, imports).await?;
    run.options.deployment.imports.iter_mut().for_each(|goal| run.program.set_import_version(goal));
    let started = Timestamp::now().as_second();
    let state = run.open(&host, Operation::Import).await?;
    let mode = run.applied_to(&state, UpdateKind::Import);
    let report = run.deploy(&host, Operation::Import, false, state.snapshot().clone(), mode).await;
    state.close(report.snapshot.clone(), Some(&run.history(UpdateKind::Import, started, &report).await)).await?;
    Ok(report)
}

/// Replaces the types of the files by those of the schemas.
async fn resolve_types(host: &PluginHost, mut imports: Vec<ImportGoal>) -> Result<Vec<ImportGoal>, OperationError> {
    for goal in &mut imports {
        if let ImportProvider::Declared(provider) = &goal.provider {
            let types = host.package_types(&provider.name).await.map_err(OperationError::Schema)?;
            Program::resolve_import_type(goal, &types);
        }
    }
    Ok(imports)
}
