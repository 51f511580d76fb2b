//! The supervisor process: kills the process groups of `sc` if `sc` exits or is killed without having stopped them.

use std::collections::BTreeSet;
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::{Mutex, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};

/// Argument that runs our program as a supervisor.
pub(super) const ARGUMENT: &str = "__supervise";

/// Reason why processes cannot be supervised.
#[derive(Debug, thiserror::Error)]
pub enum SupervisorError {
    /// The supervisor process could not be started.
    #[error("cannot start {} as supervisor of processes", program.display())]
    Start {
        /// Path of the program of the supervisor, which is that of `sc`.
        program: PathBuf,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The supervisor process ended or replied with something else than the request.
    #[error("the supervisor of processes ended")]
    Lost(#[source] io::Error),
}

/// Second process of our own program. Keeps the list of our process groups and reads a pipe from `sc`. When the pipe
/// ends because `sc` exited or was killed, it kills the remaining groups and exits.
#[derive(Debug)]
pub struct Supervisor {
    program: PathBuf,
    pipes: Mutex<Option<SupervisorPipes>>,
}

/// Supervisor process and its two pipes.
#[derive(Debug)]
struct SupervisorPipes {
    child: Child,
    requests: ChildStdin,
    replies: BufReader<ChildStdout>,
}

impl Supervisor {
    /// Starts a supervisor process. `program` is the absolute path of the running program, which must call
    /// [`super::run_helper`] first in `main`.
    ///
    /// # Errors
    /// [`SupervisorError`] if the program does not start or does not reply.
    pub fn start(program: &Path) -> Result<Self, SupervisorError> {
        // Its own process group: the terminal sends Ctrl-C to `sc` and not to the supervisor.
        let child = Command::new(program)
            .arg(ARGUMENT)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        let mut child = child.map_err(|source| SupervisorError::Start { program: program.to_owned(), source })?;
        let requests = child.stdin.take().expect("stdin is piped");
        let replies = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let supervisor =
            Self { program: program.to_owned(), pipes: Mutex::new(Some(SupervisorPipes { child, requests, replies })) };
        supervisor.send_request("?").map_err(SupervisorError::Lost)?;
        Ok(supervisor)
    }

    /// Returns the path of the program of the supervisor, which also runs as a gate.
    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// Adds a group to the list. Returns once the supervisor has acknowledged it.
    pub(super) fn register(&self, group: Pid) -> Result<(), SupervisorError> {
        self.send_request(&format!("+{}", group.as_raw_nonzero())).map_err(SupervisorError::Lost)
    }

    /// Removes a group from the list. Returns once the supervisor has acknowledged it. Must be called before the leader
    /// is reaped: afterwards the number may belong to another process group.
    pub(super) fn release(&self, group: Pid) -> Result<(), SupervisorError> {
        self.send_request(&format!("-{}", group.as_raw_nonzero())).map_err(SupervisorError::Lost)
    }

    /// Sends a request line and waits for its echo.
    fn send_request(&self, line: &str) -> io::Result<()> {
        let mut pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        let pipes = pipes.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        pipes.requests.write_all(format!("{line}\n").as_bytes())?;
        let mut reply = String::new();
        pipes.replies.read_line(&mut reply)?;
        if reply.trim_end() == line { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        let pipes = self.pipes.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(SupervisorPipes { mut child, requests, replies: _ }) = pipes {
            drop(requests);
            // The closed pipe makes the supervisor kill the remaining groups and exit.
            child.wait().ok();
        }
    }
}

/// Runs the supervisor process.
pub(super) fn run() -> ExitCode {
    supervise(io::stdin().lock(), io::stdout().lock(), |group| {
        // The group may have exited already; the error is ignored.
        kill_process_group(group, Signal::KILL).ok();
    })
}

/// Keeps the list of groups until the requests end, then kills the groups on the list.
fn supervise(requests: impl Read, mut replies: impl Write, kill: impl Fn(Pid)) -> ExitCode {
    let mut groups = BTreeSet::new();
    // A malformed request has the effect of the end of the pipe: all groups on the list are killed.
    for line in BufReader::new(requests).lines().map_while(Result::ok) {
        let (verb, number) = line.split_at(line.len().min(1));
        // Groups 0 and 1 and negative numbers would signal other processes, or all processes.
        let group = number.parse().ok().filter(|number| *number > 1).and_then(Pid::from_raw);
        match (verb, group) {
            ("+", Some(group)) => drop(groups.insert(group.as_raw_nonzero())),
            ("-", Some(group)) => drop(groups.remove(&group.as_raw_nonzero())),
            ("?", None) => {}
            _ => break,
        }
        // `sc` exited and closed its end of the pipe: there will be no further requests.
        if writeln!(replies, "{line}").and_then(|()| replies.flush()).is_err() {
            break;
        }
    }
    groups.into_iter().filter_map(|number| Pid::from_raw(number.get())).for_each(kill);
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn killed_after(requests: &str) -> (Vec<i32>, String) {
        let killed = RefCell::new(Vec::new());
        let mut replies = Vec::new();
        supervise(requests.as_bytes(), &mut replies, |group| killed.borrow_mut().push(group.as_raw_nonzero().get()));
        (killed.into_inner(), String::from_utf8(replies).unwrap())
    }

    #[test]
    fn registered_groups_are_killed_at_the_end_of_the_requests() {
        assert_eq!(killed_after("?\n+10\n+11\n-10\n"), (vec![11], "?\n+10\n+11\n-10\n".into()));
        assert_eq!(killed_after(""), (vec![], String::new()));
    }

    #[test]
    fn malformed_request_kills_the_registered_groups() {
        assert_eq!(killed_after("+10\nhello\n-10\n"), (vec![10], "+10\n".into()));
        for invalid in ["+0\n", "+1\n", "+\n", "+-3\n", "+x\n"] {
            assert_eq!(killed_after(invalid), (vec![], String::new()), "{invalid}");
        }
    }
}
