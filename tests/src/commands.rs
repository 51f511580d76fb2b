//! Commands of other programs: compilers and package managers.
//!
//! Input: a command. Output: what it printed. Excluded: programs that keep running.

use std::io;
use std::process::Command;

/// Runs a command to its end and returns its standard output.
///
/// # Errors
/// Returns an error if the command cannot be started or fails; it contains the standard error.
pub fn run(command: &mut Command) -> io::Result<Vec<u8>> {
    let program = command.get_program().to_owned();
    let message = |what: &str| format!("{}: {what}", program.display());
    let output = command.output().map_err(|error| io::Error::new(error.kind(), message(&error.to_string())))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(io::Error::other(message(&format!("{}\n{}", output.status, String::from_utf8_lossy(&output.stderr)))))
}
