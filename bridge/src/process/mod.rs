//! Child processes: own group, drained pipes, an end on every path.
//!
//! Enters: which program, with what. Leaves: a [`Process`], whose whole group dies with the value, or with us if we are
//! killed ([`Supervisor`]). Never here: what the program is, what its output means.
//!
//! ```text
//! we ──pipe──► supervisor            holds the list of groups; end of file: kills them
//!  └─ stdin pipe ─► gate ─exec─► program     waits for a byte before it becomes the program; end of file: exits
//! ```
//! The byte is written once the supervisor has acknowledged the group: whenever we are killed, either the gate has not
//! opened and never will, or the supervisor knows the group. A process that leaves its group (setsid) is out of reach.

#![allow(clippy::disallowed_methods, reason = "here children are started, and the helper processes of our own end")]

mod child;
mod environment;
mod gate;
mod output;
mod supervisor;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};

pub use child::{FirstLine, Process, SpawnError, Spawner};
pub use environment::HostEnvironment;
pub use output::{OutputSink, OutputStream};
pub use supervisor::{Supervisor, SupervisorError};

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessSpec {
    /// The program: an absolute path.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Its working directory.
    pub directory: PathBuf,
    /// Its whole environment.
    pub environment: Vec<(OsString, OsString)>,
}

/// Does the work of a helper process, if the arguments (without the program's name) say that this process is one.
///
/// A program that starts a [`Supervisor`] calls this first thing in `main` and ends with the code it gets.
pub fn run_helper(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter();
    let role = arguments.next()?;
    if role == supervisor::ARGUMENT {
        Some(supervisor::run())
    } else if role == gate::ARGUMENT {
        Some(gate::run(arguments))
    } else {
        None
    }
}

/// How a process ended, in words.
pub fn describe_exit(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => status.to_string(),
    }
}
