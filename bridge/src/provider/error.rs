//! Errors of failed calls (docs/spec/provider-protocol.md#6).

use pulumi_proto::property::PropertyMap;
use pulumi_proto::resource_id::ResourceId;

use super::check::CheckFailure;
use super::method::Method;
use crate::error::Cause;

/// Reason why a call to a provider failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ProviderError {
    /// The provider returned an error.
    #[error("{message}")]
    Failed {
        /// The RPC.
        method: Method,
        /// Message of the provider, including the cause it returned.
        message: String,
        /// True if the resource may have been changed: the status code is Unknown, Internal or DataLoss, the connection
        /// was lost, or the call timed out.
        indeterminate: bool,
        /// Cause on the side of `sc`, such as a lost connection; `None` if there is none, as for an error that the
        /// provider returned.
        source: Option<Cause>,
    },
    /// The resource exists, but its initialization failed (ErrorResourceInitFailed). Create, Update and Read only.
    #[error("{message}")]
    Partial {
        /// Message of the provider.
        message: String,
        /// State of the resource.
        failure: Box<PartialFailure>,
    },
    /// Configuration keys are missing (ConfigureErrorMissingKeys): name and description of each.
    #[error("missing configuration: {}", .0.iter().map(|(name, about)| format!("{name} ({about})")).collect::<Vec<_>>().join(", "))]
    MissingConfig(Vec<(String, String)>),
    /// Inputs of Construct or Call are invalid (InputPropertiesError).
    #[error("{message}")]
    InvalidInputs {
        /// Message of the provider.
        message: String,
        /// Invalid inputs.
        failures: Vec<CheckFailure>,
    },
    /// The provider does not implement the call.
    #[error("the provider does not implement {method}")]
    Unimplemented {
        /// The RPC.
        method: Method,
    },
    /// The reply cannot be decoded or violates the protocol.
    #[error("the provider's reply to {method} is not valid: {reason}")]
    Protocol {
        /// The RPC.
        method: Method,
        /// Violation of the protocol.
        reason: String,
    },
    /// The process of the plugin exited. All calls in flight and all later calls fail with this error.
    #[error(
        "the plugin {plugin} exited {} {method} ({status}){}",
        if *.is_sent { "during" } else { "before" },
        output_suffix(.last_output)
    )]
    PluginExited {
        /// Name of the plugin.
        plugin: String,
        /// The RPC.
        method: Method,
        /// True if the request may have been sent before the process exited.
        is_sent: bool,
        /// Exit status in words.
        status: String,
        /// Last lines of output.
        last_output: Vec<String>,
    },
}

fn output_suffix(lines: &[String]) -> String {
    if lines.is_empty() { String::new() } else { format!(". Its last output:\n  {}", lines.join("\n  ")) }
}

impl ProviderError {
    /// Returns true if the resource may have been changed although its new state is unknown.
    pub fn is_indeterminate(&self) -> bool {
        match self {
            Self::Failed { indeterminate, .. } => *indeterminate,
            Self::PluginExited { is_sent, .. } => *is_sent,
            Self::Protocol { .. } => true,
            Self::Partial { .. } | Self::MissingConfig(_) | Self::InvalidInputs { .. } | Self::Unimplemented { .. } => {
                false
            }
        }
    }
}

/// State of a resource that exists but whose initialization failed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartialFailure {
    /// Id of the resource; `None` if the provider returned none.
    pub id: Option<ResourceId>,
    /// Outputs of the resource.
    pub outputs: PropertyMap,
    /// Inputs of the resource; only Read returns them.
    pub inputs: Option<PropertyMap>,
    /// Reasons of the failed initialization.
    pub reasons: Vec<String>,
    /// True if the resource must be refreshed before each update.
    pub refresh_before_update: bool,
}
