//! A child process as a value.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid};
use tokio::sync::{oneshot, watch};

use super::output::{OutputSink, OutputStream, Tail, read_lines};
use super::supervisor::{Supervisor, SupervisorError};
use super::{ProcessSpec, gate};

/// How long a killed process may take to be gone; longer only where the kernel itself is stuck.
const KILL_LIMIT: Duration = Duration::from_secs(5);
/// How long pipes are read after the process that was started is gone: somebody else may hold them for ever.
const DRAIN_LIMIT: Duration = Duration::from_millis(500);

/// Why a process was not started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The system refused. Where a supervisor is at work, what concerns the program itself is said by
    /// [`FirstLine::NotRun`] instead.
    #[error("cannot start {}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The process could not be put under supervision, and was not started.
    #[error("cannot start {} without supervision", program.display())]
    Unsupervised {
        /// The program.
        program: PathBuf,
        /// Why.
        #[source]
        source: SupervisorError,
    },
}

/// Starts processes, under supervision if there is a supervisor.
#[derive(Clone, Debug, Default)]
pub struct Spawner {
    supervisor: Option<Arc<Supervisor>>,
}

/// What came first on standard output.
#[derive(Debug)]
pub enum FirstLine {
    /// A line, without its end.
    Line(String),
    /// The output ended before the first line did, with this beginning of one. (So does a line that is too long.)
    Ended(String),
    /// The program could not be run at all.
    NotRun(io::Error),
}

/// A running process, the leader of its own process group. Its standard input is a pipe that stays open and empty.
///
/// # Invariants
/// Dropping it kills the whole group and waits (shortly) for its leader to be gone. When the leader ends by itself, what
/// is left of its group is killed. The group is signalled only while its number is certainly its own.
#[derive(Debug)]
pub struct Process {
    shared: Arc<Shared>,
    first_line: Mutex<Option<oneshot::Receiver<FirstLine>>>,
    exited: watch::Receiver<Option<ExitStatus>>,
    open_pipes: watch::Receiver<usize>,
    _stdin: ChildStdin,
}

#[derive(Debug)]
struct Shared {
    group: Pid,
    /// Whether the leader has been reaped; held while signalling, so that it is not reaped meanwhile.
    reaped: Mutex<bool>,
    gone: Condvar,
    stdout: Tail,
    stderr: Tail,
}

impl Spawner {
    /// A spawner whose processes die with us, even if we are killed.
    pub fn supervised(supervisor: Arc<Supervisor>) -> Self {
        Self { supervisor: Some(supervisor) }
    }

    /// A spawner whose processes die with their values only: for tests, and for short work.
    pub fn unsupervised() -> Self {
        Self::default()
    }

    /// Starts a process. Takes about a millisecond, in which it blocks.
    ///
    /// # Errors
    /// [`SpawnError`]; nothing runs then.
    pub fn spawn(&self, spec: &ProcessSpec, sink: Arc<dyn OutputSink>) -> Result<Process, SpawnError> {
        let mut command = match &self.supervisor {
            Some(supervisor) => {
                let mut command = Command::new(supervisor.program());
                command.arg(gate::ARGUMENT).arg(&spec.program);
                command
            }
            None => Command::new(&spec.program),
        };
        command
            .args(&spec.arguments)
            .env_clear()
            .envs(spec.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(&spec.directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let failed = |source| SpawnError::Start { program: spec.program.clone(), source };
        let mut child = gate::retry_while_busy(|| command.spawn()).map_err(failed)?;
        let group = Pid::from_child(&child);
        let mut stdin = child.stdin.take().expect("stdin is piped");
        if let Some(supervisor) = &self.supervisor {
            // The gate exits when it cannot be opened any more, that is, when `stdin` is dropped.
            if let Err(source) = supervisor.register(group) {
                drop(stdin);
                child.wait().map_err(failed)?;
                return Err(SpawnError::Unsupervised { program: spec.program.clone(), source });
            }
            if let Err(error) = stdin.write_all(b"\n") {
                supervisor.release(group).ok();
                child.wait().map_err(failed)?;
                return Err(failed(error));
            }
        }
        Process::watch(child, stdin, group, self.supervisor.clone(), sink).map_err(|error| {
            kill_process_group(group, Signal::KILL).ok();
            failed(error)
        })
    }
}

impl Process {
    fn watch(
        mut child: Child,
        stdin: ChildStdin,
        group: Pid,
        supervisor: Option<Arc<Supervisor>>,
        sink: Arc<dyn OutputSink>,
    ) -> io::Result<Self> {
        let (first_sender, first_line) = oneshot::channel();
        let (exit_sender, exited) = watch::channel(None);
        let (pipe_sender, open_pipes) = watch::channel(2);
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let shared = Arc::new(Shared {
            group,
            reaped: Mutex::new(false),
            gone: Condvar::new(),
            stdout: Tail::default(),
            stderr: Tail::default(),
        });

        // Threads, not tasks: a busy runtime must not stop a plugin's pipe, and a dropped one must not lose a process.
        let (of_stdout, out_sink, out_pipes) = (shared.clone(), sink.clone(), pipe_sender.clone());
        start_thread("plugin stdout", move || {
            let mut first = Some(first_sender);
            read_lines(stdout.expect("stdout is piped"), |line, ended| {
                if let Some(sender) = first.take() {
                    // Nobody waits for it any more: it is lost on nobody.
                    sender.send(first_line_of(line, ended)).ok();
                } else {
                    out_sink.line(OutputStream::Stdout, line);
                }
                of_stdout.stdout.push(line);
            });
            if let Some(sender) = first {
                sender.send(FirstLine::Ended(String::new())).ok();
            }
            out_pipes.send_modify(|open| *open -= 1);
        })?;
        let of_stderr = shared.clone();
        start_thread("plugin stderr", move || {
            read_lines(stderr.expect("stderr is piped"), |line, _| {
                of_stderr.stderr.push(line);
                sink.line(OutputStream::Stderr, line);
            });
            pipe_sender.send_modify(|open| *open -= 1);
        })?;
        let of_exit = shared.clone();
        start_thread("plugin exit", move || {
            let status = of_exit.wait_and_reap(child, supervisor);
            exit_sender.send_replace(Some(status));
        })?;
        Ok(Self { shared, first_line: Mutex::new(Some(first_line)), exited, open_pipes, _stdin: stdin })
    }

    /// The process id, which is the number of its group too.
    pub fn id(&self) -> i32 {
        self.shared.group.as_raw_nonzero().get()
    }

    /// The first line of standard output: waits for it, and gives it to the first who asks.
    pub async fn first_line(&self) -> FirstLine {
        let receiver = self.first_line.lock().unwrap_or_else(PoisonError::into_inner).take();
        match receiver {
            Some(receiver) => receiver.await.unwrap_or_else(|_| FirstLine::Ended(String::new())),
            None => FirstLine::Ended(String::new()),
        }
    }

    /// How it ended, if it has.
    pub fn exit(&self) -> Option<ExitStatus> {
        *self.exited.borrow()
    }

    /// Waits until it has ended.
    ///
    /// # Cancellation
    /// Nothing is lost.
    pub async fn exited(&self) -> ExitStatus {
        let mut exited = self.exited.clone();
        let status = exited.wait_for(Option::is_some).await.ok().and_then(|status| *status);
        status.expect("the watching thread says the status before it ends")
    }

    /// The last lines it wrote, up to now.
    pub fn last_lines(&self, stream: OutputStream) -> Vec<String> {
        match stream {
            OutputStream::Stdout => self.shared.stdout.lines(),
            OutputStream::Stderr => self.shared.stderr.lines(),
        }
    }

    /// Waits until both of its output pipes have ended, but not for long: somebody who left the group may hold them.
    pub async fn drained(&self) {
        let mut open_pipes = self.open_pipes.clone();
        tokio::time::timeout(DRAIN_LIMIT, open_pipes.wait_for(|open| *open == 0)).await.ok();
    }

    /// Ends the whole group: SIGINT, then after `grace` SIGKILL. Returns once nothing of it is left and its output is
    /// read.
    pub async fn stop(&self, grace: Duration) {
        self.shared.signal(Signal::INT);
        if tokio::time::timeout(grace, self.exited()).await.is_err() {
            self.kill();
            tokio::time::timeout(KILL_LIMIT, self.exited()).await.ok();
        }
        self.drained().await;
        self.shared.wait_for_group().await;
    }

    /// Kills the whole group, and returns at once.
    pub fn kill(&self) {
        self.shared.signal(Signal::KILL);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        let reaped = self.shared.lock();
        // Who waits longer than this waits for the kernel.
        drop(self.shared.gone.wait_timeout_while(reaped, Duration::from_secs(1), |reaped| !*reaped));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, bool> {
        self.reaped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn signal(&self, signal: Signal) {
        let reaped = self.lock();
        if !*reaped {
            // A group that is gone already is what every signal of ours wants.
            kill_process_group(self.group, signal).ok();
        }
    }

    /// Waits for the leader to end, kills the rest of its group while the dead leader still holds the number, takes it
    /// off the supervisor's list, and only then gives the number back.
    fn wait_and_reap(&self, mut child: Child, supervisor: Option<Arc<Supervisor>>) -> ExitStatus {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(self.group), options), Err(Errno::INTR)) {}
        let mut reaped = self.lock();
        kill_process_group(self.group, Signal::KILL).ok();
        if let Some(supervisor) = supervisor {
            // A supervisor that is lost can kill nobody.
            supervisor.release(self.group).ok();
        }
        let status = child.wait().unwrap_or_default();
        *reaped = true;
        self.gone.notify_all();
        status
    }

    /// Waits until no process of the group is left, but not for long: orphans that nobody reaps count as left.
    async fn wait_for_group(&self) {
        let empty = async {
            while test_kill_process_group(self.group).is_ok() {
                // The system reports the end of our own child, never that of its children: asking is all there is.
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(DRAIN_LIMIT, empty).await.ok();
    }
}

fn first_line_of(line: &str, ended: bool) -> FirstLine {
    match gate::reported_failure(line) {
        Some(error) => FirstLine::NotRun(error),
        None if ended => FirstLine::Line(line.to_owned()),
        None => FirstLine::Ended(line.to_owned()),
    }
}

fn start_thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}
