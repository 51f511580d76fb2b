//! Start of a plugin in its dialect.
//!
//! Length: the modules of the dialects share the rest of this folder, so the choice between them stands above all.

use super::{LaunchError, LaunchSpec, Launched, go_plugin, pulumi, register};
use crate::plugin::Dialect;

/// Starts a plugin in its dialect, and waits until it has printed or registered its address. `engine_address` is passed
/// to the process if the dialect has an argument or a variable for it.
///
/// # Errors
/// [`LaunchError`]; the process is killed.
///
/// # Cancellation
/// The process is killed.
pub async fn launch(spec: LaunchSpec<'_>, dialect: &Dialect, engine_address: &str) -> Result<Launched, LaunchError> {
    match dialect {
        Dialect::Pulumi => pulumi::launch(spec, engine_address).await,
        Dialect::GoPlugin(settings) => go_plugin::launch(spec, settings).await,
        Dialect::Register(settings) => register::launch(spec, settings, engine_address).await,
    }
}
