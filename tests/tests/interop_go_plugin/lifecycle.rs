//! Recorded ends of go-plugin servers, with a real one: what it does and what the host makes of it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bridge::install::{FetchEvent, FetchEvents, Installer, LocalPackages, Verification, VerifiedPackage};
use bridge::launch::{CallError, Connection, GoPluginError, LaunchError, LaunchSpec, Launched, Procedure, launch};
use bridge::plugin::{Dialect, GoPlugin, GoPluginTls, LocalSource, PluginConfig, PluginSource};
use bridge::process::{HostEnvironment, ProcessSandbox, Spawner};
use prost_types::value::Kind;
use prost_types::{Struct, Value};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tests::sdks::go_program;
use tokio::net::UnixStream;

use crate::repository::socket_folders;

/// Time between the last signal that a plugin can handle and SIGKILL.
const GRACE: Duration = Duration::from_secs(1);

struct Lab;

impl Procedure for Lab {
    const PATH: &'static str = "/golden.Lab/Do";
    type Request = Struct;
    type Reply = Struct;
}

struct NoEvents;

impl FetchEvents for NoEvents {
    fn emit(&self, _: FetchEvent) {}
}

/// Package of the provider, started with arguments by a script that writes its process id.
struct Plugin {
    folder: TempDir,
    config: PluginConfig,
    package: VerifiedPackage,
}

/// Provider that was started, in the private folder of its sockets.
struct Started {
    launched: Launched,
    sockets: TempDir,
}

impl Plugin {
    async fn with_arguments(arguments: &str) -> Self {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop_go_plugin/provider");
        let program = go_program("goplugin-provider", &sources).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plugin.sh");
        let (pid, program) = (folder.path().join("pid"), program.display());
        fs::write(&path, format!("#!/bin/sh\necho $$ > '{}'\nexec '{program}' {arguments}\n", pid.display())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let packages = LocalPackages {
            root: folder.path().to_owned(),
            cache: folder.path().join("cache"),
            environment: HostEnvironment::default(),
            spawner: Spawner::unsupervised(),
            verification: Verification::default(),
            is_offline: false,
        };
        let source = LocalSource::new(path);
        let config = PluginConfig::new("rec".parse().unwrap(), PluginSource::Local(source.clone()));
        let package = Installer::new(&NoEvents).install(&packages, config.names(), &source).await.unwrap();
        Self { folder, config, package }
    }

    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(fs::read_to_string(self.folder.path().join("pid")).ok()?.trim().parse().ok()?)
    }

    async fn launch(&self, cookie: &str, tls: GoPluginTls) -> Result<Started, LaunchError> {
        let sockets = tempfile::Builder::new().prefix("sc").tempdir_in("/tmp").unwrap();
        let spec = LaunchSpec {
            plugin: &self.config,
            package: &self.package,
            directory: self.folder.path().to_owned(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            sandbox: ProcessSandbox::None,
            start_timeout: Duration::from_secs(60),
            socket_folders: vec![sockets.path().to_owned()],
            registrations: None,
            sink: Arc::new(()),
            spawner: &Spawner::unsupervised(),
        };
        let settings = GoPlugin {
            cookie_key: "GOPLUGIN_GOLDEN".to_owned(),
            cookie_value: cookie.to_owned(),
            tls,
            ..GoPlugin::default()
        };
        let launched = launch(spec, &Dialect::GoPlugin(settings), "127.0.0.1:1").await?;
        Ok(Started { launched, sockets })
    }

    async fn start(&self) -> Started {
        self.launch("provider", GoPluginTls::Auto).await.unwrap()
    }
}

/// Returns a request of the service for experiments: an operation with a text and a number.
fn request(op: &str, text: (&str, &str), number: (&str, f64)) -> Struct {
    let value = |kind| Value { kind: Some(kind) };
    let fields = [
        ("op".to_owned(), value(Kind::StringValue(op.to_owned()))),
        (text.0.to_owned(), value(Kind::StringValue(text.1.to_owned()))),
        (number.0.to_owned(), value(Kind::NumberValue(number.1))),
    ];
    Struct { fields: fields.into() }
}

async fn call(connection: &Connection, op: &str, number: (&str, f64)) -> Result<Struct, CallError> {
    connection.call::<Lab>(&request(op, ("text", "x"), number)).await
}

impl Started {
    async fn lab(&self, op: &str, number: (&str, f64)) -> Result<Struct, CallError> {
        call(&self.launched.connection, op, number).await
    }

    /// Asserts that the plugin still replies.
    async fn is_alive(&self) {
        self.lab("echo", ("ms", 0.0)).await.unwrap();
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.launched.process.id()).unwrap(), signal).unwrap();
    }

    /// Ends the plugin, and returns its exit status and the time until then. Nothing is left in the folder of sockets.
    async fn end(self) -> (ExitStatus, Duration) {
        let start = Instant::now();
        self.launched.ending.end(&self.launched.process, GRACE).await;
        let (status, time) = (self.launched.process.exit_status().unwrap(), start.elapsed());
        drop(self.launched);
        assert_eq!(socket_folders(self.sockets.path()), Vec::<PathBuf>::new(), "sockets are left");
        (status, time)
    }

    async fn exited(self) -> ExitStatus {
        let status = self.launched.process.wait_for_exit().await;
        drop(self.launched);
        assert_eq!(socket_folders(self.sockets.path()), Vec::<PathBuf>::new(), "sockets are left");
        status
    }

    /// Returns the socket of the plugin.
    fn socket(&self) -> PathBuf {
        let folder = socket_folders(self.sockets.path()).pop().unwrap();
        let sockets = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        sockets.into_iter().find(|path| path.file_name().unwrap().to_str().unwrap().starts_with("plugin")).unwrap()
    }
}

/// Outcome in the words of the recordings.
#[derive(Debug, PartialEq)]
enum Outcome {
    Exit(i32),
    Signal(i32),
    Alive,
}

impl From<ExitStatus> for Outcome {
    fn from(status: ExitStatus) -> Self {
        status.code().map_or_else(|| Self::Signal(status.signal().unwrap()), Self::Exit)
    }
}

fn recorded(case: &serde_json::Value) -> Outcome {
    match (case["exit_code"].as_i64(), case["exit_signal"].as_str()) {
        (Some(code), _) => Outcome::Exit(code as i32),
        (None, Some("SIGHUP")) => Outcome::Signal(1),
        (None, Some("SIGINT")) => Outcome::Signal(2),
        (None, Some("SIGTERM")) => Outcome::Signal(15),
        (None, Some(other)) => panic!("unknown signal {other}"),
        (None, None) => Outcome::Alive,
    }
}

/// Returns the exit status in the error of a plugin that printed no line.
fn exit_without_line(error: LaunchError) -> Outcome {
    let LaunchError::GoPlugin(GoPluginError::NoLine { status, .. }) = error else { panic!("{error:?}") };
    let number = status.rsplit(' ').next().unwrap().parse().unwrap();
    if status.starts_with("exit status") { Outcome::Exit(number) } else { Outcome::Signal(number) }
}

/// Waits until a condition holds that the plugin brings about. The test has a limit on each event.
async fn wait_until(holds: impl Fn() -> bool) {
    while !holds() {
        // Polls: the system reports no changes of a process that is not waited for.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Waits until the process is stopped.
async fn wait_until_stopped(pid: i32) {
    let state = || fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().rsplit(") ").next().unwrap().to_owned();
    wait_until(|| state().starts_with('T')).await;
}

/// Brings an event about. Returns what happened; `None` for an event that concerns another host, or none of this test.
async fn outcome(event: &str) -> Option<Outcome> {
    let plain = Plugin::with_arguments("").await;
    let second = |path: PathBuf| Connection::new(move || UnixStream::connect(path.clone()));
    let outcome = match event {
        "no or wrong cookie" => exit_without_line(plain.launch("other", GoPluginTls::Auto).await.err().unwrap()),
        "listener, TLS provider or registration fails" => {
            let plugin = Plugin::with_arguments("-own-tls error").await;
            exit_without_line(plugin.launch("provider", GoPluginTls::Auto).await.err().unwrap())
        }
        "Shutdown" => {
            let (status, time) = plain.start().await.end().await;
            assert!(time < Duration::from_secs(1), "{time:?}");
            status.into()
        }
        "Shutdown while a call runs" => {
            let started = plain.start().await;
            let connection = started.launched.connection.clone();
            let running = tokio::spawn(async move { call(&connection, "deaf", ("ms", 60_000.0)).await });
            // The plugin handles calls in the order of their beginnings.
            started.is_alive().await;
            let (status, time) = started.end().await;
            assert!(time < Duration::from_secs(1), "{time:?}");
            assert!(running.await.unwrap().is_err());
            status.into()
        }
        "Shutdown, main goes on after Serve (provider -linger 3s)" => {
            let plugin = Plugin::with_arguments("-linger 60s").await;
            let (status, time) = plugin.start().await.end().await;
            // The host does not wait: SIGTERM after two seconds.
            assert_eq!(Outcome::from(status), Outcome::Signal(15));
            assert!(time >= Duration::from_secs(2) && time < Duration::from_secs(3), "{time:?}");
            return None;
        }
        "Shutdown of a stopped process (lab op stop)" => {
            let started = plain.start().await;
            started.lab("stop", ("ms", 0.0)).await.unwrap();
            wait_until_stopped(started.launched.process.id()).await;
            let (status, time) = started.end().await;
            // It replies to nothing and handles no signal.
            assert_eq!(Outcome::from(status), Outcome::Signal(9));
            assert!(time < Duration::from_secs(2) + 2 * GRACE, "{time:?}");
            return None;
        }
        "brokered sockets after Shutdown" => {
            let started = plain.start().await;
            for id in 1..=3 {
                started.lab("accept", ("id", f64::from(id))).await.unwrap();
            }
            started.end().await;
            return None;
        }
        "SIGTERM" | "SIGHUP" | "SIGQUIT" => {
            let started = plain.start().await;
            started.signal(match event {
                "SIGTERM" => Signal::TERM,
                "SIGHUP" => Signal::HUP,
                _ => Signal::QUIT,
            });
            started.exited().await.into()
        }
        "SIGINT after the line" => {
            let started = plain.start().await;
            started.signal(Signal::INT);
            started.is_alive().await;
            Outcome::Alive
        }
        "SIGPIPE, SIGUSR1" => {
            let started = plain.start().await;
            started.signal(Signal::PIPE);
            started.signal(Signal::USR1);
            started.is_alive().await;
            Outcome::Alive
        }
        "SIGINT before the line" => {
            let plugin = Plugin::with_arguments("-delay 60s").await;
            let interrupt = async {
                wait_until(|| plugin.pid().is_some()).await;
                kill_process(plugin.pid().unwrap(), Signal::INT).unwrap();
            };
            let (launched, ()) = tokio::join!(plugin.launch("provider", GoPluginTls::Auto), interrupt);
            exit_without_line(launched.err().unwrap())
        }
        // The host keeps it open: even a plugin that watches it is alive.
        "stdin ends" => {
            let started = Plugin::with_arguments("-eof-exit").await.start().await;
            started.is_alive().await;
            Outcome::Alive
        }
        "host closes its connection" | "second client, no mux" => {
            let started = plain.launch("provider", GoPluginTls::None).await.unwrap();
            let other = second(started.socket());
            call(&other, "echo", ("ms", 0.0)).await.unwrap();
            drop(other);
            started.is_alive().await;
            Outcome::Alive
        }
        "panic" | "runtime error (fatal error:)" | "os.Exit(3) in a call" => {
            let started = plain.start().await;
            let op = match event {
                "panic" => "panic",
                "os.Exit(3) in a call" => "exit",
                _ => "fatal",
            };
            started.lab(op, ("code", 3.0)).await.unwrap_err();
            started.exited().await.into()
        }
        "grandchild holds stdout and stderr for 3 s" => {
            let started = plain.start().await;
            started.lab("grandchild", ("secs", 60.0)).await.unwrap();
            let (_, time) = started.end().await;
            assert!(time < Duration::from_secs(2), "{time:?}");
            return None;
        }
        // The host reads it from the start.
        "StreamStdio not read" => {
            let started = plain.start().await;
            started.lab("stdout", ("repeat", 1_000_000.0)).await.unwrap();
            started.is_alive().await;
            Outcome::Alive
        }
        _ => return None,
    };
    Some(outcome)
}

/// Returns the recorded events: those of the tree, and those in the folder `SC_GO_PLUGIN_GOLDENS`.
fn events() -> Vec<serde_json::Value> {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/go-plugin");
    let further = std::env::var_os("SC_GO_PLUGIN_GOLDENS").map(PathBuf::from);
    let files = [Some(tree), further].into_iter().flatten().map(|folder| folder.join("lifecycle.json"));
    let read = |file| serde_json::from_slice::<Vec<_>>(&fs::read(file).ok()?).ok();
    files.filter_map(read).flatten().collect()
}

/// Returns whether this process ignores a signal: SIGHUP below `nohup`, SIGINT as a background job of a script. Its children
/// inherit that, and Go programs keep to it.
fn ignores(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let bit = 1 << (signal.as_raw() - 1);
    ignored.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).is_some_and(|set| set & bit != 0)
}

/// Shows: hosting.md#start-protocols "so it is given two seconds, as one that replies"
/// Shows: hosting.md#start-protocols "SIGKILL follows SIGTERM after three seconds at most."
#[tokio::test(flavor = "multi_thread")]
async fn recorded_ends_happen_and_leave_nothing() {
    let mut compared = 0;
    for case in events() {
        let event = case["event"].as_str().unwrap();
        let sent = match event {
            "SIGHUP" => Some(Signal::HUP),
            "SIGINT before the line" => Some(Signal::INT),
            _ => None,
        };
        if sent.is_some_and(ignores) {
            println!("SKIPPED {event}: this test ignores the signal (`nohup`, background job), and so do its plugins");
            continue;
        }
        let found = tokio::time::timeout(Duration::from_secs(60), outcome(event)).await;
        if let Some(found) = found.unwrap_or_else(|_| panic!("{event}: no end")) {
            assert_eq!(found, recorded(&case), "{event}");
            compared += 1;
        }
    }
    assert!(compared >= 15, "{compared} events were compared");
}
