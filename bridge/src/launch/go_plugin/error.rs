//! Errors of the start of a go-plugin server.

use std::io;
use std::time::Duration;

use super::super::{CallError, LastOutput, TlsError};
use super::HandshakeError;
use crate::error::Hint;
use crate::message_text::MessageText;

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
    #[error("it ended without a handshake line ({status}){last_output}")]
    NoLine {
        /// Exit status in words.
        status: String,
        /// Last lines of output.
        last_output: LastOutput,
    },
    /// The first lines of output are no handshake line.
    #[error("none of its first {} lines of output is a handshake line: {:?}", .0.len() + 1, .0.first())]
    NoHandshake(Vec<String>),
    /// The process printed no handshake line within the limit.
    #[error("it has not printed its handshake line within {} s (startTimeout){}", limit.as_secs_f32(), if printed.0.is_empty() { last_output } else { printed })]
    TimedOut {
        /// Limit of the wait.
        limit: Duration,
        /// Lines on standard output.
        printed: LastOutput,
        /// Last lines on standard error.
        last_output: LastOutput,
    },
    /// A line on standard output has no line end within the limit.
    #[error("it has printed {line:?} without a line end, and no handshake line, within {} s (startTimeout)", limit.as_secs_f32())]
    NoLineEnd {
        /// Limit of the wait.
        limit: Duration,
        /// Beginning of the line.
        line: String,
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
    fn hint(&self) -> Option<MessageText> {
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
            Self::NoLineEnd { line, .. } if line.trim().parse::<u16>().is_ok() => {
                "this looks like Pulumi's plugin protocol: remove `protocol: go-plugin`; the plugin also has to end the line with its \
                 port by a line end"
            }
            Self::NoLineEnd { .. } => "the handshake line has to be a line of its own, with a line end",
            Self::TimedOut { printed, .. } if printed.has_port() => {
                "this looks like Pulumi's plugin protocol: remove `protocol: go-plugin`"
            }
            Self::TimedOut { printed, .. } if printed.0.iter().any(|line| line.contains('|')) => {
                "text that the plugin prints before its handshake line must end with a line break"
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

#[cfg(test)]
mod tests {
    use super::*;

    fn timed_out(printed: &[&str]) -> GoPluginError {
        let printed = LastOutput(printed.iter().map(|line| (*line).to_owned()).collect());
        let last_output = LastOutput(vec!["compiling".to_owned()]);
        GoPluginError::TimedOut { limit: Duration::from_secs(2), printed, last_output }
    }

    fn unended(line: &str) -> GoPluginError {
        GoPluginError::NoLineEnd { limit: Duration::from_secs(2), line: line.to_owned() }
    }

    fn refused(refusal: HandshakeError) -> GoPluginError {
        GoPluginError::Handshake { refusal, last_output: LastOutput::default() }
    }

    #[test]
    fn hint_names_the_next_step() {
        let version = HandshakeError::Version { found: 3, declared: "1".to_owned() };
        let cookie =
            LastOutput(vec!["This binary is a plugin. These are not meant to be executed directly.".to_owned()]);
        for (error, expected) in [
            (timed_out(&[]), "a larger startTimeout"),
            (timed_out(&["ready1|1|unix|/tmp/x|grpc"]), "must end with a line break"),
            (timed_out(&["ready"]), "a larger startTimeout"),
            (timed_out(&["41233"]), "remove `protocol: go-plugin`"),
            (unended("41233"), "remove `protocol: go-plugin`"),
            (unended("1|1|unix|/tmp/x|grpc"), "with a line end"),
            (refused(HandshakeError::Protocol("netrpc".to_owned())), "rebuild the plugin with gRPC"),
            (refused(version), "goPlugin.versions"),
            (refused(HandshakeError::CertificateMissing), "tls: none"),
            (GoPluginError::NoLine { status: "exit status 1".to_owned(), last_output: cookie }, "goPlugin.cookieKey"),
            (GoPluginError::NoHandshake(vec!["41233".to_owned()]), "remove `protocol: go-plugin`"),
        ] {
            let hint = error.hint().map(MessageText::into_string).unwrap_or_default();
            assert!(hint.contains(expected), "{error}: {hint}");
        }
    }

    #[test]
    fn expired_start_quotes_what_the_plugin_printed() {
        assert!(timed_out(&["ready1|1|unix"]).to_string().ends_with("Its last output:\n  ready1|1|unix"));
        assert!(timed_out(&[]).to_string().ends_with("Its last output:\n  compiling"));
    }
}
