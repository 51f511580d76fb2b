//! Description of the run for plugins that construct components.

use std::sync::Arc;

use bridge::error::cause;
use bridge::provider::{Method, ProviderError, RunInfo};

use crate::context::Context;
use crate::goal::ConfigEntry;
use crate::options::DeploymentRequest;

/// Organization of every stack in a file backend.
const ORGANIZATION: &str = "organization";

/// Returns the description of the run for Construct and Call, with the address of the resource monitor.
///
/// # Errors
/// [`ProviderError`] if the resource monitor cannot be served.
pub(super) async fn monitored_run_info(ctx: &Arc<Context>, method: Method) -> Result<RunInfo, ProviderError> {
    let monitor_endpoint = ctx.monitor_address().await.map_err(|error| ProviderError::Failed {
        method,
        message: "cannot serve the resource monitor".to_owned(),
        indeterminate: false,
        source: Some(cause(error)),
        details: None,
    })?;
    Ok(RunInfo { monitor_endpoint: Some(monitor_endpoint), ..run_info(&ctx.request) })
}

/// Returns the description of the run without the address of the resource monitor.
pub(crate) fn run_info(request: &DeploymentRequest) -> RunInfo {
    let name = |entry: &ConfigEntry| format!("{}:{}", entry.namespace, entry.name);
    RunInfo {
        project: request.project.clone(),
        stack: request.stack.clone(),
        config: request.config.iter().map(|entry| (name(entry), entry.value.clone())).collect(),
        config_secret_keys: request.config.iter().filter(|entry| entry.secret).map(name).collect(),
        dry_run: request.preview,
        parallel: i32::try_from(request.options.parallel).unwrap_or(i32::MAX),
        monitor_endpoint: None,
        organization: ORGANIZATION.to_owned(),
    }
}
