//! Starts the process of a verified package, reads its address, and makes gRPC calls over a connection to it. One
//! file or folder for each start protocol.
//!
//! Input: a [`LaunchSpec`]. Output: the process and a connection to the address it printed, or an error that quotes its
//! output. Excluded: the procedures and their replies (`provider` calls the Handshake RPC), configuration, decisions
//! about when a plugin is started.

mod broker;
mod call;
mod connection;
mod diagnosis;
mod dialects;
mod ending;
mod environment;
mod error;
mod go_plugin;
mod last_output;
mod pulumi;
mod register;
mod sandbox;
mod socket;
mod socket_folder;
mod start;
mod stream_call;
mod tls;

use std::any::Any;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::install::VerifiedPackage;
use crate::plugin::PluginConfig;
use crate::process::{OutputSink, Process, ProcessSandbox, Spawner};

pub use broker::{Broker, BrokerError};
pub use call::{CallError, Loss, MAX_MESSAGE, Procedure, ReplyStream};
pub(crate) use connection::BoxedStream;
pub use connection::Connection;
pub use dialects::launch;
pub use ending::{Ending, Interrupt};
pub use environment::{PluginEnvironment, plugin_environment, socket_folders};
pub use error::LaunchError;
pub use go_plugin::{GoPluginError, HandshakeError};
pub use last_output::LastOutput;
pub use register::{AwaitedPlugin, PluginRegistrations, RegisterError, RegisteredPlugin, RegistrationError};
pub use sandbox::{describe_sandbox, process_sandbox};
pub use socket::{PluginAddress, attached_connection, plugin_connection};
pub use socket_folder::{create_socket_folder, is_usable_socket_path};
pub use stream_call::{RequestStream, SendError, StreamedReplies};
pub use tls::{EncryptedStream, HostIdentity, MutualTls, TlsError};

/// Package to start, with the settings of its process.
#[derive(Clone)]
pub struct LaunchSpec<'a> {
    /// Declaration of the plugin.
    pub plugin: &'a PluginConfig,
    /// Package of the plugin.
    pub package: &'a VerifiedPackage,
    /// Working directory: the root of the repository. Relative paths of assets are resolved against it.
    pub directory: PathBuf,
    /// Complete environment of the process, see [`plugin_environment`].
    pub environment: Vec<(OsString, OsString)>,
    /// Sandbox of the process, see [`process_sandbox`]. The files of the package and the repository are added.
    pub sandbox: ProcessSandbox,
    /// Limit on the wait for the line with the address. Interpreters and compilers may need minutes.
    pub start_timeout: Duration,
    /// Folders in which a private folder for sockets may be created, in the order of preference, see [`socket_folders`].
    pub socket_folders: Vec<PathBuf>,
    /// Host of registrations, for the dialect that needs one.
    pub registrations: Option<PluginRegistrations>,
    /// Sink of the output lines.
    pub sink: Arc<dyn OutputSink>,
    /// Spawner that starts the process.
    pub spawner: &'a Spawner,
}

/// Plugin that has printed its address. Handshake is not called yet.
pub struct Launched {
    /// Process of the plugin. Dropping it kills the plugin.
    pub process: Arc<Process>,
    /// Address at which it listens.
    pub address: PluginAddress,
    /// Version of the application protocol that a go-plugin server has chosen.
    pub protocol_version: Option<u32>,
    /// Connection to the plugin. Opened on first use, and again after it was lost, but never once the
    /// process has exited.
    pub connection: Connection,
    /// Way to end the process.
    pub ending: Arc<dyn Ending>,
    /// Broker of a go-plugin server, held open to the end of the process: its stream is the first one. The plugin may not
    /// serve it.
    pub broker: Option<Broker>,
    /// Value that must live as long as the process, such as the folder of its socket.
    pub kept: Option<Box<dyn Any + Send + Sync>>,
    /// Signal that the plugin has announced its end: it is not to be used any more.
    pub deregistered: CancellationToken,
}
