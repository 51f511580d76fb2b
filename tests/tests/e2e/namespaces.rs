//! Locks of runs in another namespace of process ids, as in a container that shares the name and the kernel of its host.
//! The tests need `unshare`; where the system allows no new namespace, they print `SKIPPED`.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use rustix::process::Signal;
use serde_json::json;
use tests::binaries;

use crate::crashes::chain;
use crate::processes::signal;
use crate::repository::{Repository, Running, in_place_of};

/// Commands that run a program in a namespace of its own: as root, or as an ordinary user.
const COMMANDS: [&[&str]; 2] =
    [&["--pid", "--fork", "--mount-proc"], &["--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]];

/// Returns a command that runs a shell script in a new namespace, with the arguments of `sc` as its parameters. `None` if the
/// system allows no namespaces, which is said beside the output of the test.
fn in_namespace(repository: &Repository, script: &str) -> Option<Command> {
    command_in(&COMMANDS, repository, script)
}

/// Same as [`in_namespace`], with the commands that run a program in a namespace.
fn command_in(commands: &[&[&str]], repository: &Repository, script: &str) -> Option<Command> {
    let unshare = |options: &[&str]| {
        let mut unshare = Command::new("unshare");
        unshare.args(options);
        unshare
    };
    let is_allowed = |options: &&&[&str]| {
        let tried = unshare(options).arg("true").stdout(Stdio::null()).stderr(Stdio::null()).status();
        tried.is_ok_and(|status| status.success())
    };
    let Some(options) = commands.iter().find(is_allowed) else {
        let text = b"SKIPPED: the system allows no such namespace (unshare)\n";
        // `eprintln!` would show it for a failed test only.
        std::io::stderr().write_all(text).unwrap();
        return None;
    };
    let sc = repository.command("provision -S");
    let mut command = unshare(options);
    command.args(["sh", "-c", script]).arg(sc.get_program()).args(sc.get_args());
    Some(in_place_of(&sc, command))
}

/// Kills `sc` in a namespace, once it is in its Create.
fn kill_in_create(repository: &Repository) {
    repository.wait_until_called("Create t0--prod");
    let program = binaries::sc().unwrap().display().to_string();
    let processes = repository.processes();
    let (pid, _) = processes.iter().find(|(_, command)| command.starts_with(&program)).unwrap();
    signal(*pid, Signal::KILL);
}

/// Returns a run in a namespace that waits for the file `go` after `sc` was killed, and then runs `sc` again.
fn killed_run<'r>(repository: &'r Repository) -> Option<Running<'r>> {
    repository.script(json!({"resources": {"t0--prod": {"hang": "create"}}}));
    let script = r#""$0" "$@"; cat go; exec "$0" "$@""#;
    rustix::fs::mkfifoat(rustix::fs::CWD, repository.path("go"), rustix::fs::Mode::RWXU).unwrap();
    let running = repository.start_command(in_namespace(repository, script)?);
    kill_in_create(repository);
    repository.script(json!({}));
    Some(running)
}

/// Shows: state.md#locks "after 120 seconds without a renewal, by the clock of the store"
/// Shows: state.md#locks "a process of another container, or of an earlier start of the machine, proves nothing"
#[test]
fn lock_of_a_run_in_another_pid_namespace_is_taken_over_only_after_two_minutes() {
    let repository = chain(1);
    let Some(container) = killed_run(&repository) else { return };
    let lock = repository.names("backend/.pulumi/locks").remove(0);
    let (namespace, own) = (repository.read(&lock), fs::read_link("/proc/self/ns/pid").unwrap());
    assert!(namespace.contains("\"pidNamespace\":\"pid:["), "{namespace}");
    assert!(!namespace.contains(&own.display().to_string()), "{namespace}");

    // The lock names this host and this start of it, and its process id is that of another process here, or of none.
    for command in ["provision -S", "refresh --yes", "destroy --parent --yes"] {
        let output = repository.start(command).wait_for_command();
        assert_eq!(output.status, "exit 4", "{command}: {}", output.stderr);
        let advice = "the next command takes over its lock 120 s after its last renewal";
        assert!(output.stderr.contains(advice), "{command}: {}", output.stderr);
        assert!(!output.stderr.contains("runs on this host"), "{command}: {}", output.stderr);
    }
    let file = fs::File::options().write(true).open(repository.path(&lock)).unwrap();
    for (seconds, status) in [(60, "exit 4"), (121, "exit 0")] {
        file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
        let output = repository.start("provision -S").wait_for_command();
        assert_eq!(output.status, status, "after {seconds} s: {}", output.stderr);
        let is_taken_over = output.stderr.contains("its run has not renewed it for 12");
        assert_eq!(is_taken_over, status == "exit 0", "{}", output.stderr);
    }
    fs::write(repository.path("go"), "").unwrap();
    assert_eq!(container.wait().status, "exit 0");
    assert!(!repository.is_locked());
}

/// The clocks of the container are a day ahead.
#[test]
fn lock_of_a_live_run_is_not_taken_over_in_another_time_namespace() {
    let repository = chain(1);
    repository.script(json!({"resources": {"t0--prod": {"hang": "create"}}}));
    let living = repository.start("provision -S");
    repository.wait_until_called("Create t0--prod");
    let commands: [&[&str]; 2] = [
        &["--time", "--boottime", "86400", "--fork"],
        &["--user", "--map-root-user", "--time", "--boottime", "86400", "--fork"],
    ];
    let Some(command) = command_in(&commands, &repository, r#"exec "$0" "$@""#) else { return };
    let output = repository.start_command(command).wait_for_command();
    assert_eq!(output.status, "exit 4", "{}", output.stderr);
    living.signal(Signal::INT);
    assert_eq!(living.wait().status, "exit 130");
}

/// Shows: state.md#locks "at once, if its process ran on this host and has ended"
#[test]
fn lock_of_a_run_in_the_same_pid_namespace_is_taken_over_at_once() {
    let repository = chain(1);
    let Some(container) = killed_run(&repository) else { return };
    fs::write(repository.path("go"), "").unwrap();
    let output = container.wait();
    assert_eq!(output.status, "exit 0", "{}", output.stderr);
    let message = "took over the lock of organization/tank/reef: its run has ended without releasing it";
    assert!(output.stderr.contains(message), "{}", output.stderr);
    assert!(!repository.is_locked());
}
