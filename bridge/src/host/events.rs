//! Events of plugins while they are fetched and while they run.

use std::sync::Arc;

use crate::install::{FetchEvent, FetchEvents};
use crate::process::OutputStream;

/// Receiver of events of plugins. Called from several threads; must not block and cannot fail.
pub trait HostEvents: Send + Sync {
    /// Receives one event.
    fn emit(&self, event: HostEvent);
}

/// Event of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostEvent {
    /// A plugin was resolved, verified and started.
    Loaded {
        /// Name of the plugin.
        plugin: String,
        /// Version from GetPluginInfo; `None` if the plugin reports none.
        version: Option<String>,
        /// Sandbox of its process, and what the system cannot enforce of it, in words.
        sandbox: String,
    },
    /// A plugin is being fetched.
    Fetch {
        /// Name of the plugin.
        plugin: String,
        /// Progress of the fetch.
        event: FetchEvent,
    },
    /// Work on a plugin has begun or ended. It may take long.
    Working {
        /// Name of the plugin.
        plugin: String,
        /// The work.
        work: PluginWork,
        /// True if it has ended.
        ended: bool,
    },
    /// A plugin logged a message through the engine service.
    Log {
        /// Name of the plugin.
        plugin: String,
        /// Logged message.
        message: LogMessage,
    },
    /// A plugin wrote a line to standard output or standard error. The line is unstructured and meant for verbose
    /// display.
    Output {
        /// Name of the plugin.
        plugin: String,
        /// Stream of the line.
        stream: OutputStream,
        /// Line without its line end.
        line: String,
    },
    /// A process of another account connected to an endpoint of the host. The connection was closed. Emitted once for
    /// each host.
    ForeignConnection {
        /// User id of the account.
        uid: u32,
    },
    /// A connection to an endpoint of the host was accepted although the system does not tell which account opened it.
    /// Emitted once for each host.
    UnverifiedConnection,
    /// A connection to an endpoint of the host was closed because as many as possible are open. Emitted once for each
    /// host.
    TooManyConnections {
        /// Largest number of open connections.
        limit: usize,
    },
    /// Warning of the host about a plugin.
    Warning {
        /// Name of the plugin.
        plugin: String,
        /// Text of the warning.
        message: String,
    },
}

/// Request of `Engine.Log` (docs/spec/provider-protocol.md#2.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogMessage {
    /// Severity of the message. An error means that no further operations should start; the call still replies.
    pub severity: Severity,
    /// Text of the message.
    pub text: String,
    /// URN of the resource of the message; `None` if the message has none.
    pub urn: Option<String>,
    /// Id that the chunks of one message share; 0 for a message of a single chunk.
    pub stream_id: i32,
    /// True if the message is for the status line only and not for the final log.
    pub ephemeral: bool,
}

/// Severity of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Details for debugging.
    Debug,
    /// Information for the user.
    Info,
    /// Possible problem.
    Warning,
    /// Error.
    Error,
}

/// Work on a plugin that a run waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PluginWork {
    /// The package is found or fetched, and verified.
    Preparing,
    /// A process starts.
    Starting,
    /// A process is configured.
    Configuring,
}

/// Work on a plugin that is in progress. Emits its end when it is dropped.
pub(super) struct WorkInProgress<E: Fn(HostEvent)> {
    plugin: String,
    work: PluginWork,
    emit: E,
}

impl<E: Fn(HostEvent)> WorkInProgress<E> {
    /// Emits the begin of the work.
    pub(super) fn begin(plugin: &str, work: PluginWork, emit: E) -> Self {
        emit(HostEvent::Working { plugin: plugin.to_owned(), work, ended: false });
        Self { plugin: plugin.to_owned(), work, emit }
    }
}

impl<E: Fn(HostEvent)> Drop for WorkInProgress<E> {
    fn drop(&mut self) {
        (self.emit)(HostEvent::Working { plugin: std::mem::take(&mut self.plugin), work: self.work, ended: true });
    }
}

/// Emits the progress of the fetch of a plugin as host events.
pub(super) struct PluginEvents {
    pub(super) plugin: String,
    pub(super) events: Arc<dyn HostEvents>,
}

impl FetchEvents for PluginEvents {
    fn emit(&self, event: FetchEvent) {
        self.events.emit(HostEvent::Fetch { plugin: self.plugin.clone(), event });
    }
}
