//! Plugins that another program starts, such as a debugger, and that register here.

use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::registrations::Expectation;
use super::{PluginRegistrations, REFUSED_GRACE, RegisterError, check_claim, expected, variables};
use crate::launch::{LastOutput, PluginAddress};
use crate::plugin::PluginConfig;
use crate::process::{OutputSink, exit_of_other};

/// Plugin that another program starts. Dropping it ends its right to register.
pub struct AwaitedPlugin {
    plugin: PluginConfig,
    expectation: Expectation,
    environment: [(&'static str, OsString); 3],
}

/// Plugin that has registered and that this host has not started. Dropping it ends the registration, not the process.
pub struct RegisteredPlugin {
    /// Address at which it listens.
    pub address: PluginAddress,
    /// Number of the process that has registered, if the system shows it.
    pub process: Option<i32>,
    /// Signal that the plugin has announced its end.
    pub deregistered: CancellationToken,
    _expectation: Expectation,
}

impl RegisteredPlugin {
    /// Waits until the process that has registered has exited. Never returns where the system does not show it.
    pub async fn exited(&self) {
        exit_of(self.process).await;
    }
}

impl AwaitedPlugin {
    /// Expects the registration of a plugin. `sink` receives messages about repeated and late registrations.
    ///
    /// # Errors
    /// [`RegisterError::Token`].
    pub fn expect(
        registrations: &PluginRegistrations,
        plugin: &PluginConfig,
        sink: &Arc<dyn OutputSink>,
        engine_address: &str,
    ) -> Result<Self, RegisterError> {
        let expectation = registrations.expect(expected(plugin, sink)).map_err(RegisterError::Token)?;
        let environment = variables(registrations.socket(), expectation.token(), engine_address);
        Ok(Self { plugin: plugin.clone(), expectation, environment })
    }

    /// Returns the variables of the process: names and values.
    pub fn environment(&self) -> &[(&'static str, OsString)] {
        &self.environment
    }

    /// Waits until a process has registered.
    ///
    /// # Errors
    /// [`RegisterError::Refused`]: the first registration is refused. The token is used up then.
    ///
    /// # Cancellation
    /// The right to register ends.
    pub async fn registered(self) -> Result<RegisteredPlugin, RegisterError> {
        let Self { plugin, mut expectation, .. } = self;
        let claim = expectation.claim().await;
        match check_claim(&plugin, None, &expectation, &claim, None).await {
            Ok(address) => {
                let process = claim.process;
                let deregistered = expectation.accept(claim).map_err(RegisterError::Token)?;
                Ok(RegisteredPlugin { address, process, deregistered, _expectation: expectation })
            }
            Err(reason) => {
                let process = claim.process;
                claim.refuse(reason.clone());
                // Another task sends the reply, and this program may end after this error. A plugin that has exited has it.
                tokio::time::timeout(REFUSED_GRACE, exit_of(process)).await.ok();
                Err(RegisterError::Refused { reason, last_output: LastOutput::default() })
            }
        }
    }
}

async fn exit_of(process: Option<i32>) {
    match process {
        Some(process) => exit_of_other(process).await,
        None => std::future::pending().await,
    }
}

impl fmt::Debug for AwaitedPlugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AwaitedPlugin").field("plugin", &self.plugin.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for RegisteredPlugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisteredPlugin").field("address", &self.address).finish_non_exhaustive()
    }
}
