//! The verdict on each attempt at each level.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bridge::process::{
    AllowedAccess, FirstLine, ProcessSandbox, ProcessSpec, SandboxError, SpawnError, Spawner, describe_exit,
};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::{INTRUDER, Yard};

/// Runs an attempt at each level, and checks its verdict and a part of what the program found.
async fn assert_verdicts(yard: &Yard, attempt: &str, argument: impl AsRef<Path>, expected: [&str; 3]) {
    for (sandbox, expected) in yard.levels().into_iter().zip(expected) {
        let found = yard.attempt(attempt, argument.as_ref().to_str().unwrap(), sandbox.clone()).await;
        let (verdict, part) = expected.split_once(": ").unwrap();
        let is_expected = found.starts_with(verdict) && found.contains(part);
        assert!(is_expected, "{attempt} in {sandbox:?}: {found}, expected {expected}");
    }
}

/// A program with the set-user-ID bit of another account runs as that account. Only root can make one.
#[tokio::test]
async fn program_gains_no_privileges() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let yard = Yard::new();
    fs::set_permissions(yard.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = yard.file("copy", &fs::read(INTRUDER).unwrap(), 0o755);
    chown(&copy, Some(65534), Some(65534)).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o4755)).unwrap();
    let strict = AllowedAccess { readable: vec![INTRUDER.into(), copy.clone()], ..AllowedAccess::default() };
    for (sandbox, expected) in [
        (ProcessSandbox::None, "open: account 65534"),
        (ProcessSandbox::Basic, "held: account 0"),
        (ProcessSandbox::Strict(strict), "held: account 0"),
    ] {
        let found = yard.attempt("gain privileges", copy.to_str().unwrap(), sandbox.clone()).await;
        assert_eq!(found, expected, "{sandbox:?}");
    }
}

#[tokio::test]
async fn program_inherits_no_descriptors() {
    let yard = Yard::new();
    let path = yard.file("inherited", b"secret", 0o600);
    let file = fs::File::open(&path).unwrap();
    fcntl_setfd(&file, FdFlags::empty()).unwrap();
    let open = format!("open: {}", path.display());
    assert_verdicts(&yard, "use inherited descriptors", "", [&open, "held: none", "held: none"]).await;
}

#[tokio::test]
async fn program_dumps_no_core() {
    let yard = Yard::new();
    let maximum = getrlimit(Resource::Core).maximum;
    setrlimit(Resource::Core, Rlimit { current: maximum, maximum }).unwrap();
    // Some machines allow no core dumps at all.
    let without = if maximum == Some(0) { "held: signal: 6" } else { "open: signal: 6" };
    assert_verdicts(&yard, "dump its memory", "", [without, "held: signal: 6", "held: signal: 6"]).await;
}

#[tokio::test]
async fn program_has_a_folder_of_its_own_for_temporary_files() {
    let yard = Yard::new();
    let other = yard.file("of-another-program", b"secret", 0o600);
    let open = format!("open: {}", yard.path("").display().to_string().trim_end_matches('/'));
    assert_verdicts(&yard, "read temporary files", &other, [&open, "held: mode 700", "held: mode 700"]).await;
    let left: Vec<_> = fs::read_dir(yard.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "the folder of the program is removed: {left:?}");
}

/// The kernel would withdraw the signal if a program gained something.
#[tokio::test]
async fn program_dies_with_its_parent_at_each_level() {
    assert_verdicts(&Yard::new(), "outlive its parent", "", ["held: KILL"; 3]).await;
}

/// Root has capabilities, other accounts have none to lose.
#[tokio::test]
async fn strict_program_of_root_has_no_capabilities() {
    if rustix::process::geteuid().is_root() {
        assert_verdicts(&Yard::new(), "use capabilities", "", ["open: ", "open: ", "held: none"]).await;
    }
}

#[tokio::test]
async fn strict_program_reads_and_changes_no_other_files() {
    let yard = Yard::new();
    for attempt in ["read", "write", "change the mode", "look at", "truncate", "link", "rename", "remove"] {
        // Landlock has no rules for these, see docs/hosting.md#sandbox.
        let strict = if ["change the mode", "look at"].contains(&attempt) { "open: " } else { "held: " };
        for (sandbox, expected) in yard.levels().into_iter().zip(["open: ", "open: ", strict]) {
            let folder = tempfile::tempdir_in(yard.path("")).unwrap();
            let file = folder.path().join("file");
            fs::write(&file, "secret").unwrap();
            let found = yard.attempt(attempt, file.to_str().unwrap(), sandbox.clone()).await;
            assert!(found.starts_with(expected), "{attempt} in {sandbox:?}: {found}, expected {expected}");
        }
    }
    for (attempt, name) in [("create", "made"), ("list", ".")] {
        let strict = yard.attempt(attempt, yard.path(name).to_str().unwrap(), yard.strict()).await;
        let basic = yard.attempt(attempt, yard.path(name).to_str().unwrap(), ProcessSandbox::Basic).await;
        assert!(strict.starts_with("held: Permission denied") && basic.starts_with("open: "), "{strict}, {basic}");
    }
    let program = yard.file("program", &fs::read(INTRUDER).unwrap(), 0o755);
    assert_verdicts(&yard, "execute", &program, ["open: ", "open: ", "held: Permission denied"]).await;
}

#[tokio::test]
async fn strict_program_reaches_the_system_its_temporary_files_and_what_is_declared() {
    let yard = Yard::new();
    for folder in ["read", "written"] {
        fs::create_dir(yard.path(folder)).unwrap();
        yard.file(&format!("{folder}/file"), b"content", 0o644);
    }
    let single = yard.file("single", b"content", 0o644);
    let allowed = AllowedAccess {
        readable: vec![INTRUDER.into(), yard.path("read")],
        writable: vec![yard.path("written"), single.clone()],
        ports: Vec::new(),
    };
    let file = |path: &str| yard.path(path).to_str().unwrap().to_owned();
    for (attempt, path, expected) in [
        ("read", "/etc/passwd".to_owned(), "open: "),
        ("read", "/proc/self/status".to_owned(), "open: "),
        ("list", "/usr".to_owned(), "open: "),
        ("execute", "/bin/true".to_owned(), "open: "),
        ("write", "/dev/null".to_owned(), "open: "),
        ("truncate", "/dev/null".to_owned(), "open: "),
        ("create", "/dev/shm/sc-test".to_owned(), "held: "),
        ("create", "/usr/sc-test".to_owned(), "held: "),
        ("read", file("read/file"), "open: \"content\""),
        ("list", file("read"), "open: "),
        ("write", file("read/file"), "held: "),
        ("create", file("read/other"), "held: "),
        ("create", file("written/other"), "open: "),
        ("read", file("written/file"), "open: "),
        ("rename", file("written/file"), "open: "),
        ("remove", file("written/other"), "open: "),
        ("write", file("single"), "open: "),
        ("remove", file("single"), "held: "),
        ("list", "/".to_owned(), "held: "),
    ] {
        let found = yard.attempt(attempt, &path, ProcessSandbox::Strict(allowed.clone())).await;
        assert!(found.starts_with(expected), "{attempt} {path}: {found}, expected {expected}");
    }
}

#[tokio::test]
async fn strict_program_reads_nothing_of_its_parent_and_sends_it_no_signal() {
    let yard = Yard::new();
    assert_verdicts(&yard, "read the environment of its parent", "", ["open: ", "open: ", "held: "]).await;
    // Linux before 6.12 has no rules for signals.
    let signal = if yard.has_scopes() { "held: Operation not permitted" } else { "open: " };
    assert_verdicts(&yard, "signal", "", ["open: ", "open: ", signal]).await;
}

#[tokio::test]
async fn strict_program_connects_by_tcp_to_its_ports_only() {
    let yard = Yard::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    assert_verdicts(&yard, "connect by TCP", address.to_string(), ["open: ", "open: ", "held: Permission denied"])
        .await;
    let allowed =
        AllowedAccess { readable: vec![INTRUDER.into()], ports: vec![address.port()], ..AllowedAccess::default() };
    let found = yard.attempt("connect by TCP", &address.to_string(), ProcessSandbox::Strict(allowed)).await;
    assert!(found.starts_with("open: "), "{found}");
    assert_verdicts(&yard, "listen", "", ["open: "; 3]).await;
}

#[tokio::test]
async fn strict_program_connects_to_no_abstract_sockets_of_others() {
    let yard = Yard::new();
    let name = format!("sc-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _listener = UnixListener::bind_addr(&address).unwrap();
    let strict = if yard.has_scopes() { "held: Operation not permitted" } else { "open: " };
    assert_verdicts(&yard, "connect to an abstract socket", name, ["open: ", "open: ", strict]).await;
}

/// Landlock has no rules for these: docs/hosting.md#sandbox. A kernel that restricts it fails this test.
#[tokio::test]
async fn udp_mptcp_and_sockets_in_folders_are_open_at_each_level() {
    let yard = Yard::new();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    assert_verdicts(&yard, "send by UDP", udp.local_addr().unwrap().to_string(), ["open: "; 3]).await;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    // Some kernels are built without the protocol.
    let mptcp = yard.attempt("connect by MPTCP", &address, ProcessSandbox::None).await;
    let is_built = !mptcp.contains("Protocol not");
    if is_built {
        assert_verdicts(&yard, "connect by MPTCP", address, ["open: "; 3]).await;
    }
    let path = yard.path("socket");
    let _socket = UnixListener::bind(&path).unwrap();
    assert_verdicts(&yard, "connect to a socket", &path, ["open: "; 3]).await;
}

/// Runs against the walls that hold at each level: it leaves the group and the session, ignores signals, and holds the pipes.
#[tokio::test]
async fn process_that_leaves_ignores_signals_and_holds_pipes_ends_with_its_program() {
    let yard = Yard::new();
    for sandbox in yard.levels() {
        let script = "trap '' INT TERM HUP; setsid sh -c 'echo $$; while :; do sleep 0.01; done' & \
                      while :; do sleep 0.01; done";
        let process = yard.start("/bin/sh".as_ref(), &["-c", script], sandbox.clone());
        let FirstLine::Line(daemon) = process.first_line().await else { panic!("no daemon in {sandbox:?}") };
        process.stop(Duration::from_millis(20)).await;
        assert_eq!(describe_exit(process.exit_status().unwrap()), "killed by signal 9");
        // A process that has exited and is not reaped has no command line.
        let command_line = fs::read(format!("/proc/{daemon}/cmdline")).unwrap_or_default();
        assert!(command_line.is_empty(), "a process is left of {sandbox:?}");
    }
}

#[tokio::test]
async fn wall_that_cannot_be_put_up_is_reported_and_the_program_is_not_executed() {
    let yard = Yard::new();
    let mark = yard.path("mark");
    let allowed = AllowedAccess { writable: vec![yard.path(""), yard.path("missing")], ..AllowedAccess::default() };
    let script = format!("touch '{}'", mark.display());
    let process = yard.start("/bin/sh".as_ref(), &["-c", &script], ProcessSandbox::Strict(allowed));
    let FirstLine::ExecFailed(error) = process.first_line().await else { panic!("it was executed") };
    let error = error.downcast::<SandboxError>().unwrap();
    let missing = yard.path("missing");
    let expected = format!("failed to open \"{}\": No such file or directory (os error 2)", missing.display());
    assert_eq!(error.to_string(), expected);
    process.wait_for_exit().await;
    assert!(!mark.exists());
}

#[tokio::test]
async fn program_is_not_executed_if_the_system_refuses_landlock() {
    let gate = env!("CARGO_BIN_EXE_bridge-supervised");
    let found = Yard::new().attempt("run below all layers of Landlock", gate, ProcessSandbox::None).await;
    let expected = "held: \0sandbox failed cannot restrict the access to files and ports (Landlock): ";
    assert!(found.starts_with(expected) && found.contains("(os error 7)"), "{found}");
}

/// The folder is removed when no process can write to it any more.
#[tokio::test]
async fn folder_for_temporary_files_is_removed_after_the_last_process() {
    let yard = Yard::new();
    let script = "echo $TMPDIR; setsid sh -c 'while :; do touch \"$TMPDIR/$$\"; done' & exec sleep 1000";
    let process = yard.start("/bin/sh".as_ref(), &["-c", script], ProcessSandbox::Basic);
    let FirstLine::Line(folder) = process.first_line().await else { panic!("no folder") };
    assert!(fs::metadata(&folder).unwrap().is_dir());
    drop(process);
    assert!(!fs::exists(&folder).unwrap());
}

#[test]
fn program_without_supervision_is_refused_a_sandbox() {
    let spec = ProcessSpec {
        program: "/bin/true".into(),
        arguments: Vec::new(),
        directory: "/".into(),
        environment: Vec::new(),
        sandbox: ProcessSandbox::Basic,
    };
    let error = Spawner::unsupervised().spawn(&spec, Arc::new(())).unwrap_err();
    assert!(matches!(&error, SpawnError::NoSandbox(_)));
    assert_eq!(error.to_string(), "cannot start /bin/true in a sandbox without supervision");
}
