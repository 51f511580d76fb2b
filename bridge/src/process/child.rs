//! A child process with its process group, output pipes and exit status.

use std::io::{self, PipeReader};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};
use tokio::sync::{oneshot, watch};

use super::background::{start_thread, wait_without_reaping};
use super::output::{LogLevel, OutputSink, OutputStream, Rest, Tail, read_lines};
use super::sandbox::TemporaryFolder;
use super::supervision::{Control, Ending, Supervision, SupervisorError};
use super::tag::ProcessTag;
use super::{ProcessSandbox, ProcessSpec, describe_exit, gate};
use crate::fs::FileError;

/// Limit on the wait for a killed process to exit. The kernel exceeds it only if it hangs.
const KILL_LIMIT: Duration = Duration::from_secs(5);
/// Limit on the wait for the end of the output, which a process outside the group may hold open forever, and on the wait
/// for the end of the group, in which orphans that are never reaped stay.
const DRAIN_LIMIT: Duration = Duration::from_millis(500);

/// Reason why a process was not started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The operating system did not create the process. With a supervisor, errors about the program itself are returned
    /// as [`FirstLine::ExecFailed`] instead.
    #[error("cannot start {}", program.display())]
    Start {
        /// Path of the program.
        program: PathBuf,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The supervisor of the program did not start. The program was not executed.
    #[error("cannot start {} without supervision", program.display())]
    Unsupervised {
        /// Path of the program.
        program: PathBuf,
        /// Error of the supervisor.
        #[source]
        source: SupervisorError,
    },
    /// The program must run in a sandbox, which only a supervised process can have. The program was not executed.
    #[error("cannot start {} in a sandbox without supervision", .0.display())]
    NoSandbox(PathBuf),
    /// The folder for the temporary files of the program was not created. The program was not executed.
    #[error("cannot create a folder for temporary files of {}", program.display())]
    TemporaryFolder {
        /// Path of the program.
        program: PathBuf,
        /// Error of the file system.
        #[source]
        source: FileError,
    },
}

/// Starts processes, supervised if a supervisor is set.
#[derive(Clone, Debug, Default)]
pub struct Spawner {
    supervision: Option<Arc<Supervision>>,
}

/// First line of the standard output of a process, or the reason why there is none.
#[derive(Debug)]
pub enum FirstLine {
    /// Complete line, without its line end.
    Line(String),
    /// Beginning of a line that has no end: the output ended, or the line is too long.
    Incomplete(String),
    /// The program could not be executed. The error contains a [`SandboxError`](super::SandboxError) if its sandbox could not
    /// be applied.
    ExecFailed(io::Error),
}

/// Running process, the leader of its own process group, and, if it is supervised, of its own session. Its standard
/// input is a pipe that stays open and empty.
///
/// # Invariants
/// Dropping it kills the process group and waits up to one second until the leader is reaped. If the leader exits by
/// itself, the rest of the group is killed. The group is signalled only before its leader is reaped: afterwards its
/// number may belong to another group.
#[derive(Debug)]
pub struct Process {
    shared: Arc<Shared>,
    first_line: Mutex<Option<oneshot::Receiver<FirstLine>>>,
    exited: watch::Receiver<Option<ExitStatus>>,
    open_pipes: watch::Receiver<usize>,
    temporary_folder: Option<PathBuf>,
    _stdin: Option<ChildStdin>,
}

#[derive(Debug)]
struct Shared {
    group: Pid,
    signals: Signals,
    /// True once the process that is waited for has been reaped. Locked while a signal is sent, so that it is not reaped
    /// meanwhile.
    reaped: Mutex<bool>,
    gone: Condvar,
    stdout: Tail,
    stderr: Tail,
    /// Beginning of the last line of standard output, while its line end is missing.
    rest: Rest,
}

/// Way in which signals reach a process group.
#[derive(Debug)]
enum Signals {
    /// The leader is a child of this process.
    Direct,
    /// The leader is a child of its supervisor, which sends them.
    Supervisor(Control),
}

/// Process that ends with the leader of the group.
#[derive(Debug)]
enum Waited {
    /// The leader itself.
    Leader(Child),
    /// The supervisor of the leader.
    Supervisor(Ending),
}

/// Parts of a process that is started.
struct Started {
    group: Pid,
    signals: Signals,
    waited: Waited,
    /// Standard output and standard error.
    output: (PipeReader, PipeReader),
    stdin: Option<ChildStdin>,
}

impl Spawner {
    /// Returns a spawner whose processes are killed when `sc` exits, even by SIGKILL.
    pub fn supervised(supervision: Arc<Supervision>) -> Self {
        Self { supervision: Some(supervision) }
    }

    /// Returns a spawner whose processes are killed only when their [`Process`] is dropped: for tests and short
    /// commands.
    pub fn unsupervised() -> Self {
        Self::default()
    }

    /// Starts a process. Blocks for about a millisecond. A process in a sandbox has a folder of its own for temporary files,
    /// which `TMPDIR` names, and which is removed when the process and all its children have ended.
    ///
    /// # Errors
    /// [`SpawnError`]; no process is left running.
    pub fn spawn(&self, spec: &ProcessSpec, sink: Arc<dyn OutputSink>) -> Result<Process, SpawnError> {
        let temporary_folder = match (&spec.sandbox, &self.supervision) {
            (ProcessSandbox::None, _) => None,
            (_, None) => return Err(SpawnError::NoSandbox(spec.program.clone())),
            (_, Some(_)) => {
                let created = TemporaryFolder::create(&spec.environment);
                let failed = |source| SpawnError::TemporaryFolder { program: spec.program.clone(), source };
                Some(created.map_err(failed)?)
            }
        };
        let started = match &self.supervision {
            Some(supervision) => start_supervised(supervision, spec, temporary_folder.as_ref()),
            None => start_directly(spec),
        }?;
        let group = started.group;
        Process::watch(started, temporary_folder, sink).map_err(|error| {
            send_signal(group, Signal::KILL);
            SpawnError::Start { program: spec.program.clone(), source: error }
        })
    }
}

fn start_supervised(
    supervision: &Supervision,
    spec: &ProcessSpec,
    temporary_folder: Option<&TemporaryFolder>,
) -> Result<Started, SpawnError> {
    let tag = ProcessTag::new();
    let own = temporary_folder.iter().map(|folder| folder.path().to_owned());
    let mut command = supervision.command(tag, &spec.sandbox.clone().with_files([], own));
    command.arg(&spec.program);
    complete(&mut command, spec);
    command.envs(temporary_folder.into_iter().flat_map(TemporaryFolder::variables));
    let supervised = supervision.start(command, tag).map_err(|error| match error {
        SupervisorError::Start { source, .. } => SpawnError::Start { program: spec.program.clone(), source },
        SupervisorError::Lost(_) => SpawnError::Unsupervised { program: spec.program.clone(), source: error },
    })?;
    let group = supervised.group;
    let (control, ending, output) = supervised.split();
    let (signals, waited) = (Signals::Supervisor(control), Waited::Supervisor(ending));
    Ok(Started { group, signals, waited, output, stdin: None })
}

fn start_directly(spec: &ProcessSpec) -> Result<Started, SpawnError> {
    let mut command = Command::new(&spec.program);
    command.process_group(0);
    complete(&mut command, spec);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let failed = |source| SpawnError::Start { program: spec.program.clone(), source };
    let mut child = gate::retry_while_busy(|| command.spawn()).map_err(failed)?;
    let stdout = OwnedFd::from(child.stdout.take().expect("stdout is piped"));
    let stderr = OwnedFd::from(child.stderr.take().expect("stderr is piped"));
    let (output, stdin) = ((stdout.into(), stderr.into()), child.stdin.take());
    let (group, signals, waited) = (Pid::from_child(&child), Signals::Direct, Waited::Leader(child));
    Ok(Started { group, signals, waited, output, stdin })
}

/// Adds the arguments, the working directory and the environment to the command of a program.
fn complete(command: &mut Command, spec: &ProcessSpec) {
    let environment = spec.environment.iter().map(|(name, value)| (name, value));
    command.args(&spec.arguments).env_clear().envs(environment).current_dir(&spec.directory);
}

impl Process {
    fn watch(
        started: Started,
        temporary_folder: Option<TemporaryFolder>,
        sink: Arc<dyn OutputSink>,
    ) -> io::Result<Self> {
        let Started { group, signals, waited, output: (stdout, stderr), stdin } = started;
        let (first_sender, first_line) = oneshot::channel();
        let (exit_sender, exited) = watch::channel(None);
        let (pipe_sender, open_pipes) = watch::channel(2);
        let of_temporary_files = temporary_folder.as_ref().map(|folder| folder.path().to_owned());
        let shared = Arc::new(Shared {
            group,
            signals,
            reaped: Mutex::new(false),
            gone: Condvar::new(),
            stdout: Tail::default(),
            stderr: Tail::default(),
            rest: Rest::default(),
        });

        // Threads, not tasks: a busy runtime must not block a plugin's pipe, and a dropped runtime must not leak a
        // process.
        let (of_stdout, out_sink, out_pipes) = (shared.clone(), sink.clone(), pipe_sender.clone());
        start_thread("plugin stdout", move || {
            let mut first = Some(first_sender);
            let on_line = |line: &str, is_complete| {
                if let Some(sender) = first.take() {
                    // The receiver may have been dropped; the error is ignored.
                    sender.send(first_line_of(line, is_complete)).ok();
                } else {
                    out_sink.line(OutputStream::Stdout, line);
                }
                of_stdout.stdout.push(line);
            };
            read_lines(stdout, on_line, |rest| of_stdout.rest.set(rest));
            if let Some(sender) = first {
                sender.send(FirstLine::Incomplete(String::new())).ok();
            }
            out_pipes.send_modify(|open| *open -= 1);
        })?;
        let (of_stderr, exit_sink) = (shared.clone(), sink.clone());
        start_thread("plugin stderr", move || {
            let on_line = |line: &str, _| {
                of_stderr.stderr.push(line);
                sink.line(OutputStream::Stderr, line);
            };
            read_lines(stderr, on_line, |_| ());
            pipe_sender.send_modify(|open| *open -= 1);
        })?;
        let of_exit = shared.clone();
        start_thread("plugin exit", move || {
            let status = of_exit.wait_and_reap(waited, temporary_folder, &*exit_sink);
            exit_sender.send_replace(Some(status));
        })?;
        Ok(Self {
            shared,
            first_line: Mutex::new(Some(first_line)),
            exited,
            open_pipes,
            temporary_folder: of_temporary_files,
            _stdin: stdin,
        })
    }

    /// Returns the folder for its temporary files, if it has one of its own.
    pub fn temporary_folder(&self) -> Option<&Path> {
        self.temporary_folder.as_deref()
    }

    /// Returns the process id, which is also the id of the process group.
    pub fn id(&self) -> i32 {
        self.shared.group.as_raw_nonzero().get()
    }

    /// Returns a future that waits for the first line of standard output, and does not keep the process. Later calls return
    /// an empty [`FirstLine::Incomplete`].
    pub fn first_line(&self) -> impl Future<Output = FirstLine> + Send + use<> {
        let receiver = self.first_line.lock().unwrap_or_else(PoisonError::into_inner).take();
        async move {
            match receiver {
                Some(receiver) => receiver.await.unwrap_or_else(|_| FirstLine::Incomplete(String::new())),
                None => FirstLine::Incomplete(String::new()),
            }
        }
    }

    /// Returns the exit status; `None` while the process runs.
    pub fn exit_status(&self) -> Option<ExitStatus> {
        *self.exited.borrow()
    }

    /// Waits until the process exits and returns its exit status.
    ///
    /// # Cancellation
    /// The exit status stays available.
    pub async fn wait_for_exit(&self) -> ExitStatus {
        let mut exited = self.exited.clone();
        let status = exited.wait_for(Option::is_some).await.ok().and_then(|status| *status);
        status.expect("the exit thread sends the status before it ends")
    }

    /// Returns a future that waits until the process has exited, and does not keep the process.
    pub(crate) fn exited(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut exited = self.exited.clone();
        // The sender is dropped only after it has sent the status.
        async move { drop(exited.wait_for(Option::is_some).await) }
    }

    /// Returns the last lines that the process has written to a stream so far.
    pub fn last_lines(&self, stream: OutputStream) -> Vec<String> {
        match stream {
            OutputStream::Stdout => self.shared.stdout.lines(),
            OutputStream::Stderr => self.shared.stderr.lines(),
        }
    }

    /// Returns the beginning of the last line of standard output if its line end is missing so far; `None` if nothing follows
    /// the last line end.
    pub fn unended_line(&self) -> Option<String> {
        Some(self.shared.rest.get()).filter(|line| !line.is_empty())
    }

    /// Waits until both output pipes are closed, at most 500 ms: a process that left the group may hold them open.
    pub async fn wait_for_output_end(&self) {
        let mut open_pipes = self.open_pipes.clone();
        tokio::time::timeout(DRAIN_LIMIT, open_pipes.wait_for(|open| *open == 0)).await.ok();
    }

    /// Stops the process group: sends SIGINT, and SIGKILL if the leader still runs after `grace`. Returns once no
    /// process of the group is left and the output is read.
    pub async fn stop(&self, grace: Duration) {
        self.stop_with(Signal::INT, grace).await;
    }

    /// Same as [`Process::stop`], with SIGTERM instead of SIGINT.
    pub async fn terminate(&self, grace: Duration) {
        self.stop_with(Signal::TERM, grace).await;
    }

    async fn stop_with(&self, signal: Signal, grace: Duration) {
        self.shared.signal(signal);
        if tokio::time::timeout(grace, self.wait_for_exit()).await.is_err() {
            self.kill();
            tokio::time::timeout(KILL_LIMIT, self.wait_for_exit()).await.ok();
        }
        self.wait_for_group_end().await;
    }

    /// Waits until no process of the group of an exited leader is left and the output is read, at most a second.
    pub async fn wait_for_group_end(&self) {
        self.wait_for_output_end().await;
        self.shared.wait_for_group().await;
    }

    /// Sends SIGKILL to the process group and returns without waiting.
    pub fn kill(&self) {
        self.shared.signal(Signal::KILL);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        let reaped = self.shared.lock();
        // A killed process is reaped within the second unless the kernel hangs.
        drop(self.shared.gone.wait_timeout_while(reaped, Duration::from_secs(1), |reaped| !*reaped));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, bool> {
        self.reaped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn signal(&self, signal: Signal) {
        let reaped = self.lock();
        if *reaped {
            return;
        }
        match &self.signals {
            Signals::Direct => send_signal(self.group, signal),
            Signals::Supervisor(control) => control.signal(signal),
        }
    }

    /// Waits for the leader to exit, and for the end of all that it has started, removes its temporary files, and then reaps
    /// what was waited for. Reports the end of a supervisor that ends before its program.
    fn wait_and_reap(
        &self,
        mut waited: Waited,
        temporary_folder: Option<TemporaryFolder>,
        sink: &dyn OutputSink,
    ) -> ExitStatus {
        let ended = match &mut waited {
            Waited::Leader(_) => {
                wait_without_reaping(self.group);
                // Until it is reaped, the dead leader reserves the number of the group.
                kill_process_group(self.group, Signal::KILL).ok();
                None
            }
            Waited::Supervisor(ending) => ending.wait(),
        };
        // The files may be many: a signal to the group does not wait for their removal.
        drop(temporary_folder);
        let mut reaped = self.lock();
        let status = match waited {
            Waited::Leader(mut child) => child.wait().unwrap_or_default(),
            Waited::Supervisor(ending) => {
                let status = ending.reap();
                if ended.is_none() {
                    let how = describe_exit(status);
                    sink.log(LogLevel::Error, &format!("its supervisor process has ended ({how}), so it was killed"));
                }
                status
            }
        };
        *reaped = true;
        self.gone.notify_all();
        ended.unwrap_or(status)
    }

    /// Waits until no process of the group is left, at most 500 ms: orphans that are never reaped stay in the group.
    async fn wait_for_group(&self) {
        let empty = async {
            while test_kill_process_group(self.group).is_ok() {
                // Polls: the system reports the exit of our child, not the exits of its children.
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(DRAIN_LIMIT, empty).await.ok();
    }
}

/// Sends a signal to a group whose leader is not reaped. SIGKILL goes to the leader too, wherever it is.
fn send_signal(group: Pid, signal: Signal) {
    let sent = kill_process_group(group, signal);
    if sent.is_err() || signal == Signal::KILL {
        // It may have exited already; the error is ignored.
        kill_process(group, signal).ok();
    }
}

fn first_line_of(line: &str, is_complete: bool) -> FirstLine {
    match gate::parse_failure(line) {
        Some(error) => FirstLine::ExecFailed(error),
        None if is_complete => FirstLine::Line(line.to_owned()),
        None => FirstLine::Incomplete(line.to_owned()),
    }
}
