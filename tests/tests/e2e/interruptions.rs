//! Tests that two signals end the program at every moment: while it reads, writes, waits, asks, or calls a plugin.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::processes::{children, signal, wait_until};
use crate::repository::{REC, Repository, Running, Sections, in_place_of};

/// Limit on the end of the program after two signals. At these moments it would otherwise never end.
const LIMIT: Duration = Duration::from_secs(10);

const THING: &str = "thing: { type: rec:index:Thing, config: { v: 1 } }";

/// Sends two signals, and checks that the program ends as cancelled, and that no process is left.
fn assert_two_signals_end(mut running: Running<'_>) -> String {
    let started = Instant::now();
    // Two different signals: two equal ones that arrive together are one.
    running.signal(Signal::INT);
    running.signal(Signal::TERM);
    wait_until("the program has ended", || running.has_ended());
    assert!(started.elapsed() < LIMIT, "{:?}", started.elapsed());
    let output = running.output();
    assert!(output.starts_with("exit 130\n"), "{output}");
    output
}

/// Waits for the end of a command, whose standard input stays open, and returns its exit code.
fn exit_code(child: &mut Child) -> Option<i32> {
    let started = Instant::now();
    wait_until("the program has ended", || child.try_wait().unwrap().is_some());
    assert!(started.elapsed() < LIMIT, "{:?}", started.elapsed());
    child.wait().unwrap().code()
}

/// Creates a named pipe.
fn named_pipe(repository: &Repository, name: &str) -> std::path::PathBuf {
    let pipe = repository.path(name);
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    pipe
}

/// Server that accepts connections and never replies.
struct SilentServer(TcpListener);

impl SilentServer {
    fn new() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    fn port(&self) -> u16 {
        self.0.local_addr().unwrap().port()
    }

    /// Waits for a request. The connection stays open until it is dropped.
    fn wait_for_request(&self) -> TcpStream {
        let (mut connection, _) = self.0.accept().unwrap();
        connection.read_exact(&mut [0; 1]).unwrap();
        connection
    }
}

#[test]
fn while_standard_input_is_read() {
    let repository = Repository::new(Sections::default());
    let pipe = named_pipe(&repository, "input");
    // Open for reading, too, so that opening it does not wait for the program.
    let mut input = File::options().read(true).write(true).open(pipe).unwrap();
    let mut command = repository.command("stack import");
    command.stdin(input.try_clone().unwrap());
    let running = repository.start_command(command);
    // More than a pipe holds: the write ends once the program reads.
    input.write_all(&[b' '; 200_000]).unwrap();
    assert_two_signals_end(running);
}

/// The passphrase is read on the thread of the runtime, inside of a session.
///
/// Shows: engine.md#stop-and-abort "So does the second one if the program does not respond within a second"
#[test]
fn while_the_runtime_waits_for_a_file() {
    let repository = Repository::new(Sections { plugins: REC, resources: THING, outputs: "" });
    let server = repository.read(".sc/stacks/reef/server.yaml");
    repository.write(".sc/stacks/reef/server.yaml", &server.replace("{ passPhrase: hush }", "{}"));
    let pipe = named_pipe(&repository, "passphrase");
    let mut command = repository.command("provision -S");
    command.env("PULUMI_CONFIG_PASSPHRASE_FILE", &pipe);
    let running = repository.start_command(command);
    // Returns once the program has opened the pipe.
    let _writer = File::options().write(true).open(pipe).unwrap();
    let output = assert_two_signals_end(running);
    assert!(repository.names("backend").is_empty(), "{output}");
}

#[test]
fn while_a_plugin_hangs_in_handshake() {
    let server = SilentServer::new();
    let plugins = "- { name: rude, source: { type: local, path: rude.sh } }";
    let repository = Repository::new(Sections { plugins, ..Sections::default() });
    repository.write_script("rude.sh", &format!("echo {}\nexec sleep 1000\n", server.port()));
    let running = repository.start("provision");
    let _connection = server.wait_for_request();
    assert_two_signals_end(running);
}

#[test]
fn while_a_plugin_hangs_in_configure_check_or_create() {
    for (script, call) in [
        (json!({"provider": {"hang": true}}), "Configure rec"),
        (json!({"resources": {"thing--prod": {"hang": "check", "deaf": true}}}), "Check thing--prod"),
        (json!({"resources": {"thing--prod": {"hang": "create", "deaf": true}}}), "Create thing--prod"),
    ] {
        let repository = Repository::new(Sections { plugins: REC, resources: THING, outputs: "" });
        repository.script(script);
        let running = repository.start("provision -S");
        repository.wait_until_called(call);
        assert_two_signals_end(running);
        assert!(!repository.is_locked(), "{call}");
    }
}

#[test]
fn while_a_server_of_packages_does_not_reply() {
    let server = SilentServer::new();
    let url = format!("http://127.0.0.1:{}", server.port());
    for source in [
        format!("{{ type: git, repository: '{url}/reef.git', ref: main }}"),
        format!("{{ type: github-release, repository: acme/reef, version: v1.0.0, apiUrl: '{url}' }}"),
    ] {
        let plugins = format!("- {{ name: reef, source: {source} }}");
        let repository = Repository::new(Sections { plugins: &plugins, ..Sections::default() });
        for command in ["plugin install", "provision"] {
            let running = repository.start(command);
            let _connection = server.wait_for_request();
            assert_two_signals_end(running);
        }
    }
}

#[test]
fn while_another_run_fetches_the_same_package() {
    let server = SilentServer::new();
    let url = format!("http://127.0.0.1:{}", server.port());
    let plugins = format!(
        "- {{ name: reef, source: {{ type: github-release, repository: acme/reef, version: v1.0.0, apiUrl: '{url}' }} }}"
    );
    let repository = Repository::new(Sections { plugins: &plugins, ..Sections::default() });
    let first = repository.start("plugin install");
    let _connection = server.wait_for_request();
    let second = repository.start("plugin install");
    second.wait_until_printed("waiting for another run that fetches it");
    second.signal(Signal::INT);
    second.signal(Signal::TERM);
    assert_eq!(second.wait_for_command().status, "exit 130");
    assert_two_signals_end(first);
}

/// The reader of the output reads nothing, so the pipe is full.
#[test]
fn while_the_output_is_not_read() {
    // More than a pipe holds.
    let outputs = format!("text: '{}'", "x".repeat(200_000));
    let repository = Repository::new(Sections { outputs: &outputs, ..Sections::default() });
    repository.expect_exit(0, "provision -S");
    let mut child = repository.command("stack outputs text").spawn().unwrap();
    let pid = i32::try_from(child.id()).unwrap();
    let is_writing = || {
        // Number of the system call (write), and its first argument (standard output).
        let call = std::fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap();
        call.starts_with("1 0x1 ")
    };
    wait_until("the program waits for the reader", is_writing);
    signal(pid, Signal::INT);
    signal(pid, Signal::TERM);
    assert_eq!(exit_code(&mut child), Some(130));
}

/// The first question is asked inside of a session, the second one outside.
#[test]
fn while_a_question_is_asked() {
    let repository = Repository::new(Sections { plugins: REC, resources: THING, outputs: "" });
    repository.expect_exit(0, "provision -S");
    for arguments in ["destroy --parent", "stack rm --force"] {
        let sc = repository.command(arguments);
        let mut line = format!("exec {}", sc.get_program().to_str().unwrap());
        sc.get_args().for_each(|argument| line = format!("{line} {}", argument.to_str().unwrap()));
        // `script` runs the command on a terminal of its own.
        let mut script = Command::new("script");
        script.args(["-qec", &line, "/dev/null"]);
        let mut script = in_place_of(&sc, script).env("TERM", "dumb").stdin(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(script.stdout.take().unwrap());
        let mut printed = Vec::new();
        while !String::from_utf8_lossy(&printed).contains("[y/N]") {
            assert_ne!(output.read_until(b']', &mut printed).unwrap(), 0, "{}", String::from_utf8_lossy(&printed));
        }
        let (pid, _) = children(i32::try_from(script.id()).unwrap()).into_iter().next().unwrap();
        signal(pid, Signal::INT);
        // Outside of a session the first signal ends the program, and `script` reaps it.
        kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).ok();
        assert_eq!(exit_code(&mut script), Some(130), "{arguments}");
        wait_until("all processes have ended", || repository.processes().is_empty());
        assert!(!repository.resources().is_empty());
    }
}
