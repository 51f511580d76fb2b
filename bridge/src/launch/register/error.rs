//! Errors of registrations, and of the start of a plugin that registers itself.

use std::path::PathBuf;
use std::time::Duration;

use super::super::LastOutput;
use crate::error::Hint;
use crate::message_text::MessageText;

/// Reason why a registration is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistrationError {
    /// The host has issued no such token.
    #[error("the token is not one that this run of sc has issued")]
    UnknownToken,
    /// The token was used by a registration that was refused, or whose plugin has ended.
    #[error("the token of the plugin {plugin} has been used: it is valid for one registration")]
    UsedToken {
        /// Name of the plugin.
        plugin: String,
    },
    /// The plugin is registered.
    #[error("the plugin {plugin} is registered already: a process registers once")]
    SecondRegistration {
        /// Name of the plugin.
        plugin: String,
    },
    /// The start was given up before the registration.
    #[error("the registration of the plugin {plugin} is too late: sc has ended this start of it")]
    TooLate {
        /// Name of the plugin.
        plugin: String,
    },
    /// The token was issued to another plugin.
    #[error("the token was issued to the plugin {plugin}, which serves the package {expected:?}, not {found:?}")]
    OtherPlugin {
        /// Name of the plugin that has the token.
        plugin: String,
        /// Package of that plugin.
        expected: String,
        /// Package that was registered, which another plugin serves.
        found: String,
    },
    /// The registered package is not the declared one.
    #[error("it registers the package {found:?}, but {expected:?} is declared")]
    OtherName {
        /// Declared package.
        expected: String,
        /// Package that was registered.
        found: String,
    },
    /// The registered version is no version.
    #[error("it registers the version {0:?}, which is no version")]
    VersionSyntax(String),
    /// The registered version is not the declared one.
    #[error("it registers the version {found}, but {expected} is declared")]
    OtherVersion {
        /// Declared version.
        expected: String,
        /// Version that was registered.
        found: String,
    },
    /// The plugin supports no version of the protocol that the host supports.
    #[error("it supports {}, but sc supports version {SUPPORTED_VERSION} of the protocol", offered(.0))]
    ProtocolVersion(Vec<String>),
    /// The registration has no address.
    #[error("it registers neither a port nor a Unix socket")]
    NoAddress,
    /// The port is not a number from 1 to 65535.
    #[error("it registers the port {0}, which is not a number from 1 to 65535")]
    InvalidPort(u32),
    /// No socket listens at the port.
    #[error("no process listens at port {0} of 127.0.0.1")]
    NotListening(u16),
    /// A socket listens at the port of the IPv6 loopback interface only.
    #[error("no process listens at port {0} of 127.0.0.1, but one listens at [::1]:{0}")]
    ListensAtIpv6(u16),
    /// A process of another account listens at the port.
    #[error("port {port} belongs to the user with the id {uid}, not to the user of sc")]
    ForeignPort {
        /// Port.
        port: u16,
        /// User id of the account.
        uid: u32,
    },
    /// A process that does not belong to the plugin listens at the port.
    #[error("port {0} does not belong to the plugin: another process listens there")]
    OtherProcess(u16),
    /// The path of the socket is not one.
    #[error("it registers the socket {0:?}, which is not an absolute path of less than 108 bytes")]
    InvalidPath(String),
    /// The path leads to no socket.
    #[error("{} is not a socket", .0.display())]
    NoSocket(PathBuf),
    /// No process listens at the socket.
    #[error("no process listens at the socket {}", .0.display())]
    ClosedSocket(PathBuf),
    /// A process that does not belong to the plugin listens at the socket.
    #[error("the socket {} does not belong to the plugin: another process listens there", .0.display())]
    OtherSocket(PathBuf),
    /// The socket belongs to another account.
    #[error("the socket {} belongs to the user with the id {uid}, not to the user of sc", path.display())]
    ForeignSocket {
        /// Path of the socket.
        path: PathBuf,
        /// User id of the account.
        uid: u32,
    },
}

fn offered(versions: &[String]) -> String {
    match versions {
        [] => "no version".to_owned(),
        versions => format!("version {}", versions.join(", ")),
    }
}

impl Hint for RegistrationError {
    fn hint(&self) -> Option<MessageText> {
        let hint = match self {
            Self::OtherName { found, .. } => {
                let hint = format!(
                    "write `package: {found}` below the name of the plugin, or start the program of the declared package"
                );
                return Some(hint.into());
            }
            Self::OtherPlugin { .. } | Self::UnknownToken | Self::UsedToken { .. } => {
                "each process registers with the SC_PLUGIN_TOKEN of its own environment, once"
            }
            Self::OtherVersion { .. } => "declare the version of the plugin in `source`, or build the declared one",
            Self::ProtocolVersion(_) => "a plugin for this version of sc supports protocol version 1.0",
            Self::NoAddress | Self::InvalidPort(_) | Self::InvalidPath(_) | Self::ListensAtIpv6(_) => {
                "a plugin registers a port of 127.0.0.1 or the absolute path of a Unix socket at which it listens"
            }
            Self::NotListening(_) | Self::NoSocket(_) | Self::ClosedSocket(_) => {
                "a plugin listens at its address before it registers"
            }
            Self::ForeignPort { .. } | Self::OtherProcess(_) | Self::ForeignSocket { .. } | Self::OtherSocket(_) => {
                "the process that registers, or one of its process group, listens at the address, under the account of sc"
            }
            Self::SecondRegistration { .. } | Self::TooLate { .. } | Self::VersionSyntax(_) => return None,
        };
        Some(hint.into())
    }
}

/// Reason why a plugin that registers itself did not start.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// The host has no socket for registrations.
    #[error("this host accepts no registrations of plugins")]
    NoHost,
    /// No token was created.
    #[error("cannot create a token for its registration")]
    Token(#[source] getrandom::Error),
    /// The registration is refused.
    #[error("its registration is refused: {reason}{last_output}")]
    Refused {
        /// Reason.
        reason: RegistrationError,
        /// Last lines of output.
        last_output: LastOutput,
    },
    /// The process exited before it registered.
    #[error("it exited before it registered ({status}){last_output}")]
    Exited {
        /// Exit status in words.
        status: String,
        /// Last lines of output.
        last_output: LastOutput,
    },
    /// The process has not registered, at any of its starts.
    #[error("it has not registered, {}{last_output}", after(*.attempts, *.limit))]
    TimedOut {
        /// Number of starts.
        attempts: u32,
        /// Limit on one start.
        limit: Duration,
        /// Last lines of output of the last start.
        last_output: LastOutput,
    },
}

fn after(attempts: u32, limit: Duration) -> String {
    let limit = limit.as_secs_f32();
    match attempts {
        1 => format!("within {limit} s"),
        attempts => format!("in {attempts} starts of {limit} s each"),
    }
}

impl Hint for RegisterError {
    fn hint(&self) -> Option<MessageText> {
        match self {
            Self::Refused { reason, .. } => reason.hint(),
            // HTTP/2 refuses the path of the socket, which some libraries of gRPC send as authority.
            Self::Exited { last_output, .. } | Self::TimedOut { last_output, .. }
                if last_output.contains("PROTOCOL_ERROR") =>
            {
                Some("set the authority of the call to `localhost`: the library sends the path of the socket instead".into())
            }
            Self::TimedOut { last_output, .. } if last_output.has_port() => {
                Some("it has printed a port: if this is Pulumi's plugin protocol, remove `protocol: register`".into())
            }
            Self::TimedOut { .. } => Some(
                "a plugin with `protocol: register` calls Register at the socket SC_PLUGIN_HOST; a larger startTimeout gives \
                 it more time"
                    .into(),
            ),
            Self::NoHost | Self::Token(_) | Self::Exited { .. } => None,
        }
    }
}

/// Supported version: plain-text gRPC, `pulumirpc.ResourceProvider`.
pub(super) const SUPPORTED_VERSION: &str = "1.0";
