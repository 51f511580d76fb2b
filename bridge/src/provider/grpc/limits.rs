//! How long is waited for a plugin.

use std::time::Duration;

/// How long calls may take that ought to be quick. Calls that change or read resources have no limit: clouds are slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// For connecting and Handshake together.
    pub handshake: Duration,
    /// For GetPluginInfo.
    pub plugin_info: Duration,
    /// For CheckConfig and DiffConfig.
    pub check_config: Duration,
    /// For Configure, and for each of Initialize and HealthCheck.
    pub configure: Duration,
    /// For Cancel, and for Cleanup.
    pub cancel: Duration,
    /// Between SIGINT and SIGKILL.
    pub exit: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(10),
            plugin_info: Duration::from_secs(10),
            check_config: Duration::from_secs(120),
            configure: Duration::from_secs(300),
            cancel: Duration::from_secs(5),
            exit: Duration::from_secs(5),
        }
    }
}
