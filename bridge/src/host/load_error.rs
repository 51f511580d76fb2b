//! Reasons why a plugin is not loaded.

use std::io;

use super::HostError;
use super::parameterization::ParametersError;
use super::sandbox_hint::sandbox_hint;
use crate::error::{Hint, chain};
use crate::install::InstallError;
use crate::launch::LaunchError;
use crate::message_text::MessageText;
use crate::plugin::PluginValueError;
use crate::plugin::{PluginConfig, PolicyRefusal};
use crate::provider::ProviderError;

/// Reason why a plugin is not loaded.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    #[error(transparent)]
    Policy(PolicyRefusal),
    #[error("failed to resolve plugin binary")]
    Resolve(#[source] InstallError),
    #[error("failed to connect to plugin: cannot start the engine service")]
    Listen(#[source] io::Error),
    #[error("failed to connect to plugin: cannot open the socket for registrations")]
    ListenForRegistrations(#[source] io::Error),
    #[error("failed to connect to plugin")]
    Launch(#[source] LaunchError),
    #[error("failed to connect to plugin")]
    Handshake(#[source] ProviderError),
    #[error("failed to attach to the process that {setting} names")]
    NotAttached {
        setting: &'static str,
        #[source]
        source: ProviderError,
    },
    #[error("failed to attach to the process that {setting} names: it does not implement Attach")]
    WithoutAttach { setting: &'static str },
    #[error("{setting} names protocol version {version}, but goPlugin.versions declares {declared:?}")]
    AttachedVersion { setting: &'static str, version: u32, declared: Vec<u32> },
    #[error(transparent)]
    Parameters(ParametersError),
    #[error("its parameters name no Terraform provider")]
    TerraformParameters(#[source] PluginValueError),
}

impl Hint for LoadError {
    fn hint(&self) -> Option<MessageText> {
        match self {
            Self::Policy(refusal) => refusal.hint(),
            Self::Resolve(error) => error.hint(),
            Self::Launch(error) => error.hint(),
            Self::Parameters(error) => error.hint(),
            Self::TerraformParameters(_) => Some(
                "write `parameters: [NAMESPACE/NAME, VERSION]`; a provider on this machine begins with `./` or `/`"
                    .into(),
            ),
            Self::WithoutAttach { .. } => {
                Some("name the process in SC_REATTACH_PLUGINS, which does not need Attach".into())
            }
            Self::NotAttached { setting, .. } => Some(
                format!("start the plugin at that address, or unset {setting}, so that sc starts the plugin").into(),
            ),
            Self::AttachedVersion { .. } => Some("set goPlugin.versions to the versions of the plugin".into()),
            Self::Listen(_) | Self::ListenForRegistrations(_) | Self::Handshake(_) => None,
        }
    }
}

pub(super) fn failed_to_load(plugin: &PluginConfig, error: LoadError) -> HostError {
    let failed = HostError::new(format_args!("failed to load plugin {}", plugin.name));
    let sandbox = || sandbox_hint(&plugin.sandbox, &chain(&error)).map(MessageText::from);
    let failed = match error.hint().or_else(sandbox) {
        Some(hint) => failed.with_hint(hint),
        None => failed,
    };
    failed.with_source(error)
}
