//! Plugins of a stack that run for other programs, such as `pulumi` or a debugger.

use std::sync::Arc;
use std::time::Duration;

use bridge::host::{AwaitedRegistration, HostError, StandalonePlugin};
use bridge::plugin::PluginConfig;
use config::Stack;
use engine::StopSignals;
use engine::events::EventSink;

use super::plugins::load_error;
use super::{OperationError, PluginSettings};

/// Time between the signal of an abort and SIGKILL.
const ABORT_GRACE: Duration = Duration::from_millis(500);

impl PluginSettings {
    /// Fetches, verifies and starts a plugin of a stack, and configures nothing, see [`StandalonePlugin::start`].
    ///
    /// # Errors
    /// [`OperationError::Plugins`]; [`OperationError::Stopped`] if the user stopped the operation.
    pub async fn start_standalone(
        &self,
        stack: &Stack,
        plugin: &PluginConfig,
        events: &Arc<dyn EventSink>,
        signals: &StopSignals,
    ) -> Result<StandalonePlugin, OperationError> {
        let settings = self.host_settings(&stack.project, events, signals);
        unless_stopped(stack, plugin, signals, StandalonePlugin::start(&settings, plugin)).await
    }

    /// Expects the registration of a plugin of a stack that another program starts.
    ///
    /// # Errors
    /// [`OperationError::Plugins`] if the socket for registrations cannot be opened.
    pub async fn expect_registration(
        &self,
        stack: &Stack,
        plugin: &PluginConfig,
        events: &Arc<dyn EventSink>,
        signals: &StopSignals,
    ) -> Result<AwaitedRegistration, OperationError> {
        let settings = self.host_settings(&stack.project, events, signals);
        unless_stopped(stack, plugin, signals, AwaitedRegistration::expect(&settings, plugin)).await
    }

    /// Waits until a plugin has registered.
    ///
    /// # Errors
    /// [`OperationError::Plugins`] if its registration is refused; [`OperationError::Stopped`] if the user stopped the
    /// operation.
    pub async fn await_registration(
        &self,
        stack: &Stack,
        plugin: &PluginConfig,
        awaited: AwaitedRegistration,
        signals: &StopSignals,
    ) -> Result<StandalonePlugin, OperationError> {
        unless_stopped(stack, plugin, signals, awaited.registered()).await
    }

    /// Ends a plugin. Returns once no process is left.
    pub async fn end_standalone(&self, plugin: &StandalonePlugin, signals: &StopSignals) {
        tokio::select! {
            () = plugin.end(self.limits.exit) => {}
            () = signals.abort.cancelled() => plugin.abort(ABORT_GRACE).await,
        }
    }
}

async fn unless_stopped<T>(
    stack: &Stack,
    plugin: &PluginConfig,
    signals: &StopSignals,
    work: impl Future<Output = Result<T, HostError>>,
) -> Result<T, OperationError> {
    tokio::select! {
        result = work => result.map_err(|error| load_error(stack, &[], vec![(plugin.name.clone(), error)])),
        () = signals.stop.cancelled() => Err(OperationError::Stopped),
    }
}
