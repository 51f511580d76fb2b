//! What plugins say while they run, as values.

use crate::install::FetchEvent;
use crate::process::OutputStream;

/// Takes what plugins say. May not fail, block or steer; is called from many threads.
pub trait HostEvents: Send + Sync {
    /// Takes one event.
    fn emit(&self, event: HostEvent);
}

/// Something a plugin said, or that the host noticed about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostEvent {
    /// A plugin was resolved, verified, started, and said its version, if it has one.
    Loaded {
        /// Name of the plugin.
        plugin: String,
        /// What GetPluginInfo answered.
        version: Option<String>,
    },
    /// A plugin is being fetched.
    Fetch {
        /// Name of the plugin.
        plugin: String,
        /// What happens.
        event: FetchEvent,
    },
    /// A plugin logged a message by way of the Engine service.
    Log {
        /// Name of the plugin.
        plugin: String,
        /// The message.
        message: LogMessage,
    },
    /// A plugin wrote a line. Unstructured noise, to be shown where somebody looks for it.
    Output {
        /// Name of the plugin.
        plugin: String,
        /// Where it was written.
        stream: OutputStream,
        /// The line without its end.
        line: String,
    },
    /// Something about a plugin that its user should know.
    Warning {
        /// Name of the plugin.
        plugin: String,
        /// The text.
        message: String,
    },
}

/// One `Engine.Log` request (provider protocol, section 2.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogMessage {
    /// How serious it is. An error means that the provider wants no further operations; it replaces no answer.
    pub severity: Severity,
    /// The text.
    pub text: String,
    /// URN of the resource it is about.
    pub urn: Option<String>,
    /// Chunks of one message share an id; 0 stands alone.
    pub stream_id: i32,
    /// Only for the status line, not for the final log.
    pub ephemeral: bool,
}

/// How serious a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// For those who look for mistakes.
    Debug,
    /// For everybody.
    Info,
    /// Something may be wrong.
    Warning,
    /// Something is wrong.
    Error,
}
