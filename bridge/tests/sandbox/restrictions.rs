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
    AllowedAccess, FirstLine, OutputStream, ProcessSandbox, ProcessSpec, SandboxError, SpawnError, Spawner,
    describe_exit,
};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::{Fixture, PROGRAM};

/// Runs an attempt at each level, and checks its verdict and a part of what the program found.
pub(crate) async fn assert_verdicts(fixture: &Fixture, attempt: &str, argument: impl AsRef<Path>, expected: [&str; 3]) {
    for (sandbox, expected) in fixture.levels().into_iter().zip(expected) {
        let found = fixture.attempt(attempt, argument.as_ref().to_str().unwrap(), sandbox.clone()).await;
        let (verdict, part) = expected.split_once(": ").unwrap();
        let is_expected = found.starts_with(verdict) && found.contains(part);
        assert!(is_expected, "{attempt} in {sandbox:?}: {found}, expected {expected}");
    }
}

/// A program with the set-user-ID bit of another account runs as that account. Only root can make one.
///
/// Shows: security.md#the-sandbox-of-plugins "A plugin gains no privileges that `sc` does not have, inherits no
///   descriptors, dumps no core, and has a folder of its own for temporary files"
#[tokio::test]
async fn program_gains_no_privileges() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let fixture = Fixture::new();
    fs::set_permissions(fixture.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = fixture.file("copy", &fs::read(PROGRAM).unwrap(), 0o755);
    chown(&copy, Some(65534), Some(65534)).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o4755)).unwrap();
    let strict = AllowedAccess { readable: vec![PROGRAM.into(), copy.clone()], ..AllowedAccess::default() };
    for (sandbox, expected) in [
        (ProcessSandbox::None, "possible: account 65534"),
        (ProcessSandbox::Basic, "prevented: account 0"),
        (ProcessSandbox::Strict(strict), "prevented: account 0"),
    ] {
        let found = fixture.attempt("gain privileges", copy.to_str().unwrap(), sandbox.clone()).await;
        assert_eq!(found, expected, "{sandbox:?}");
    }
}

/// Shows: security.md#the-sandbox-of-plugins "A plugin gains no privileges that `sc` does not have, inherits no
///   descriptors, dumps no core, and has a folder of its own for temporary files"
#[tokio::test]
async fn program_inherits_no_descriptors() {
    let fixture = Fixture::new();
    let path = fixture.file("inherited", b"secret", 0o600);
    let file = fs::File::open(&path).unwrap();
    fcntl_setfd(&file, FdFlags::empty()).unwrap();
    let open = format!("possible: {}", path.display());
    assert_verdicts(&fixture, "use inherited descriptors", "", [&open, "prevented: none", "prevented: none"]).await;
}

/// Shows: security.md#the-sandbox-of-plugins "A plugin gains no privileges that `sc` does not have, inherits no
///   descriptors, dumps no core, and has a folder of its own for temporary files"
#[tokio::test]
async fn program_dumps_no_core() {
    let fixture = Fixture::new();
    let maximum = getrlimit(Resource::Core).maximum;
    setrlimit(Resource::Core, Rlimit { current: maximum, maximum }).unwrap();
    // Some machines allow no core dumps at all.
    let without = if maximum == Some(0) { "prevented: signal: 6" } else { "possible: signal: 6" };
    assert_verdicts(&fixture, "dump its memory", "", [without, "prevented: signal: 6", "prevented: signal: 6"]).await;
}

/// Shows: security.md#the-sandbox-of-plugins "A plugin gains no privileges that `sc` does not have, inherits no
///   descriptors, dumps no core, and has a folder of its own for temporary files"
#[tokio::test]
async fn program_has_a_folder_of_its_own_for_temporary_files() {
    let fixture = Fixture::new();
    let other = fixture.file("of-another-program", b"secret", 0o600);
    let open = format!("possible: {}", fixture.path("").display().to_string().trim_end_matches('/'));
    assert_verdicts(&fixture, "read temporary files", &other, [&open, "prevented: mode 700", "prevented: mode 700"])
        .await;
    let mut entries = fs::read_dir(fixture.path("")).unwrap().map(|entry| entry.unwrap().path());
    let own = entries.find(|path| path.file_name().unwrap().to_string_lossy().starts_with("sc-")).unwrap();
    let left: Vec<_> = fs::read_dir(own).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.is_empty(), "the folder of the program is removed: {left:?}");
}

/// The kernel would withdraw the signal if a program gained something.
///
/// Shows: hosting.md#sandbox "leave its group and its session, ignore signals, hold its output open | prevented |
///   prevented | prevented"
#[tokio::test]
async fn program_dies_with_its_parent_at_each_level() {
    assert_verdicts(&Fixture::new(), "outlive its parent", "", ["prevented: KILL"; 3]).await;
}

/// Root has capabilities, other accounts have none to lose.
///
/// Shows: hosting.md#sandbox "read the environment or the memory of `sc` and other processes | possible | possible |
///   prevented"
/// Shows: hosting.md#sandbox "use the capabilities of root | possible | possible | prevented"
/// Shows: hosting.md#sandbox "send signals to other processes, connect to abstract Unix sockets of others"
#[tokio::test]
async fn strict_program_of_root_has_no_capabilities() {
    if rustix::process::geteuid().is_root() {
        assert_verdicts(&Fixture::new(), "use capabilities", "", ["possible: ", "possible: ", "prevented: none"]).await;
    }
}

/// Shows: hosting.md#sandbox "read, list, execute, change, create or remove files of others | possible | possible |
///   prevented"
#[tokio::test]
async fn strict_program_reads_and_changes_no_other_files() {
    let fixture = Fixture::new();
    for attempt in ["read", "write", "change the mode", "look at", "truncate", "link", "rename", "remove"] {
        // Landlock has no rules for these, see docs/hosting.md#sandbox.
        let strict = if ["change the mode", "look at"].contains(&attempt) { "possible: " } else { "prevented: " };
        for (sandbox, expected) in fixture.levels().into_iter().zip(["possible: ", "possible: ", strict]) {
            let folder = tempfile::tempdir_in(fixture.path("")).unwrap();
            let file = folder.path().join("file");
            fs::write(&file, "secret").unwrap();
            let found = fixture.attempt(attempt, file.to_str().unwrap(), sandbox.clone()).await;
            assert!(found.starts_with(expected), "{attempt} in {sandbox:?}: {found}, expected {expected}");
        }
    }
    for (attempt, name) in [("create", "made"), ("list", ".")] {
        let strict = fixture.attempt(attempt, fixture.path(name).to_str().unwrap(), fixture.strict()).await;
        let basic = fixture.attempt(attempt, fixture.path(name).to_str().unwrap(), ProcessSandbox::Basic).await;
        assert!(
            strict.starts_with("prevented: Permission denied") && basic.starts_with("possible: "),
            "{strict}, {basic}"
        );
    }
    let program = fixture.file("program", &fs::read(PROGRAM).unwrap(), 0o755);
    assert_verdicts(&fixture, "execute", &program, ["possible: ", "possible: ", "prevented: Permission denied"]).await;
}

/// Shows: hosting.md#sandbox "read, list, execute, change, create or remove files of others | possible | possible |
///   prevented"
#[tokio::test]
async fn strict_program_reaches_the_system_its_temporary_files_and_what_is_declared() {
    let fixture = Fixture::new();
    for folder in ["read", "written"] {
        fs::create_dir(fixture.path(folder)).unwrap();
        fixture.file(&format!("{folder}/file"), b"content", 0o644);
    }
    let single = fixture.file("single", b"content", 0o644);
    let allowed = AllowedAccess {
        readable: vec![PROGRAM.into(), fixture.path("read")],
        writable: vec![fixture.path("written"), single.clone()],
        ..AllowedAccess::default()
    };
    let file = |path: &str| fixture.path(path).to_str().unwrap().to_owned();
    for (attempt, path, expected) in [
        ("read", "/etc/passwd".to_owned(), "possible: "),
        ("read", "/proc/self/status".to_owned(), "possible: "),
        ("list", "/usr".to_owned(), "possible: "),
        ("execute", "/bin/true".to_owned(), "possible: "),
        ("write", "/dev/null".to_owned(), "possible: "),
        ("truncate", "/dev/null".to_owned(), "possible: "),
        ("create", "/dev/shm/sc-test".to_owned(), "prevented: "),
        ("create", "/usr/sc-test".to_owned(), "prevented: "),
        ("read", file("read/file"), "possible: \"content\""),
        ("list", file("read"), "possible: "),
        ("write", file("read/file"), "prevented: "),
        ("create", file("read/other"), "prevented: "),
        ("create", file("written/other"), "possible: "),
        ("read", file("written/file"), "possible: "),
        ("rename", file("written/file"), "possible: "),
        ("remove", file("written/other"), "possible: "),
        ("write", file("single"), "possible: "),
        ("remove", file("single"), "prevented: "),
        ("list", "/".to_owned(), "prevented: "),
    ] {
        let found = fixture.attempt(attempt, &path, ProcessSandbox::Strict(allowed.clone())).await;
        assert!(found.starts_with(expected), "{attempt} {path}: {found}, expected {expected}");
    }
}

/// Shows: hosting.md#secret-files "A plugin with `strict` reads them only if `readable` or `writable` names them"
/// Shows: hosting.md#secret-files "so `sc` allows the entries beside them one by one at the start of the plugin"
#[tokio::test]
async fn strict_program_reads_a_folder_without_its_hidden_files() {
    let fixture = Fixture::new();
    for folder in ["in/stacks/a", "in/stacks/b", "in/src"] {
        fs::create_dir_all(fixture.path(folder)).unwrap();
    }
    for file in ["in/token", "in/rest", "in/stacks/a/secrets", "in/stacks/a/server", "in/src/main"] {
        fixture.file(file, b"content", 0o644);
    }
    std::os::unix::fs::symlink("token", fixture.path("in/link")).unwrap();
    std::os::unix::fs::symlink(fixture.path(""), fixture.path("in/up")).unwrap();
    fixture.file("outside", b"content", 0o644);
    let hidden = ["in/token", "in/stacks/*/secrets"].map(|path| fixture.path(path)).to_vec();
    let allowed = AllowedAccess {
        readable: vec![PROGRAM.into()],
        readable_in_part: vec![fixture.path("in")],
        hidden,
        ..AllowedAccess::default()
    };
    // A file that appears later is readable only below a folder that was let through as a whole.
    let later = format!("{} {}", fixture.path("in/src/later").display(), fixture.path("in/stacks/b/later").display());
    let read_later = format!("for file in {later}; do until [ -e $file ]; do sleep 0.01; done; cat $file; done");
    let script = format!("echo started; {read_later} 2>&1 | tr '\\n' ' '");
    let process = fixture.start("/bin/sh".as_ref(), &["-c", &script], ProcessSandbox::Strict(allowed.clone()));
    assert!(matches!(process.first_line().await, FirstLine::Line(line) if line == "started"));
    for file in ["in/src/later", "in/stacks/b/later"] {
        fixture.file(file, b"content", 0o644);
    }
    process.wait_for_output_end().await;
    let found = process.last_lines(OutputStream::Stdout).join("\n");
    assert!(found.contains("content") && found.contains("b/later: Permission denied"), "{found}");
    for (attempt, path, expected) in [
        ("read", "in/rest", "possible: "),
        ("read", "in/stacks/a/server", "possible: "),
        ("read", "in/src/main", "possible: "),
        ("list", "in", "possible: "),
        ("list", "in/stacks/a", "possible: "),
        ("read", "in/token", "prevented: Permission denied"),
        ("read", "in/link", "prevented: Permission denied"),
        ("read", "in/up/outside", "prevented: Permission denied"),
        ("read", "in/stacks/a/secrets", "prevented: Permission denied"),
        ("write", "in/rest", "prevented: Permission denied"),
    ] {
        let path = fixture.path(path).to_str().unwrap().to_owned();
        let found = fixture.attempt(attempt, &path, ProcessSandbox::Strict(allowed.clone())).await;
        assert!(found.starts_with(expected), "{attempt} {path}: {found}, expected {expected}");
    }
    let mut declared = allowed;
    declared.readable.push(fixture.path("in/token"));
    let token = fixture.path("in/token").to_str().unwrap().to_owned();
    let found = fixture.attempt("read", &token, ProcessSandbox::Strict(declared)).await;
    assert!(found.starts_with("possible: "), "{found}");
}

/// Shows: hosting.md#sandbox "read the environment or the memory of `sc` and other processes | possible | possible |
///   prevented"
/// Shows: hosting.md#sandbox "use the capabilities of root | possible | possible | prevented"
/// Shows: hosting.md#sandbox "send signals to other processes, connect to abstract Unix sockets of others"
#[tokio::test]
async fn strict_program_reads_nothing_of_its_parent_and_sends_it_no_signal() {
    let fixture = Fixture::new();
    assert_verdicts(&fixture, "read the environment of its parent", "", ["possible: ", "possible: ", "prevented: "])
        .await;
    // Linux before 6.12 has no rules for signals.
    let signal = if fixture.has_scopes() { "prevented: Operation not permitted" } else { "possible: " };
    assert_verdicts(&fixture, "signal", "", ["possible: ", "possible: ", signal]).await;
}

/// Shows: hosting.md#sandbox "connect by TCP to another port than those of `ports` and those of `sc`"
/// Shows: hosting.md#sandbox "send signals to other processes, connect to abstract Unix sockets of others"
#[tokio::test]
async fn strict_program_connects_by_tcp_to_its_ports_only() {
    let fixture = Fixture::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    assert_verdicts(
        &fixture,
        "connect by TCP",
        address.to_string(),
        ["possible: ", "possible: ", "prevented: Permission denied"],
    )
    .await;
    let allowed =
        AllowedAccess { readable: vec![PROGRAM.into()], ports: vec![address.port()], ..AllowedAccess::default() };
    let found = fixture.attempt("connect by TCP", &address.to_string(), ProcessSandbox::Strict(allowed)).await;
    assert!(found.starts_with("possible: "), "{found}");
    assert_verdicts(&fixture, "listen", "", ["possible: "; 3]).await;
}

/// Shows: hosting.md#sandbox "connect by TCP to another port than those of `ports` and those of `sc`"
/// Shows: hosting.md#sandbox "send signals to other processes, connect to abstract Unix sockets of others"
#[tokio::test]
async fn strict_program_connects_to_no_abstract_sockets_of_others() {
    let fixture = Fixture::new();
    let name = format!("sc-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _listener = UnixListener::bind_addr(&address).unwrap();
    let strict = if fixture.has_scopes() { "prevented: Operation not permitted" } else { "possible: " };
    assert_verdicts(&fixture, "connect to an abstract socket", name, ["possible: ", "possible: ", strict]).await;
}

/// Neither Landlock nor seccomp has rules for these: docs/hosting.md#sandbox. A kernel that restricts it fails this test.
///
/// Shows: hosting.md#sandbox "neither Landlock nor seccomp has rules for it: UDP (and so DNS and QUIC)"
/// Shows: hosting.md#sandbox "also this one; Unix sockets in folders"
#[tokio::test]
async fn udp_and_sockets_in_folders_are_open_at_each_level() {
    let fixture = Fixture::new();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    assert_verdicts(&fixture, "send by UDP", udp.local_addr().unwrap().to_string(), ["possible: "; 3]).await;
    let path = fixture.path("socket");
    let _socket = UnixListener::bind(&path).unwrap();
    assert_verdicts(&fixture, "connect to a socket", &path, ["possible: "; 3]).await;
}

/// Attempts what each level prevents: it leaves the group and the session, ignores signals, and holds the pipes.
///
/// Shows: hosting.md#sandbox "leave its group and its session, ignore signals, hold its output open | prevented |
///   prevented | prevented"
#[tokio::test]
async fn process_that_leaves_ignores_signals_and_holds_pipes_ends_with_its_program() {
    let fixture = Fixture::new();
    for sandbox in fixture.levels() {
        let script = "trap '' INT TERM HUP; setsid sh -c 'echo $$; while :; do sleep 0.01; done' & \
                      while :; do sleep 0.01; done";
        let process = fixture.start("/bin/sh".as_ref(), &["-c", script], sandbox.clone());
        let FirstLine::Line(daemon) = process.first_line().await else { panic!("no daemon in {sandbox:?}") };
        process.stop(Duration::from_millis(20)).await;
        assert_eq!(describe_exit(process.exit_status().unwrap()), "killed by signal 9");
        // A process that has exited and is not reaped has no command line.
        let command_line = fs::read(format!("/proc/{daemon}/cmdline")).unwrap_or_default();
        assert!(command_line.is_empty(), "a process is left of {sandbox:?}");
    }
}

/// Shows: hosting.md#sandbox "If one cannot be applied, the plugin is not started."
#[tokio::test]
async fn restriction_that_cannot_be_applied_is_reported_and_the_program_is_not_executed() {
    let fixture = Fixture::new();
    let mark = fixture.path("mark");
    let allowed =
        AllowedAccess { writable: vec![fixture.path(""), fixture.path("missing")], ..AllowedAccess::default() };
    let script = format!("touch '{}'", mark.display());
    let process = fixture.start("/bin/sh".as_ref(), &["-c", &script], ProcessSandbox::Strict(allowed));
    let FirstLine::ExecFailed(error) = process.first_line().await else { panic!("it was executed") };
    let error = error.downcast::<SandboxError>().unwrap();
    let missing = fixture.path("missing");
    let expected = format!("failed to open \"{}\": No such file or directory (os error 2)", missing.display());
    assert_eq!(error.to_string(), expected);
    process.wait_for_exit().await;
    assert!(!mark.exists());
}

/// Shows: hosting.md#sandbox "If one cannot be applied, the plugin is not started."
#[tokio::test]
async fn program_is_not_executed_if_the_system_refuses_landlock() {
    let gate = env!("CARGO_BIN_EXE_bridge-supervised");
    let found = Fixture::new().attempt("run below all layers of Landlock", gate, ProcessSandbox::None).await;
    let expected = "prevented: \0sandbox failed cannot restrict the access to files and ports (Landlock): ";
    assert!(found.starts_with(expected) && found.contains("(os error 7)"), "{found}");
}

/// The folder is removed when no process can write to it any more.
///
/// Shows: hosting.md#sandbox "with access for its account only, which is removed at its end"
#[tokio::test]
async fn folder_for_temporary_files_is_removed_after_the_last_process() {
    let fixture = Fixture::new();
    let script = "echo $TMPDIR; setsid sh -c 'while :; do touch \"$TMPDIR/$$\"; done' & exec sleep 1000";
    let process = fixture.start("/bin/sh".as_ref(), &["-c", script], ProcessSandbox::Basic);
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
