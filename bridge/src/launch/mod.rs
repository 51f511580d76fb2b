//! From a verified package to a connected process: one file per dialect of the first words; and calls over that
//! connection.
//!
//! Enters: a [`VerifiedPackage`] and what its process gets. Leaves: the process, and a connection to the port it said; or
//! an error that quotes what it said instead. Never here: what is called and what the answers mean (the provider shakes
//! hands), configuration, decisions about when a plugin is started.

mod call;
mod connection;
mod diagnosis;
mod environment;
mod local;
mod port_line;
pub mod pulumi;

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::error::Hint;
use crate::install::VerifiedPackage;
use crate::process::{OutputSink, Process, SpawnError, Spawner};

pub use call::{Answers, MAX_MESSAGE, Procedure};
pub use connection::Connection;
pub use environment::{PluginEnvironment, plugin_environment};

/// What a plugin's process gets.
pub struct LaunchSpec<'a> {
    /// What is started.
    pub package: &'a VerifiedPackage,
    /// Its working directory: the root of the repository, against which relative paths of assets are read.
    pub directory: PathBuf,
    /// Its whole environment, see [`plugin_environment`].
    pub environment: Vec<(OsString, OsString)>,
    /// How long it may take until it says its port. Interpreters and compilers take their time.
    pub start_timeout: Duration,
    /// Where its output goes.
    pub sink: Arc<dyn OutputSink>,
    /// What starts it.
    pub spawner: &'a Spawner,
}

/// A plugin that said where it listens. Nobody has shaken hands with it yet.
#[derive(Debug)]
pub struct Launched {
    /// Its process. Dropping it kills the plugin.
    pub process: Arc<Process>,
    /// To it; made when it is first used, and never again once the process has ended.
    pub connection: Connection,
}

/// Why a plugin did not come up.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The system refuses to run the program.
    #[error("cannot run {}{}", program.display(), in_parentheses(diagnosis.as_deref()))]
    NotRun {
        /// The program, where the user finds it.
        program: PathBuf,
        /// The reason as far as the program's first bytes and its mode tell, with what to do.
        diagnosis: Option<String>,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// No process could be made.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// It said something else.
    #[error("expected a port on the first line of its output, got {:?}{last_words}", beginning(line))]
    NoPort {
        /// What it said.
        line: String,
        /// What else it wrote.
        last_words: LastWords,
    },
    /// It ended too early.
    #[error("it ended before it said its port ({status}){last_words}")]
    Ended {
        /// How.
        status: String,
        /// What it wrote.
        last_words: LastWords,
    },
    /// It closed its output, but goes on.
    #[error("it closed its output before it said its port{last_words}")]
    Closed {
        /// What it wrote.
        last_words: LastWords,
    },
    /// It did not say anything in time.
    #[error("it has not said its port within {} s (startTimeout){last_words}", limit.as_secs_f32())]
    TooSlow {
        /// How long was waited.
        limit: Duration,
        /// What it wrote instead.
        last_words: LastWords,
    },
}

impl Hint for LaunchError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        let hint = match self {
            Self::TooSlow { .. } => "a larger startTimeout gives it more time",
            // `1|5|unix|/tmp/…|grpc`
            Self::NoPort { line, .. } if line.split('|').count() >= 4 => {
                "this looks like HashiCorp's go-plugin protocol; only Pulumi's own is spoken here"
            }
            Self::NoPort { .. } => "a Pulumi provider says its port, and nothing else, on the first line",
            // The message says it.
            Self::NotRun { .. } | Self::Spawn(_) | Self::Ended { .. } | Self::Closed { .. } => return None,
        };
        Some(hint.into())
    }
}

fn in_parentheses(text: Option<&str>) -> String {
    text.map(|text| format!(" ({text})")).unwrap_or_default()
}

/// The last lines a plugin wrote, as the end of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastWords(pub Vec<String>);

impl fmt::Display for LastWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.is_empty() {
            write!(f, ". Its last words:\n  {}", self.0.join("\n  "))?;
        }
        Ok(())
    }
}

/// Enough of a line to recognize it.
fn beginning(line: &str) -> &str {
    &line[..line.floor_char_boundary(200)]
}
