//! Starts the process of a verified package, reads its port, and makes gRPC calls over a connection to that port. One
//! file for each start protocol.
//!
//! Input: a [`LaunchSpec`]. Output: the process and a connection to the port it printed, or an error that quotes its
//! output. Excluded: the procedures and their replies (`provider` calls the Handshake RPC), configuration, decisions
//! about when a plugin is started.

mod broker;
mod call;
mod connection;
mod diagnosis;
mod environment;
mod port_line;
pub mod pulumi;
mod socket;
mod stream_call;
mod tls;

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Hint, cut};
use crate::install::VerifiedPackage;
use crate::process::{OutputSink, Process, SpawnError, Spawner};

pub use broker::{Broker, BrokerError};
pub use call::{CallError, Loss, MAX_MESSAGE, Procedure, ReplyStream};
pub(crate) use connection::BoxedStream;
pub use connection::Connection;
pub use environment::{PluginEnvironment, plugin_environment};
pub use socket::{PluginAddress, plugin_connection};
pub use stream_call::{RequestStream, SendError, StreamedReplies};
pub use tls::{EncryptedStream, HostIdentity, MutualTls, TlsError};

/// Package to start, with the settings of its process.
pub struct LaunchSpec<'a> {
    /// Package of the plugin.
    pub package: &'a VerifiedPackage,
    /// Working directory: the root of the repository. Relative paths of assets are resolved against it.
    pub directory: PathBuf,
    /// Complete environment of the process, see [`plugin_environment`].
    pub environment: Vec<(OsString, OsString)>,
    /// Limit on the wait for the port line. Interpreters and compilers may need minutes.
    pub start_timeout: Duration,
    /// Sink of the output lines.
    pub sink: Arc<dyn OutputSink>,
    /// Spawner that starts the process.
    pub spawner: &'a Spawner,
}

/// Plugin that has printed its port. Handshake is not called yet.
#[derive(Debug)]
pub struct Launched {
    /// Process of the plugin. Dropping it kills the plugin.
    pub process: Arc<Process>,
    /// Connection to the plugin. Opened on first use, and again after it was lost, but never once the
    /// process has exited.
    pub connection: Connection,
}

/// Reason why a plugin did not start.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The operating system cannot execute the program.
    #[error("cannot run {}{}", program.display(), in_parentheses(diagnosis.as_deref()))]
    ExecFailed {
        /// Path of the package, or of the interpreter that starts the plugin.
        program: PathBuf,
        /// Reason found in the first bytes and the mode of the program, with advice.
        diagnosis: Option<String>,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// No process was created.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The first line of output is not a port.
    #[error("expected a port on the first line of its output, got {:?}{last_output}", cut(line, 200))]
    NotAPort {
        /// First line of output.
        line: String,
        /// Other lines of output.
        last_output: LastOutput,
    },
    /// The process exited before it printed a line.
    #[error("it exited before it printed its port ({status}){last_output}")]
    Exited {
        /// Exit status in words.
        status: String,
        /// Last lines of output.
        last_output: LastOutput,
    },
    /// The process closed its standard output and still runs.
    #[error("it closed its output before it printed its port{last_output}")]
    OutputClosed {
        /// Last lines of output.
        last_output: LastOutput,
    },
    /// The process printed no line within the limit.
    #[error("it has not printed its port within {} s (startTimeout){last_output}", limit.as_secs_f32())]
    TimedOut {
        /// Limit of the wait.
        limit: Duration,
        /// Last lines on standard error.
        last_output: LastOutput,
    },
}

impl Hint for LaunchError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        let hint = match self {
            Self::TimedOut { .. } => "a larger startTimeout gives it more time",
            // `1|5|unix|/tmp/…|grpc`
            Self::NotAPort { line, .. } if line.split('|').count() >= 4 => {
                "this looks like HashiCorp's go-plugin protocol; sc supports only Pulumi's plugin protocol"
            }
            Self::NotAPort { .. } => "the first line of output of a Pulumi provider must be its port and nothing else",
            // The messages of these errors name the action.
            Self::ExecFailed { .. } | Self::Spawn(_) | Self::Exited { .. } | Self::OutputClosed { .. } => return None,
        };
        Some(hint.into())
    }
}

fn in_parentheses(text: Option<&str>) -> String {
    text.map(|text| format!(" ({text})")).unwrap_or_default()
}

/// Last lines that a plugin wrote. Displays as the end of a message; displays nothing if it is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastOutput(pub Vec<String>);

impl fmt::Display for LastOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.is_empty() {
            write!(f, ". Its last output:\n  {}", self.0.join("\n  "))?;
        }
        Ok(())
    }
}
