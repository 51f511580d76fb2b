//! What a failed call means (provider protocol, section 6).

use pulumi_proto::property::PropertyMap;
use pulumi_proto::resource_id::ResourceId;

use super::check::CheckFailure;
use super::method::Method;
use crate::error::Cause;

/// Why a call to a provider failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ProviderError {
    /// The provider refused or failed, in its own words.
    #[error("{message}")]
    Failed {
        /// The RPC.
        method: Method,
        /// What the provider said, the cause it gave included.
        message: String,
        /// Whether the resource may have been touched: codes Unknown, Internal and DataLoss say so, and so does the
        /// death of the plugin.
        indeterminate: bool,
        /// The cause on this side, such as a connection that broke off; `None` where the provider itself failed.
        source: Option<Cause>,
    },
    /// The resource exists, but did not come up (ErrorResourceInitFailed). Create, Update and Read only.
    #[error("{message}")]
    Partial {
        /// What the provider said.
        message: String,
        /// What is known of the resource.
        failure: Box<PartialFailure>,
    },
    /// Configuration keys are missing (ConfigureErrorMissingKeys): name and description of each.
    #[error("missing configuration: {}", .0.iter().map(|(name, about)| format!("{name} ({about})")).collect::<Vec<_>>().join(", "))]
    MissingConfig(Vec<(String, String)>),
    /// Inputs of a component or a method call were refused (InputPropertiesError).
    #[error("{message}")]
    InvalidInputs {
        /// What the provider said.
        message: String,
        /// Which inputs, and why.
        failures: Vec<CheckFailure>,
    },
    /// The provider does not implement the call.
    #[error("the provider does not implement {method}")]
    Unimplemented {
        /// The RPC.
        method: Method,
    },
    /// The answer cannot be read or breaks the protocol.
    #[error("the provider's answer to {method} is not valid: {reason}")]
    Protocol {
        /// The RPC.
        method: Method,
        /// What is wrong with it.
        reason: String,
    },
    /// The plugin's process ended; every call in flight and every later one fails with this.
    #[error(
        "the plugin {plugin} ended {} {method} ({status}){}",
        if *.reached { "during" } else { "before" },
        tail_note(.stderr)
    )]
    Died {
        /// Name of the plugin.
        plugin: String,
        /// The RPC.
        method: Method,
        /// Whether the call may have reached it.
        reached: bool,
        /// How it ended, in words.
        status: String,
        /// The last lines it wrote.
        stderr: Vec<String>,
    },
}

fn tail_note(lines: &[String]) -> String {
    if lines.is_empty() { String::new() } else { format!(". Its last words:\n  {}", lines.join("\n  ")) }
}

impl ProviderError {
    /// Whether the resource may have been touched although no state of it is known.
    pub fn is_indeterminate(&self) -> bool {
        match self {
            Self::Failed { indeterminate, .. } => *indeterminate,
            Self::Died { reached, .. } => *reached,
            Self::Protocol { .. } => true,
            Self::Partial { .. } | Self::MissingConfig(_) | Self::InvalidInputs { .. } | Self::Unimplemented { .. } => {
                false
            }
        }
    }
}

/// What a provider knows of a resource that exists but did not come up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartialFailure {
    /// Id of the resource; `None` if the provider gave none.
    pub id: Option<ResourceId>,
    /// Its outputs.
    pub outputs: PropertyMap,
    /// Its inputs, where the provider says them (Read).
    pub inputs: Option<PropertyMap>,
    /// Why it did not come up.
    pub reasons: Vec<String>,
    /// The resource wants to be read before each update.
    pub refresh_before_update: bool,
}
