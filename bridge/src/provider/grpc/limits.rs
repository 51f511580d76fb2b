//! Limits on the waits for a plugin.

use std::time::Duration;

/// Limits on the duration of calls. Calls that read or change resources have no limit: cloud APIs may take hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Limit for connecting and Handshake together.
    pub handshake: Duration,
    /// Limit for GetPluginInfo.
    pub plugin_info: Duration,
    /// Limit for CheckConfig and for DiffConfig.
    pub check_config: Duration,
    /// Limit for each of Configure, Initialize and HealthCheck.
    pub configure: Duration,
    /// Limit for Cancel and for Cleanup.
    pub cancel: Duration,
    /// Time between SIGINT and SIGKILL.
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
