//! The gate: our own program, started in the place of another, which becomes that other one when it is told to.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};
use std::time::Duration;

/// The argument that makes our program a gate; the program to become and its arguments follow.
pub(super) const ARGUMENT: &str = "__exec";

/// What is written to standard output where the program cannot be run, followed by the error number and a line end.
const FAILED: &str = "\0exec failed ";

/// How often and how far apart a program is tried that somebody still holds open for writing: any thread of ours that
/// forks holds copies of all our files for a moment.
const BUSY_RETRIES: u32 = 5;
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// The life of the gate: waits for one byte on standard input, then becomes the program.
pub(super) fn run(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let Some(program) = arguments.next() else { return ExitCode::from(2) };
    // Unbuffered: what comes after the byte is the program's.
    if !matches!(rustix::io::read(io::stdin(), &mut [0; 1]), Ok(1)) {
        return ExitCode::SUCCESS;
    }
    let arguments: Vec<OsString> = arguments.collect();
    let error = retry_while_busy(|| Err::<ExitCode, _>(become_program(&program, &arguments))).err();
    let number = error.and_then(|error| error.raw_os_error()).unwrap_or_default();
    writeln!(io::stdout(), "{FAILED}{number}").ok();
    ExitCode::from(127)
}

/// Replaces this process; returns only if that failed.
fn become_program(program: &OsStr, arguments: &[OsString]) -> io::Error {
    Command::new(program).args(arguments).exec()
}

/// The error that a line of output reports, if it is a gate's report.
pub(super) fn reported_failure(line: &str) -> Option<io::Error> {
    line.strip_prefix(FAILED)?.parse().ok().map(io::Error::from_raw_os_error)
}

/// Starts something, again after a moment if its program is being written to.
pub(super) fn retry_while_busy<T>(mut start: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut retries = BUSY_RETRIES;
    loop {
        match start() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy && retries > 0 => {
                retries -= 1;
                // Another process that was forked in this moment still has the file open for writing.
                std::thread::sleep(BUSY_PAUSE);
            }
            result => return result,
        }
    }
}
