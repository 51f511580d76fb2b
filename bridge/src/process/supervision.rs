//! The supervisors of the programs that this process has started, as this process sees them.

use std::io::{self, BufRead as _, BufReader, PipeReader, Write as _};
use std::net::Shutdown;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

#[cfg(target_os = "linux")]
use rustix::process::getpid;
use rustix::process::{Pid, Signal, kill_process};

use super::background::wait_without_reaping;
#[cfg(target_os = "linux")]
use super::descendants::kill_selected;
use super::starter::Starter;
use super::supervisor::{self, Reply, signal_request};
use super::tag::ProcessTag;
use super::{ProcessSandbox, descriptors, gate};
#[cfg(target_os = "linux")]
use crate::fs::ProcessStat;

/// Limit on the time until a supervisor has started a gate.
const START_LIMIT: Duration = Duration::from_secs(30);

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
    /// The supervisor process ended, or did not start the program in time.
    #[error("the supervisor of processes ended")]
    Lost(#[source] io::Error),
}

/// Starts a supervisor for each program: a second process of our own program, which ends with the program and kills all that
/// the program has started, also if `sc` exits or is killed.
#[derive(Debug)]
pub struct Supervision {
    program: PathBuf,
    starter: Starter,
}

impl Supervision {
    /// Prepares to start supervisors. `program` is the absolute path of the running program, which must call
    /// [`super::run_helper`] first in `main`.
    ///
    /// On Linux, this process becomes a subreaper: if a supervisor is killed, what its program has started becomes a child of
    /// this process, which kills it.
    ///
    /// # Errors
    /// [`SupervisorError`] if the system refuses.
    pub fn new(program: &Path) -> Result<Self, SupervisorError> {
        let failed = |source| SupervisorError::Start { program: program.to_owned(), source };
        #[cfg(target_os = "linux")]
        rustix::process::set_child_subreaper(Some(rustix::process::getpid())).map_err(|error| failed(error.into()))?;
        Ok(Self { program: program.to_owned(), starter: Starter::new().map_err(failed)? })
    }

    /// Returns the command of a supervisor. The path of the program to execute and its arguments have to follow.
    pub(super) fn command(&self, tag: Option<ProcessTag>, sandbox: &ProcessSandbox) -> Command {
        let mut command = Command::new(&self.program);
        command.arg0(supervisor::NAME.to_string_lossy().as_ref());
        command.arg(supervisor::ARGUMENT).arg(std::process::id().to_string()).arg(&self.program);
        command.args(gate::arguments(tag, sandbox));
        // Its own process group, in the session of `sc`: the terminal sends Ctrl-C to `sc` alone.
        command.process_group(0);
        command
    }

    /// Starts a supervisor on a thread that lives as long as this value, and therefore longer than the process: see
    /// [`Starter`]. Returns once the supervisor has started the gate of the program.
    pub(super) fn start(&self, mut command: Command, tag: Option<ProcessTag>) -> Result<Supervised, SupervisorError> {
        let failed = |source| SupervisorError::Start { program: self.program.clone(), source };
        let (own, other) = UnixStream::pair().map_err(failed)?;
        let ((stdout, of_stdout), (stderr, of_stderr)) =
            io::pipe().and_then(|stdout| Ok((stdout, io::pipe()?))).map_err(failed)?;
        command.stdin(OwnedFd::from(other)).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = self.starter.spawn(command).map_err(failed)?;
        let supervisor = Pid::from_child(&child);
        let sent = descriptors::send(&own, [of_stdout.as_fd(), of_stderr.as_fd()]);
        drop((of_stdout, of_stderr));
        let mut replies = BufReader::new(own);
        let started = sent
            .and_then(|()| replies.get_ref().set_read_timeout(Some(START_LIMIT)))
            .and_then(|()| read_reply(&mut replies));
        let requests =
            replies.get_ref().try_clone().and_then(|requests| requests.set_read_timeout(None).map(|()| requests));
        match (started, requests) {
            (Ok(Reply::Started(group)), Ok(requests)) => {
                let control = Control { supervisor, requests };
                Ok(Supervised { child, control, replies, output: (stdout, stderr), group, tag })
            }
            (started, requests) => {
                let error = started.err().or(requests.err()).unwrap_or_else(|| io::ErrorKind::InvalidData.into());
                // Dropped, so that the supervisor kills what it has started.
                drop(replies);
                child.wait().map_err(failed)?;
                Err(SupervisorError::Lost(error))
            }
        }
    }
}

/// Kills what a supervisor that was killed has left: processes that have become children of this process, and their
/// descendants. A child of this process belongs to the program in two cases: it is in the session of the program, which no other
/// process can join; or it is in another session than this process and has the tag of the program. A child in the session of this
/// process is a command that this process runs, or a supervisor.
#[cfg(target_os = "linux")]
fn kill_abandoned(group: Pid, tag: Option<ProcessTag>) {
    let Some(own) = ProcessStat::read(Pid::as_raw(Some(getpid()))) else { return };
    kill_selected(|pid, child| {
        child.session == Pid::as_raw(Some(group))
            || child.session != own.session && tag.is_some_and(|tag| tag.is_of(pid))
    });
}

/// Kills the group of a program whose supervisor was killed.
#[cfg(not(target_os = "linux"))]
fn kill_abandoned(group: Pid, _: Option<ProcessTag>) {
    rustix::process::kill_process_group(group, Signal::KILL).ok();
}

/// Started program with its supervisor.
#[derive(Debug)]
pub(super) struct Supervised {
    child: Child,
    control: Control,
    replies: BufReader<UnixStream>,
    output: (PipeReader, PipeReader),
    /// Process group that the program leads.
    pub(super) group: Pid,
    tag: Option<ProcessTag>,
}

/// Sends requests to a supervisor, which must not be reaped.
#[derive(Debug)]
pub(super) struct Control {
    supervisor: Pid,
    requests: UnixStream,
}

/// Supervisor whose end is waited for.
#[derive(Debug)]
pub(super) struct Ending {
    child: Child,
    replies: BufReader<UnixStream>,
    group: Pid,
    tag: Option<ProcessTag>,
}

impl Supervised {
    /// Splits the value in the part that sends requests, the part that waits, and standard output and standard error.
    pub(super) fn split(self) -> (Control, Ending, (PipeReader, PipeReader)) {
        let Self { child, control, replies, output, group, tag } = self;
        (control, Ending { child, replies, group, tag }, output)
    }
}

impl Control {
    /// Sends a signal to the group of the program. SIGKILL goes to all that the program has started.
    pub(super) fn signal(&self, signal: Signal) {
        // The supervisor may have exited; the errors are ignored.
        if signal == Signal::KILL {
            self.requests.shutdown(Shutdown::Write).ok();
        } else {
            (&self.requests).write_all(signal_request(signal).as_bytes()).ok();
        }
        // A supervisor that is stopped would send nothing.
        kill_process(self.supervisor, Signal::CONT).ok();
    }
}

impl Ending {
    /// Waits until the program and all that it has started have ended. Returns its exit status; `None` if its supervisor was
    /// killed. The supervisor stays a zombie.
    pub(super) fn wait(&mut self) -> Option<ExitStatus> {
        let reply = read_reply(&mut self.replies);
        wait_without_reaping(Pid::from_child(&self.child));
        match reply {
            Ok(Reply::Ended(status)) => Some(ExitStatus::from_raw(status)),
            Ok(Reply::Started(_)) | Err(_) => {
                kill_abandoned(self.group, self.tag);
                None
            }
        }
    }

    /// Reaps the supervisor, and returns its exit status.
    pub(super) fn reap(mut self) -> ExitStatus {
        self.child.wait().unwrap_or_default()
    }
}

fn read_reply(replies: &mut BufReader<UnixStream>) -> io::Result<Reply> {
    let mut line = String::new();
    replies.read_line(&mut line)?;
    line.parse()
}
