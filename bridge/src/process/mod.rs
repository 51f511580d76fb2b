//! Child processes: each leads its own process group, its output is read until its end, and it is killed however `sc`
//! ends.
//!
//! Input: a [`ProcessSpec`]. Output: a [`Process`]. Dropping it kills its process group; [`Supervisor`] kills the
//! group if `sc` itself is killed; on Linux, the kernel kills the program if both are killed. Excluded: the purpose of
//! the program, the meaning of its output.
//!
//! ```text
//! sc ──pipe──► supervisor            holds the list of groups; end of file: kills them
//!  └─ stdin pipe ─► gate ─exec─► program     waits for a byte before it executes the program; end of file: exits
//! ```
//! The gate is a process of our own program that later becomes the program (`exec`), in the same process group. `sc`
//! writes the byte once the supervisor has acknowledged this group; the gate then applies the sandbox of the program. If
//! `sc` is killed, either the gate never executes the program, or the supervisor has the group on its list. The program
//! leads its session, so it cannot leave its group. A process that it has started can; on Linux it is found by the tag of
//! the program, and killed with the group.
//!
//! If the supervisor is killed, `sc` starts another one with the same list. If `sc` is killed before that, Linux kills
//! the programs (PR_SET_PDEATHSIG), but not the processes that these have started; other systems kill nothing.

#![expect(clippy::disallowed_methods, reason = "this module starts child processes and exits helper processes")]

mod background;
mod child;
mod environment;
mod gate;
mod other;
mod output;
mod sandbox;
mod starter;
mod supervisor;
mod tag;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};

pub use child::{FirstLine, Process, SpawnError, Spawner};
pub use environment::HostEnvironment;
pub use other::exit_of_other;
pub use output::{LogLevel, OutputSink, OutputStream};
pub use sandbox::{AllowedAccess, HiddenFiles, ProcessSandbox, SandboxError, SandboxSupport};
pub use supervisor::{Supervisor, SupervisorError};

/// Program to run, with its arguments, working directory and environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessSpec {
    /// Absolute path of the program.
    pub program: PathBuf,
    /// Arguments of the program.
    pub arguments: Vec<OsString>,
    /// Working directory of the process.
    pub directory: PathBuf,
    /// Complete environment of the process: no variable is inherited.
    pub environment: Vec<(OsString, OsString)>,
    /// Sandbox of the program. Only a supervised process can have one.
    pub sandbox: ProcessSandbox,
}

/// Runs this process as a helper process (supervisor or gate) if its arguments, without the program name, request one.
/// Returns the exit code of the helper; `None` if this process is not a helper.
///
/// A program that starts a [`Supervisor`] calls this function first in `main` and exits with the returned code.
pub fn run_helper(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter();
    let role = arguments.next()?;
    if role == supervisor::ARGUMENT {
        Some(supervisor::run(arguments))
    } else if role == gate::ARGUMENT {
        Some(gate::run(arguments))
    } else {
        None
    }
}

/// Describes an exit status: `exit status 3`, `killed by signal 9`.
pub fn describe_exit(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => status.to_string(),
    }
}
