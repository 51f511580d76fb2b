//! Errors of the start of a go-plugin server.

use std::borrow::Cow;
use std::io;
use std::time::Duration;

use super::super::{CallError, LastOutput, TlsError};
use super::HandshakeError;
use crate::error::Hint;

/// Reason why a go-plugin server did not start.
#[derive(Debug, thiserror::Error)]
pub enum GoPluginError {
    /// The system did not execute the program.
    #[error("the program cannot be executed")]
    NotExecuted(#[source] io::Error),
    /// The handshake line is refused.
    #[error("its handshake is refused: {refusal}{last_output}")]
    Handshake {
        /// Refused field.
        refusal: HandshakeError,
        /// Last lines on standard error.
        last_output: LastOutput,
    },
    /// The process ended without a handshake line.
    #[error("it ended without a handshake line ({status}){}{last_output}", colon(reason.as_deref()))]
    NoLine {
        /// Exit status in words.
        status: String,
        /// Last message of its log at level error.
        reason: Option<String>,
        /// Last lines of output.
        last_output: LastOutput,
    },
    /// The first lines of output are no handshake line.
    #[error("none of its first {} lines of output is a handshake line: {:?}", .0.len() + 1, .0.first())]
    NoHandshake(Vec<String>),
    /// The process printed no handshake line within the limit.
    #[error("it has not printed its handshake line within {} s (startTimeout){last_output}", limit.as_secs_f32())]
    TimedOut {
        /// Limit of the wait.
        limit: Duration,
        /// Last lines on standard error.
        last_output: LastOutput,
    },
    /// No folder for the sockets was created.
    #[error("cannot create a folder for its sockets: {0}")]
    SocketFolder(String),
    /// No encrypted connection is possible.
    #[error(transparent)]
    Tls(TlsError),
    /// The health check failed.
    #[error("its health check failed")]
    Unhealthy(#[source] CallError),
    /// No connection was possible, or the health check had no reply, within the limit.
    #[error("it has not replied to a health check within {} s", .0.as_secs_f32())]
    NotConnected(Duration),
}

impl Hint for GoPluginError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        let hint = match self {
            Self::Handshake { refusal: HandshakeError::Protocol(protocol), .. } if protocol == "netrpc" => {
                "rebuild the plugin with gRPC: set plugin.ServeConfig.GRPCServer"
            }
            Self::Handshake { refusal: HandshakeError::Version { .. }, .. } => {
                "set goPlugin.versions to the versions of the plugin"
            }
            Self::Handshake { refusal: HandshakeError::CertificateMissing, .. } => {
                "set `goPlugin: { tls: none }` if the connection may be plain text"
            }
            Self::NoLine { last_output, .. } if is_cookie_refused(last_output) => {
                "set goPlugin.cookieKey and goPlugin.cookieValue to the cookie of the plugin"
            }
            Self::NoHandshake(lines) if lines.first().is_some_and(|line| line.trim().parse::<u16>().is_ok()) => {
                "this looks like Pulumi's plugin protocol: remove `protocol: go-plugin`"
            }
            Self::TimedOut { .. } => "a larger startTimeout gives it more time",
            _ => return None,
        };
        Some(hint.into())
    }
}

/// Returns whether a plugin ended because it did not get its cookie.
pub(in crate::launch) fn is_cookie_refused(output: &LastOutput) -> bool {
    output.0.iter().any(|line| line.contains("This binary is a plugin"))
}

fn colon(reason: Option<&str>) -> String {
    reason.map(|reason| format!(": {reason}")).unwrap_or_default()
}
