//! The process that outlives us for a moment: it kills our process groups if we die without having done so.

use std::collections::BTreeSet;
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::{Mutex, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};

/// The argument that makes our program a supervisor.
pub(super) const ARGUMENT: &str = "__supervise";

/// Why processes cannot be supervised.
#[derive(Debug, thiserror::Error)]
pub enum SupervisorError {
    /// It could not be started.
    #[error("cannot start {} as supervisor of processes", program.display())]
    Start {
        /// The program, our own.
        program: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It does not answer.
    #[error("the supervisor of processes ended")]
    Lost(#[source] io::Error),
}

/// A second process of our own program that holds the list of our process groups, and a pipe. When the pipe ends,
/// because we exited or were killed, it kills the groups that are left, and exits.
#[derive(Debug)]
pub struct Supervisor {
    program: PathBuf,
    connection: Mutex<Option<Connection>>,
}

#[derive(Debug)]
struct Connection {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Supervisor {
    /// Starts one. `program` is the absolute path of a program that calls [`super::run_helper`] first thing in `main`:
    /// the one that is running.
    ///
    /// # Errors
    /// [`SupervisorError`] where the program does not start or does not answer.
    pub fn start(program: &Path) -> Result<Self, SupervisorError> {
        // A group of its own: Ctrl-C is for us, not for it.
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
        let answers = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let supervisor =
            Self { program: program.to_owned(), connection: Mutex::new(Some(Connection { child, requests, answers })) };
        supervisor.ask("?").map_err(SupervisorError::Lost)?;
        Ok(supervisor)
    }

    /// The program that supervises, and that serves as gate too.
    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// Puts a group on the list, and returns once it is there.
    pub(super) fn register(&self, group: Pid) -> Result<(), SupervisorError> {
        self.ask(&format!("+{}", group.as_raw_nonzero())).map_err(SupervisorError::Lost)
    }

    /// Takes a group off the list, and returns once it is gone. Must come before the leader is reaped: afterwards the
    /// number may be somebody else's.
    pub(super) fn release(&self, group: Pid) -> Result<(), SupervisorError> {
        self.ask(&format!("-{}", group.as_raw_nonzero())).map_err(SupervisorError::Lost)
    }

    /// Sends a line and waits for its echo.
    fn ask(&self, line: &str) -> io::Result<()> {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let connection = connection.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        connection.requests.write_all(format!("{line}\n").as_bytes())?;
        let mut answer = String::new();
        connection.answers.read_line(&mut answer)?;
        if answer.trim_end() == line { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        let connection = self.connection.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Connection { mut child, requests, answers: _ }) = connection {
            drop(requests);
            // It has nothing to do but to kill and to exit.
            child.wait().ok();
        }
    }
}

/// The life of the supervisor process.
pub(super) fn run() -> ExitCode {
    supervise(io::stdin().lock(), io::stdout().lock(), |group| {
        // A group that is gone already is what we want.
        kill_process_group(group, Signal::KILL).ok();
    })
}

/// Keeps the list until the requests end, then kills what is on it.
fn supervise(requests: impl Read, mut answers: impl Write, kill: impl Fn(Pid)) -> ExitCode {
    let mut groups = BTreeSet::new();
    // An unreadable request ends the list as the end of the pipe does: what is on it is killed, never forgotten.
    for line in BufReader::new(requests).lines().map_while(Result::ok) {
        let (verb, number) = line.split_at(line.len().min(1));
        // Groups 0 and 1 and negative ones would mean somebody else, or everybody.
        let group = number.parse().ok().filter(|number| *number > 1).and_then(Pid::from_raw);
        match (verb, group) {
            ("+", Some(group)) => drop(groups.insert(group.as_raw_nonzero())),
            ("-", Some(group)) => drop(groups.remove(&group.as_raw_nonzero())),
            ("?", None) => {}
            _ => break,
        }
        // Nobody reads any more: the requests end as well.
        if writeln!(answers, "{line}").and_then(|()| answers.flush()).is_err() {
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
        let mut answers = Vec::new();
        supervise(requests.as_bytes(), &mut answers, |group| killed.borrow_mut().push(group.as_raw_nonzero().get()));
        (killed.into_inner(), String::from_utf8(answers).unwrap())
    }

    #[test]
    fn what_is_still_registered_at_the_end_is_killed() {
        assert_eq!(killed_after("?\n+10\n+11\n-10\n"), (vec![11], "?\n+10\n+11\n-10\n".into()));
        assert_eq!(killed_after(""), (vec![], String::new()));
    }

    #[test]
    fn nonsense_ends_the_list_and_forgets_nothing() {
        assert_eq!(killed_after("+10\nhello\n-10\n"), (vec![10], "+10\n".into()));
        for bad in ["+0\n", "+1\n", "+\n", "+-3\n", "+x\n"] {
            assert_eq!(killed_after(bad), (vec![], String::new()), "{bad}");
        }
    }
}
