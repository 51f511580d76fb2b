//! Errors of failed calls (docs/spec/provider-protocol.md#6).

use std::fmt::Display;

use pulumi_proto::property::PropertyMap;
use pulumi_proto::resource_id::ResourceId;

use super::check::CheckFailure;
use super::error_class::{ErrorClass, ErrorDetails};
use super::lost_reply::LostReply;
use super::message_limit::MessageLimit;
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
        /// True if the resource may have been changed: the status code is Unknown, Internal or DataLoss, or the call
        /// timed out.
        indeterminate: bool,
        /// Cause on the side of `sc`, such as a refused connection; `None` if there is none, as for an error that the
        /// provider returned.
        source: Option<Cause>,
        /// Class of the error, and what the provider has said about it; `None` if `sc` itself found the error, and its
        /// class is [`ErrorClass::Unexpected`].
        details: Option<Box<ErrorDetails>>,
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
    /// The reply is lost, cannot be decoded or violates the protocol. The call may have had an effect.
    #[error("{message}")]
    ReplyLost {
        /// The RPC.
        method: Method,
        /// Way in which the reply is lost.
        lost: LostReply,
        /// Description of the loss.
        message: String,
        /// Id of the resource, as far as the reply can be read.
        id: Option<ResourceId>,
        /// Cause of a lost connection.
        source: Option<Cause>,
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
    /// Returns the error of a reply that cannot be used.
    pub(crate) fn invalid_reply(method: Method, lost: LostReply, reason: impl Display) -> Self {
        let message = format!("the provider's reply to {method} is not valid: {reason}");
        Self::ReplyLost { method, lost, message, id: None, source: None }
    }

    /// Returns the error of a successful reply to Create without an id, outside a preview.
    pub fn created_without_id() -> Self {
        Self::invalid_reply(Method::Create, LostReply::NoId, "a created resource has no id")
    }

    /// Returns true if the resource may have been changed although its new state is unknown.
    pub fn is_indeterminate(&self) -> bool {
        match self {
            Self::Failed { indeterminate, .. } => *indeterminate,
            Self::PluginExited { is_sent, .. } => *is_sent,
            Self::ReplyLost { .. } => true,
            Self::Partial { .. } | Self::MissingConfig(_) | Self::InvalidInputs { .. } | Self::Unimplemented { .. } => {
                false
            }
        }
    }

    /// Returns the class and the details of the error. The details of Pulumi take precedence over those of google.rpc.
    pub fn details(&self) -> ErrorDetails {
        match self {
            Self::Failed { details: Some(details), .. } => (**details).clone(),
            Self::Failed { details: None, .. } | Self::Unimplemented { .. } => {
                ErrorDetails::new(ErrorClass::Unexpected)
            }
            Self::Partial { failure, .. } => {
                let details = failure.details.as_deref().cloned();
                let mut details = details.unwrap_or_else(|| ErrorDetails::new(ErrorClass::Unexpected));
                details.reasons = failure.reasons.iter().chain(&details.reasons).cloned().collect();
                details
            }
            Self::MissingConfig(_) => ErrorDetails::new(ErrorClass::BadInput),
            Self::InvalidInputs { failures, .. } => {
                ErrorDetails { violations: failures.clone(), ..ErrorDetails::new(ErrorClass::BadInput) }
            }
            Self::ReplyLost { lost: LostReply::ConnectionLost, .. } | Self::PluginExited { .. } => {
                ErrorDetails::new(ErrorClass::Unavailable)
            }
            Self::ReplyLost { .. } => ErrorDetails::new(ErrorClass::Unexpected),
        }
    }

    /// Returns the way in which the reply to a call of a method is lost. `None` for an error that the provider returned,
    /// for a request that was not sent, and for another method.
    pub fn lost_reply(&self, method: Method) -> Option<LostReply> {
        match self {
            Self::ReplyLost { method: called, lost, .. } => Some(*lost).filter(|_| *called == method),
            Self::PluginExited { method: called, is_sent, .. } => {
                Some(LostReply::PluginExited).filter(|_| *is_sent && *called == method)
            }
            // A created resource cannot be recorded without its id.
            Self::Partial { failure, .. } if method == Method::Create && failure.id.is_none() => Some(LostReply::NoId),
            Self::Partial { .. }
            | Self::Failed { .. }
            | Self::MissingConfig(_)
            | Self::InvalidInputs { .. }
            | Self::Unimplemented { .. } => None,
        }
    }

    /// Returns true if a message of the call is larger than a limit of the plugin or of `sc`.
    pub fn exceeds_message_limit(&self) -> bool {
        match self {
            Self::ReplyLost { lost, .. } => *lost == LostReply::TooLarge,
            Self::Failed { message, .. } => MessageLimit::in_message(message).is_some(),
            Self::Partial { .. }
            | Self::MissingConfig(_)
            | Self::InvalidInputs { .. }
            | Self::Unimplemented { .. }
            | Self::PluginExited { .. } => false,
        }
    }

    /// Returns the id of the resource in a lost reply, as far as the reply can be read.
    pub fn id_in_lost_reply(&self) -> Option<&ResourceId> {
        match self {
            Self::ReplyLost { id, .. } => id.as_ref(),
            _ => None,
        }
    }

    /// Adds the id of the resource to a lost reply, unless it has one.
    pub(crate) fn with_id(mut self, known: Option<ResourceId>) -> Self {
        if let Self::ReplyLost { id, .. } = &mut self {
            *id = id.take().or(known);
        }
        self
    }

    /// Changes the message of a failed call or a lost reply. Other errors stay as they are: they name their cause.
    #[must_use]
    pub fn map_message(mut self, map: impl FnOnce(&str) -> String) -> Self {
        if let Self::Failed { message, .. } | Self::ReplyLost { message, .. } = &mut self {
            *message = map(message);
        }
        self
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
    /// Class of the error, and what the status says beside ErrorResourceInitFailed; `None` if there is no status.
    pub details: Option<Box<ErrorDetails>>,
}
