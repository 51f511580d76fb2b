//! The gate: the process that becomes a supervised program. It starts as a process of our own program, waits until its
//! supervisor writes a byte to its standard input, applies the sandbox of the program to itself, and then
//! replaces itself by the program (`exec`). Until then the program cannot run. The gate leads a session of its own, with one
//! process group, and so does the program.
//!
//! On Linux the gate requests SIGKILL at the death of the thread that started it. The program inherits this request,
//! unless it is a set-user-ID or set-group-ID program or has file capabilities.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};
use std::time::Duration;

use rustix::process::{Pid, getppid};

use super::sandbox::{ProcessSandbox, SandboxError};
use super::tag::ProcessTag;

/// Argument that runs our program as a gate. The process id of its supervisor, the tag of the program, its sandbox, the
/// program to execute and its arguments follow.
pub(super) const ARGUMENT: &str = "__exec";

/// Prefix of the report on standard output if the program cannot be executed. The error number and a line end follow.
const FAILED: &str = "\0exec failed ";

/// Prefix of the report on standard output if the sandbox cannot be applied. The reason and a line end follow.
const SANDBOX_FAILED: &str = "\0sandbox failed ";

/// Number of retries if the program file is busy (ETXTBSY), and the pause between them. A process forked by another
/// thread briefly holds copies of all open files, including a program file that was just written.
const BUSY_RETRIES: u32 = 5;
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// Argument in place of the tag of a program without one.
const NO_TAG: &str = "-";

/// Returns the arguments of a gate after the process id of its supervisor. The program to execute and its arguments have to
/// follow.
pub(super) fn arguments(tag: Option<ProcessTag>, sandbox: &ProcessSandbox) -> impl Iterator<Item = OsString> {
    let tag = tag.map_or_else(|| NO_TAG.to_owned(), |tag| tag.to_string());
    std::iter::once(tag.into()).chain(sandbox.arguments())
}

/// Reads the tag of a program. Returns `None` if the argument is none.
fn parse_tag(argument: &OsStr) -> Option<Option<ProcessTag>> {
    let argument = argument.to_str()?;
    if argument == NO_TAG { Some(None) } else { argument.parse().ok().map(Some) }
}

/// Runs the gate: waits for one byte on standard input, then executes the program.
pub(super) fn run(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let parent = arguments.next().and_then(|parent| Pid::from_raw(parent.to_str()?.parse().ok()?));
    let tag = arguments.next().and_then(|tag| parse_tag(&tag));
    let sandbox = ProcessSandbox::from_arguments(&mut arguments);
    let (Some(parent), Some(tag), Some(sandbox), Some(program)) = (parent, tag, sandbox, arguments.next()) else {
        return ExitCode::from(2);
    };
    // The leader of a session has no terminal, and cannot leave its process group.
    if rustix::process::setsid().is_err() || tag.is_some_and(|tag| tag.apply().is_err()) {
        return ExitCode::FAILURE;
    }
    #[cfg(target_os = "linux")]
    if rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL)).is_err() {
        return ExitCode::FAILURE;
    }
    // A parent that died before the request sends no signal.
    if getppid() != Some(parent) {
        return ExitCode::SUCCESS;
    }
    // Unbuffered: the bytes after the first one belong to the program.
    if !matches!(rustix::io::read(io::stdin(), &mut [0; 1]), Ok(1)) {
        return ExitCode::SUCCESS;
    }
    if let Err(SandboxError(reason)) = sandbox.apply() {
        writeln!(io::stdout(), "{SANDBOX_FAILED}{}", reason.replace('\n', " ")).ok();
        return ExitCode::from(127);
    }
    let arguments: Vec<OsString> = arguments.collect();
    let error = retry_while_busy(|| Err::<ExitCode, _>(exec_program(&program, &arguments))).err();
    let number = error.and_then(|error| error.raw_os_error()).unwrap_or_default();
    writeln!(io::stdout(), "{FAILED}{number}").ok();
    ExitCode::from(127)
}

/// Replaces this process by the program (`exec`). Returns only on failure.
fn exec_program(program: &OsStr, arguments: &[OsString]) -> io::Error {
    Command::new(program).args(arguments).exec()
}

/// Returns the error in a line of output if the line is the report of a gate: with a [`SandboxError`] in it if the
/// sandbox was not applied.
pub(super) fn parse_failure(line: &str) -> Option<io::Error> {
    if let Some(reason) = line.strip_prefix(SANDBOX_FAILED) {
        return Some(io::Error::other(SandboxError(reason.to_owned())));
    }
    line.strip_prefix(FAILED)?.parse().ok().map(io::Error::from_raw_os_error)
}

/// Calls `start`, and calls it again after a pause while the program file is busy.
pub(super) fn retry_while_busy<T>(mut start: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut retries = BUSY_RETRIES;
    loop {
        match start() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy && retries > 0 => {
                retries -= 1;
                std::thread::sleep(BUSY_PAUSE);
            }
            result => return result,
        }
    }
}
