//! Errors of the start of a plugin.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::go_plugin::{GoPluginError, is_cookie_refused};
use super::last_output::LastOutput;
use super::register::RegisterError;
use crate::error::{Hint, cut};
use crate::message_text::MessageText;
use crate::process::{SandboxError, SpawnError};

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
    /// A file or folder that the sandbox allows does not exist. No process was created.
    #[error("its sandbox cannot be applied: {}, which `{key}` names, does not exist", path.display())]
    SandboxPath {
        /// Key of the declaration.
        key: &'static str,
        /// Path of the file or folder.
        path: PathBuf,
    },
    /// The sandbox was not applied. The program was not executed.
    #[error("its sandbox cannot be applied")]
    Sandbox(#[source] SandboxError),
    /// No process was created.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// A go-plugin server did not start.
    #[error(transparent)]
    GoPlugin(#[from] GoPluginError),
    /// A plugin that registers itself did not start.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// The first line of output is not a port.
    #[error("expected a port on the first line of its output, got {:?}{last_output}", cut(line, 200))]
    NotAPort {
        /// First line of output.
        line: String,
        /// Other lines of output.
        last_output: LastOutput,
    },
    /// The first line of output has no line end.
    #[error(
        "it has printed {:?} as its first line of output, without a line end {situation}{last_output}",
        cut(line, 200)
    )]
    NoLineEnd {
        /// Beginning of the line.
        line: String,
        /// Event or limit before which the line end is missing.
        situation: String,
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
    fn hint(&self) -> Option<MessageText> {
        let hint = match self {
            Self::GoPlugin(error) => return error.hint(),
            Self::Register(error) => return error.hint(),
            Self::SandboxPath { key, .. } => return Some(format!("create it, or leave it out of `{key}`").into()),
            Self::Sandbox(_) => {
                "`sandbox: basic` or `sandbox: none` below the name of the plugin starts it with fewer restrictions"
            }
            Self::Exited { last_output, .. } if is_cookie_refused(last_output) => {
                "this is a go-plugin server: write `protocol: go-plugin` below the name of the plugin, and its cookie in \
                 goPlugin.cookieKey and goPlugin.cookieValue"
            }
            Self::TimedOut { .. } => "a larger startTimeout gives it more time",
            // `1|5|unix|/tmp/…|grpc`
            Self::NotAPort { line, .. } if line.split('|').count() >= 4 => {
                "this looks like HashiCorp's go-plugin protocol: write `protocol: go-plugin` below the name of the plugin"
            }
            Self::NoLineEnd { .. } => {
                "the plugin has to print its port and then a line end, such as with `println!`, `print(port, flush=True)` or \
                 `fmt.Println(port)`"
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
