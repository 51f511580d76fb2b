//! What is left of processes when they, or we, end: real processes, real signals.
//!
//! Who is alive is told by a pipe: each process of a script holds its writing end, so the reading end sees the end of
//! file at the moment the last of them is gone.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bridge::process::{FirstLine, OutputSink, OutputStream, Process, ProcessSpec, Spawner, describe_exit};
use tokio::signal::unix::{SignalKind, signal};

/// A loop that never ends by itself, in a child and a grandchild that ignore every polite signal. Says `first`, then `up`.
const STUBBORN: &str =
    "trap '' INT TERM HUP; echo first; echo up; (while :; do sleep 1; done) & while :; do sleep 1; done";
/// How long a test waits for what must come.
const LIMIT: Duration = Duration::from_secs(20);

fn spawn(script: &str, sink: Arc<dyn OutputSink>) -> Process {
    let spec = ProcessSpec {
        program: "/bin/sh".into(),
        arguments: ["-c".into(), script.into()].into(),
        directory: "/".into(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
    };
    Spawner::unsupervised().spawn(&spec, sink).unwrap()
}

/// Opens a named pipe for reading; `exec 3>PIPE` in a script makes that script and all it starts a holder of it.
struct Alive(mpsc::Receiver<()>);

impl Alive {
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

    fn hold(folder: &Path, script: &str) -> String {
        format!("exec 3>'{}'; {script}", folder.join("alive").display())
    }

    fn assert_nobody_is_left(&self) {
        self.0.recv_timeout(LIMIT).expect("a process is left");
    }

    fn assert_somebody_lives(&self) {
        assert_eq!(self.0.try_recv(), Err(mpsc::TryRecvError::Empty), "nobody lives");
    }
}

/// The program that starts processes under supervision.
struct Supervised {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Supervised {
    fn start(mode: &str, script: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bridge-supervised"));
        let mut child = command.args([mode, script]).stdout(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdout }
    }

    fn wait_for_line(&mut self, wanted: &str) {
        let mut line = String::new();
        while line.trim_end() != wanted {
            line.clear();
            assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "it ended without saying {wanted}");
        }
    }

    /// SIGKILL to it alone, and the rest of what it and those who share its output wrote.
    fn kill(mut self) -> String {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        rest
    }
}

#[test]
fn killing_us_leaves_no_process_and_no_grandchild() {
    let folder = tempfile::tempdir().unwrap();
    let alive = Alive::new(folder.path());
    let mut supervised = Supervised::start("run", &Alive::hold(folder.path(), STUBBORN));
    supervised.wait_for_line("up");
    alive.assert_somebody_lives();
    supervised.kill();
    alive.assert_nobody_is_left();
}

#[test]
fn killing_us_before_a_process_is_registered_runs_nothing_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let mut supervised = Supervised::start("gate", &format!("touch '{}'", mark.display()));
    supervised.wait_for_line("closed");
    // The gate shares the output: it has ended when the output has.
    assert_eq!(supervised.kill(), "");
    assert!(!mark.exists());
}

#[test]
fn dropping_a_process_kills_its_grandchildren_too() {
    let folder = tempfile::tempdir().unwrap();
    let alive = Alive::new(folder.path());
    let (sink, lines) = collecting();
    let process = spawn(&Alive::hold(folder.path(), STUBBORN), sink);
    assert_eq!(lines.recv_timeout(LIMIT).unwrap(), "up");
    alive.assert_somebody_lives();
    drop(process);
    alive.assert_nobody_is_left();
}

#[tokio::test]
async fn stopping_asks_first_and_kills_afterwards() {
    // A shell that was made where SIGINT is ignored, as a background job is, could not trap it.
    let _interrupts = signal(SignalKind::interrupt()).unwrap();
    let polite = spawn("trap 'echo bye; exit 3' INT; echo up; while :; do sleep 0.01; done", Arc::new(()));
    assert!(matches!(polite.first_line().await, FirstLine::Line(line) if line == "up"));
    polite.stop(LIMIT).await;
    assert_eq!(describe_exit(polite.exit().unwrap()), "exit status 3");
    assert_eq!(polite.last_lines(OutputStream::Stdout), ["up", "bye"]);

    let folder = tempfile::tempdir().unwrap();
    let alive = Alive::new(folder.path());
    let stubborn = spawn(&Alive::hold(folder.path(), STUBBORN), Arc::new(()));
    stubborn.first_line().await;
    stubborn.stop(Duration::from_millis(20)).await;
    assert_eq!(describe_exit(stubborn.exit().unwrap()), "killed by signal 9");
    alive.assert_nobody_is_left();
}

#[tokio::test]
async fn what_a_leader_leaves_behind_dies_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let alive = Alive::new(folder.path());
    let process = spawn(&Alive::hold(folder.path(), "(while :; do sleep 1; done) & echo up; exit 7"), Arc::new(()));
    assert_eq!(describe_exit(process.exited().await), "exit status 7");
    alive.assert_nobody_is_left();
}

#[tokio::test]
async fn output_is_read_for_ever_and_the_last_of_it_kept() {
    let (sink, lines) = collecting();
    let process = spawn("echo 1234; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo $i >&2; done; printf end", sink);
    assert!(matches!(process.first_line().await, FirstLine::Line(line) if line == "1234"));
    process.exited().await;
    process.drained().await;
    assert_eq!(lines.iter().take(20001).count(), 20001);
    assert_eq!(process.last_lines(OutputStream::Stderr).last().unwrap(), "20000");
    assert_eq!(process.last_lines(OutputStream::Stderr).len(), 50);
    assert_eq!(process.last_lines(OutputStream::Stdout), ["1234", "end"]);
}

#[tokio::test]
async fn output_that_ends_before_its_first_line_is_told_apart() {
    assert!(matches!(spawn("printf 12", Arc::new(())).first_line().await, FirstLine::Ended(start) if start == "12"));
    assert!(matches!(spawn("exit 1", Arc::new(())).first_line().await, FirstLine::Ended(start) if start.is_empty()));
}

#[tokio::test]
async fn the_environment_is_what_was_passed_and_nothing_else() {
    let process = spawn("env | grep -v -e '^PWD=' -e '^SHLVL=' -e '^_='", Arc::new(()));
    process.exited().await;
    process.drained().await;
    assert_eq!(process.last_lines(OutputStream::Stdout), ["PATH=/usr/bin:/bin"]);
}

/// A sink whose lines can be waited for.
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
