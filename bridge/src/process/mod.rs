//! Child processes: each leads its own process group, its output is read until its end, and it is killed however `sc`
//! ends.
//!
//! Input: a [`ProcessSpec`]. Output: a [`Process`]. Dropping it kills its process group; its supervisor kills the group and
//! all that the program has started if `sc` itself is killed; on Linux, the kernel kills the program if both are killed.
//! Excluded: the purpose of the program, the meaning of its output.
//!
//! ```text
//! sc ──socket──► supervisor ─stdin pipe─► gate ─exec─► program
//! ```
//! A supervised program has a supervisor of its own, a process of our own program: the parent of the program, and on Linux
//! the ancestor of all that the program starts (a subreaper). If the program exits, or the socket ends because `sc` has
//! exited or was killed, it kills these processes: by descent from itself, so that it never kills another process.
//!
//! The gate is a process of our own program that later becomes the program (`exec`). It applies the sandbox of the program
//! to itself. The program leads its session, so it cannot leave its group.
//!
//! If the supervisor is killed, Linux kills the program (PR_SET_PDEATHSIG), and what the program has started becomes a child of
//! `sc`, which kills it if it is in the session of the program, or in another session than `sc` and has the tag of the program.
//! If both are killed, Linux kills the program alone; other systems kill nothing.

#![expect(clippy::disallowed_methods, reason = "this module starts child processes and exits helper processes")]

mod background;
mod child;
#[cfg(target_os = "linux")]
mod descendants;
mod descriptors;
mod environment;
mod gate;
mod other;
mod output;
mod sandbox;
mod starter;
mod supervision;
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
pub use supervision::{Supervision, SupervisorError};

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
/// A program that has a [`Supervision`] calls this function first in `main` and exits with the returned code.
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
