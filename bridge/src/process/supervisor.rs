//! The supervisor process: kills the process groups of `sc` if `sc` exits or is killed without having stopped them.
//!
//! `sc` notices the death of the supervisor and starts another one.

use std::collections::BTreeMap;
use std::ffi::{CStr, OsString};
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::num::NonZeroI32;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, kill_process_group};

use super::background::{start_thread, wait_without_reaping};
use super::starter::Starter;
use super::tag::{ProcessTag, kill_tagged};

/// Argument that runs our program as a supervisor. The groups that run already follow, each as `GROUP:TAG`.
pub(super) const ARGUMENT: &str = "__supervise";

/// Name of the supervisor process. It differs from that of `sc`, and does not contain it, so that `killall sc` and
/// `pkill sc` do not kill both.
const NAME: &CStr = c"supervisor";

/// Process groups, each with the tag of the program that leads it.
type Groups = BTreeMap<NonZeroI32, ProcessTag>;

/// Limit on the wait for a reply. A supervisor that does not reply, such as a stopped one, is replaced.
const REPLY_LIMIT: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// Maximum number of attempts to start a supervisor: the first ones may be killed, too.
const START_ATTEMPTS: usize = 3;

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
    /// The supervisor process ended, did not reply in time, or replied with something else than the request.
    #[error("the supervisor of processes ended")]
    Lost(#[source] io::Error),
}

/// Second process of our own program. Keeps the list of our process groups and reads a pipe from `sc`. When the pipe
/// ends because `sc` exited or was killed, it kills the remaining groups and exits. If it ends before `sc`, another one
/// is started with the same list.
///
/// Dropping it kills the groups that are still on the list.
#[derive(Debug)]
pub struct Supervisor {
    shared: Arc<Shared>,
    starter: Starter,
}

#[derive(Debug)]
struct Shared {
    program: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Groups whose leader has not been reaped.
    groups: Groups,
    /// Running supervisor process. `None` if it ended and no other one could be started.
    process: Option<SupervisorProcess>,
    /// Number of supervisor processes that were started.
    started: u64,
    is_closed: bool,
}

impl Supervisor {
    /// Starts a supervisor process. `program` is the absolute path of the running program, which must call
    /// [`super::run_helper`] first in `main`.
    ///
    /// # Errors
    /// [`SupervisorError`] if the program does not start or does not reply.
    pub fn start(program: &Path) -> Result<Self, SupervisorError> {
        let failed = |source| SupervisorError::Start { program: program.to_owned(), source };
        let starter = Starter::new().map_err(failed)?;
        let shared = Arc::new(Shared { program: program.to_owned(), state: Mutex::default() });
        shared.restart(&mut shared.lock())?;
        Ok(Self { shared, starter })
    }

    /// Returns the path of the program of the supervisor, which also runs as a gate.
    pub(super) fn program(&self) -> &Path {
        &self.shared.program
    }

    /// Starts a gate on a thread that lives as long as the supervisor, and therefore longer than the process: see
    /// [`Starter`].
    ///
    /// Until the gate leads its own session, it is in the process group of the supervisor, so that the terminal does not
    /// send it Ctrl-C. It must not lead a group then.
    pub(super) fn spawn(&self, mut command: Command) -> io::Result<Child> {
        // Locked while the gate starts: the supervisor is not reaped meanwhile, so the number keeps its meaning.
        let mut state = self.shared.lock();
        if state.process.is_none() {
            self.shared.restart(&mut state).map_err(io::Error::other)?;
        }
        if let Some(process) = &state.process {
            command.process_group(Pid::from_child(&process.child).as_raw_nonzero().get());
        }
        self.starter.spawn(command)
    }

    /// Adds a group to the list. Returns once the supervisor has acknowledged it.
    pub(super) fn register(&self, group: Pid, tag: ProcessTag) -> Result<(), SupervisorError> {
        let (mut state, number) = (self.shared.lock(), group.as_raw_nonzero());
        state.groups.insert(number, tag);
        let registered = self.shared.send_request(&mut state, &format!("+{}", format_group(number, tag)));
        if registered.is_err() {
            state.groups.remove(&number);
        }
        registered
    }

    /// Removes a group from the list. Returns once the supervisor has acknowledged it. Must be called before the leader
    /// is reaped: afterwards the number may belong to another process group.
    pub(super) fn release(&self, group: Pid) -> Result<(), SupervisorError> {
        let (mut state, number) = (self.shared.lock(), group.as_raw_nonzero());
        state.groups.remove(&number);
        self.shared.send_request(&mut state, &format!("-{number}"))
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.is_closed = true;
        kill_groups(&std::mem::take(&mut state.groups));
        state.process = None;
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request to the supervisor process. If it is lost, starts another one with the current list instead.
    fn send_request(self: &Arc<Self>, state: &mut State, line: &str) -> Result<(), SupervisorError> {
        let sent = state.process.as_mut().map(|process| process.send_request(line));
        if matches!(sent, Some(Ok(()))) { Ok(()) } else { self.restart(state) }
    }

    /// Starts a supervisor process in place of the current one, which is killed if it still runs.
    fn restart(self: &Arc<Self>, state: &mut State) -> Result<(), SupervisorError> {
        let mut attempts = 0;
        loop {
            // Dropped first: it must not act on the end of its pipe.
            state.process = None;
            attempts += 1;
            match self.start_process(state) {
                Err(SupervisorError::Lost(_)) if attempts < START_ATTEMPTS => {}
                started => return started,
            }
        }
    }

    fn start_process(self: &Arc<Self>, state: &mut State) -> Result<(), SupervisorError> {
        let failed = |source| SupervisorError::Start { program: self.program.clone(), source };
        let mut process = SupervisorProcess::start(&self.program, &state.groups).map_err(failed)?;
        process.send_request("?").map_err(SupervisorError::Lost)?;
        state.started += 1;
        let (pid, number, shared) = (Pid::from_child(&process.child), state.started, Arc::clone(self));
        state.process = Some(process);
        start_thread("supervisor exit", move || {
            wait_without_reaping(pid);
            shared.replace(number);
        })
        .map_err(failed)
    }

    /// Starts another supervisor process after the exit of the one with this number.
    fn replace(self: &Arc<Self>, number: u64) {
        let mut state = self.lock();
        if !state.is_closed && state.started == number {
            // After an error, the next request tries again.
            self.restart(&mut state).ok();
        }
    }
}

/// Supervisor process and its two pipes. Dropping it kills the process, which leaves the groups alone.
#[derive(Debug)]
struct SupervisorProcess {
    child: Child,
    requests: ChildStdin,
    replies: BufReader<ChildStdout>,
}

impl SupervisorProcess {
    /// Starts the process, which has the groups on its list from its beginning.
    fn start(program: &Path, groups: &Groups) -> io::Result<Self> {
        let mut child = Command::new(program)
            .arg0(NAME.to_string_lossy().as_ref())
            .arg(ARGUMENT)
            .args(groups.iter().map(|(group, tag)| format_group(*group, *tag)))
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // Its own process group: the terminal sends Ctrl-C to `sc` and not to the supervisor.
            .process_group(0)
            .spawn()?;
        let requests = child.stdin.take().expect("stdin is piped");
        let replies = BufReader::new(child.stdout.take().expect("stdout is piped"));
        Ok(Self { child, requests, replies })
    }

    /// Sends a request line and waits for its echo.
    fn send_request(&mut self, line: &str) -> io::Result<()> {
        self.requests.write_all(format!("{line}\n").as_bytes())?;
        let mut readable = [PollFd::new(self.replies.get_ref(), PollFlags::IN)];
        if retry_on_intr(|| poll(&mut readable, Some(&REPLY_LIMIT)))? == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let mut reply = String::new();
        self.replies.read_line(&mut reply)?;
        if reply.trim_end() == line { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

impl Drop for SupervisorProcess {
    fn drop(&mut self) {
        // It may have exited already; the error is ignored.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Runs the supervisor process. `groups` are the groups that run already.
pub(super) fn run(groups: impl Iterator<Item = OsString>) -> ExitCode {
    #[cfg(target_os = "linux")]
    // A process without the name still supervises; the error is ignored.
    rustix::thread::set_name(NAME).ok();
    let groups = groups.filter_map(|group| parse_tagged_group(group.to_str()?));
    supervise(groups, io::stdin().lock(), io::stdout().lock(), kill_groups)
}

/// Kills process groups, and the processes that have left them.
fn kill_groups(groups: &Groups) {
    for group in groups.keys().filter_map(|group| Pid::from_raw(group.get())) {
        // The group may have exited already; the error is ignored.
        kill_process_group(group, Signal::KILL).ok();
    }
    kill_tagged(&groups.values().copied().collect::<Vec<_>>());
}

fn format_group(group: NonZeroI32, tag: ProcessTag) -> String {
    format!("{group}:{tag}")
}

fn parse_tagged_group(text: &str) -> Option<(NonZeroI32, ProcessTag)> {
    let (group, tag) = text.split_once(':')?;
    Some((parse_group(group)?, tag.parse().ok()?))
}

/// Returns the process group of a number. Groups 0 and 1 and negative numbers would signal other processes, or all
/// processes.
fn parse_group(number: &str) -> Option<NonZeroI32> {
    number.parse().ok().filter(|number: &NonZeroI32| number.get() > 1)
}

/// Keeps the list of groups until the requests end, then kills the groups on the list.
fn supervise(
    groups: impl Iterator<Item = (NonZeroI32, ProcessTag)>,
    requests: impl Read,
    mut replies: impl Write,
    kill: impl Fn(&Groups),
) -> ExitCode {
    let mut groups: Groups = groups.collect();
    // A malformed request has the effect of the end of the pipe: all groups on the list are killed.
    for line in BufReader::new(requests).lines().map_while(Result::ok) {
        let is_valid = match line.split_at_checked(1) {
            Some(("+", group)) => parse_tagged_group(group).map(|(group, tag)| groups.insert(group, tag)).is_some(),
            Some(("-", group)) => parse_group(group).map(|group| groups.remove(&group)).is_some(),
            Some(("?", "")) => true,
            _ => false,
        };
        if !is_valid {
            break;
        }
        // `sc` exited and closed its end of the pipe: there will be no further requests.
        if writeln!(replies, "{line}").and_then(|()| replies.flush()).is_err() {
            break;
        }
    }
    kill(&groups);
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn killed_after(requests: &str) -> (Vec<String>, String) {
        killed_with(&[], requests)
    }

    fn killed_with(groups: &[&str], requests: &str) -> (Vec<String>, String) {
        let killed = RefCell::new(Vec::new());
        let mut replies = Vec::new();
        let groups = groups.iter().map(|group| parse_tagged_group(group).unwrap());
        supervise(groups, requests.as_bytes(), &mut replies, |groups| {
            killed.borrow_mut().extend(groups.iter().map(|(group, tag)| format_group(*group, *tag)));
        });
        (killed.into_inner(), String::from_utf8(replies).unwrap())
    }

    #[test]
    fn registered_groups_are_killed_at_the_end_of_the_requests() {
        let requests = "?\n+10:7\n+11:8\n-10\n";
        assert_eq!(killed_after(requests), (vec!["11:8".into()], requests.into()));
        assert_eq!(killed_after(""), (vec![], String::new()));
    }

    #[test]
    fn groups_of_an_earlier_supervisor_are_killed_unless_they_are_released() {
        let (killed, replies) = killed_with(&["10:7", "11:8"], "-11\n+12:9\n");
        assert_eq!((killed, &*replies), (vec!["10:7".into(), "12:9".into()], "-11\n+12:9\n"));
    }

    #[test]
    fn malformed_request_kills_the_registered_groups() {
        assert_eq!(killed_after("+10:7\nhello\n-10\n"), (vec!["10:7".into()], "+10:7\n".into()));
        for invalid in ["+0:7\n", "+1:7\n", "+\n", "+-3:7\n", "+x:7\n", "+10\n", "+10:\n", "+10:x\n", "?x\n", "\n"] {
            assert_eq!(killed_after(invalid), (vec![], String::new()), "{invalid}");
        }
    }
}
