//! Tests of the cleanup of processes when they or `sc` exit, with real processes and signals.
//!
//! A named pipe shows which processes are alive: each process of a script holds its write end open, so that the read
//! end reaches end of file when the last of them exits.

#![expect(clippy::unwrap_used, reason = "helpers of tests panic at the first failure")]

#[cfg(target_os = "linux")]
mod supervision;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bridge::process::{
    FirstLine, OutputSink, OutputStream, Process, ProcessSandbox, ProcessSpec, Spawner, describe_exit,
};
use tokio::signal::unix::{SignalKind, signal};

/// Script that loops forever in a child and a grandchild, which ignore SIGINT, SIGTERM and SIGHUP. Prints `first` and
/// `up`.
const STUBBORN: &str =
    "trap '' INT TERM HUP; echo first; echo up; (while :; do sleep 1; done) & while :; do sleep 1; done";
/// Limit on each wait of a test.
const LIMIT: Duration = Duration::from_secs(20);

fn spawn(script: &str, sink: Arc<dyn OutputSink>) -> Process {
    let spec = ProcessSpec {
        program: "/bin/sh".into(),
        arguments: ["-c".into(), script.into()].into(),
        directory: "/".into(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        sandbox: ProcessSandbox::None,
    };
    Spawner::unsupervised().spawn(&spec, sink).unwrap()
}

/// Named pipe, open for reading. `exec 3>PIPE` in a script makes the script and its children hold the write end.
struct LivenessPipe(mpsc::Receiver<()>);

impl LivenessPipe {
    fn new(folder: &Path) -> Self {
        let pipe = folder.join("alive");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let mut pipe = File::open(pipe).unwrap();
            pipe.read_to_end(&mut Vec::new()).unwrap();
            sender.send(()).ok();
        });
        Self(receiver)
    }

    fn held_by(folder: &Path, script: &str) -> String {
        format!("exec 3>'{}'; {script}", folder.join("alive").display())
    }

    fn assert_all_exited(&self) {
        self.0.recv_timeout(LIMIT).expect("all processes exit");
    }

    fn assert_any_running(&self) {
        assert_eq!(self.0.try_recv(), Err(mpsc::TryRecvError::Empty), "all processes have exited");
    }
}

/// Program that starts supervised processes.
struct Supervised {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Supervised {
    fn start(mode: &str, script: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bridge-supervised"));
        command.args([mode, script]);
        Self::start_command(command)
    }

    fn start_command(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdout }
    }

    fn wait_for_line(&mut self, wanted: &str) {
        let mut line = String::new();
        while line.trim_end() != wanted {
            line.clear();
            assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "it exited without printing {wanted}");
        }
    }

    fn write_line(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    /// Sends SIGKILL to the program alone. Returns the rest of the output of the program and of all processes that
    /// share it.
    fn kill(mut self) -> String {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        rest
    }
}

/// Kills the program if the test fails, so that its end is seen.
impl Drop for Supervised {
    fn drop(&mut self) {
        // It was killed already unless the test failed.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Shows: plugins.md#processes "The supervisors kill their descendants."
#[test]
fn killed_parent_leaves_no_process_and_no_grandchild() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = LivenessPipe::new(folder.path());
    let mut supervised = Supervised::start("run", &LivenessPipe::held_by(folder.path(), STUBBORN));
    supervised.wait_for_line("up");
    pipe.assert_any_running();
    supervised.kill();
    pipe.assert_all_exited();
}

/// Shows: plugins.md#processes "`sc` while it starts a plugin | The program of the plugin is not executed."
#[test]
fn program_is_not_executed_if_the_parent_is_killed_before_registration() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let mut supervised = Supervised::start("gate", &format!("touch '{}'", mark.display()));
    supervised.wait_for_line("closed");
    // The gate shares the output: end of output means that the gate has exited.
    assert_eq!(supervised.kill(), "");
    assert!(!mark.exists());
}

#[test]
fn dropped_process_is_killed_with_its_grandchildren() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = LivenessPipe::new(folder.path());
    let (sink, lines) = collecting();
    let process = spawn(&LivenessPipe::held_by(folder.path(), STUBBORN), sink);
    assert_eq!(lines.recv_timeout(LIMIT).unwrap(), "up");
    pipe.assert_any_running();
    drop(process);
    pipe.assert_all_exited();
}

#[tokio::test]
async fn stop_sends_sigint_first_and_sigkill_after_the_grace_period() {
    // A shell started with SIGINT ignored, as in a background job, cannot trap it.
    let _interrupts = signal(SignalKind::interrupt()).unwrap();
    let graceful = spawn("trap 'echo bye; exit 3' INT; echo up; while :; do sleep 0.01; done", Arc::new(()));
    assert!(matches!(graceful.first_line().await, FirstLine::Line(line) if line == "up"));
    graceful.stop(LIMIT).await;
    assert_eq!(describe_exit(graceful.exit_status().unwrap()), "exit status 3");
    assert_eq!(graceful.last_lines(OutputStream::Stdout), ["up", "bye"]);

    let folder = tempfile::tempdir().unwrap();
    let pipe = LivenessPipe::new(folder.path());
    let stubborn = spawn(&LivenessPipe::held_by(folder.path(), STUBBORN), Arc::new(()));
    stubborn.first_line().await;
    stubborn.stop(Duration::from_millis(20)).await;
    assert_eq!(describe_exit(stubborn.exit_status().unwrap()), "killed by signal 9");
    pipe.assert_all_exited();
}

#[tokio::test]
async fn group_is_killed_when_its_leader_exits() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = LivenessPipe::new(folder.path());
    let process =
        spawn(&LivenessPipe::held_by(folder.path(), "(while :; do sleep 1; done) & echo up; exit 7"), Arc::new(()));
    assert_eq!(describe_exit(process.wait_for_exit().await), "exit status 7");
    pipe.assert_all_exited();
}

#[tokio::test]
async fn all_output_is_read_and_the_last_lines_are_kept() {
    let (sink, lines) = collecting();
    let process = spawn("echo 1234; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo $i >&2; done; printf end", sink);
    assert!(matches!(process.first_line().await, FirstLine::Line(line) if line == "1234"));
    process.wait_for_exit().await;
    process.wait_for_output_end().await;
    assert_eq!(lines.iter().take(20001).count(), 20001);
    assert_eq!(process.last_lines(OutputStream::Stderr).last().unwrap(), "20000");
    assert_eq!(process.last_lines(OutputStream::Stderr).len(), 50);
    assert_eq!(process.last_lines(OutputStream::Stdout), ["1234", "end"]);
}

#[tokio::test]
async fn output_without_a_complete_first_line_is_returned_as_incomplete() {
    assert!(
        matches!(spawn("printf 12", Arc::new(())).first_line().await, FirstLine::Incomplete(start) if start == "12")
    );
    assert!(
        matches!(spawn("exit 1", Arc::new(())).first_line().await, FirstLine::Incomplete(start) if start.is_empty())
    );
}

#[tokio::test]
async fn environment_contains_only_the_given_variables() {
    let process = spawn("env | grep -v -e '^PWD=' -e '^SHLVL=' -e '^_='", Arc::new(()));
    process.wait_for_exit().await;
    process.wait_for_output_end().await;
    assert_eq!(process.last_lines(OutputStream::Stdout), ["PATH=/usr/bin:/bin"]);
}

/// Returns a sink and a receiver of its lines.
fn collecting() -> (Arc<dyn OutputSink>, mpsc::Receiver<String>) {
    struct Collect(Mutex<mpsc::Sender<String>>);
    impl OutputSink for Collect {
        fn line(&self, _: OutputStream, line: &str) {
            self.0.lock().unwrap().send(line.to_owned()).ok();
        }
    }
    let (sender, receiver) = mpsc::channel();
    (Arc::new(Collect(Mutex::new(sender))), receiver)
}
