//! Plugins that run already: the host attaches to them, and neither starts nor ends them
//! (docs/spec/provider-protocol.md#1.8, docs/spec/plugin-hosts.md#A.12).

use super::load_error::LoadError;
use crate::launch::PluginAddress;
use crate::plugin::{Dialect, PluginConfig};

/// Plugin that runs already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachedPlugin {
    /// Address at which it listens, without TLS.
    pub address: PluginAddress,
    /// Name of the setting that declares it, for messages.
    pub setting: &'static str,
    /// Version of the application protocol of a go-plugin server, if it is known.
    pub protocol_version: Option<u32>,
    /// True if a plugin that does not implement Attach is refused, as Pulumi refuses it.
    pub requires_attach: bool,
}

impl AttachedPlugin {
    /// Returns the message that a plugin is not started.
    pub(super) fn message(&self) -> String {
        let place = match &self.address {
            PluginAddress::Unix(path) => format!("socket {}", path.display()),
            PluginAddress::Tcp(address) => format!("port {}", address.port()),
        };
        format!("sc uses the process at {place} ({}), and neither starts nor ends it", self.setting)
    }

    /// Returns the error of a version of the application protocol that is not declared.
    pub(super) fn check_version(&self, plugin: &PluginConfig) -> Result<(), LoadError> {
        match (&plugin.dialect, self.protocol_version) {
            (Dialect::GoPlugin(settings), Some(version)) if !settings.versions.contains(&version) => {
                let declared = settings.versions.clone();
                Err(LoadError::AttachedVersion { setting: self.setting, version, declared })
            }
            _ => Ok(()),
        }
    }
}
