//! Tests of kills of the supervisor, alone and together with `sc`.

use std::fs;
use std::io::{BufRead as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit, test_kill_process};

use crate::{LIMIT, LivenessPipe, STUBBORN, Supervised};

/// Waits until a function returns a value.
fn wait_for<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(started.elapsed() < LIMIT, "timeout while waiting for {what}");
        // Polls: the system reports no changes of processes that are not our children.
        thread::sleep(Duration::from_millis(2));
    }
}

/// Returns the command line and the name of a process. Both are empty if it has exited.
fn identity(pid: i32) -> (String, String) {
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    (read("cmdline").replace('\0', " ").trim_end().to_owned(), read("comm").trim_end().to_owned())
}

fn parent(pid: i32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain spaces.
    stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()
}

fn kill(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// Returns the children of a process.
fn children(of: u32) -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(move |pid| parent(*pid) == Some(of))
}

impl Supervised {
    /// Returns the supervisor of the program, other than `previous`, which has started its program.
    fn supervisor(&self, previous: Option<i32>) -> i32 {
        wait_for("the supervisor", || {
            let mut found = children(self.child.id()).filter(|pid| Some(*pid) != previous);
            found.find(|pid| {
                let has_program = children(u32::try_from(*pid).unwrap()).next().is_some();
                identity(*pid).0.starts_with("supervisor __supervise") && has_program
            })
        })
    }
}

/// The grandchild of the script, and the process that has left its session, become children of the parent.
///
/// Shows: plugins.md#processes "What the plugin has started becomes a descendant of `sc`, which kills it. `sc` reports
///   that the supervisor has ended"
/// Shows: plugins.md#processes "The plugins of other supervisors go on."
#[test]
fn program_ends_with_all_that_it_has_started_if_its_supervisor_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = LivenessPipe::new(folder.path());
    let script = format!("{DETACHED} {STUBBORN}");
    let mut supervised = Supervised::start("run", &LivenessPipe::held_by(folder.path(), &script));
    supervised.wait_for_line("up");
    kill(supervised.supervisor(None), Signal::KILL);
    pipe.assert_all_exited();
    // The program that starts supervised processes exits with the script.
    let status = supervised.child.wait().unwrap();
    assert_eq!(status.code(), Some(1));
}

/// Shows: plugins.md#processes "What the plugin has started becomes a descendant of `sc`, which kills it. `sc` reports
///   that the supervisor has ended"
/// Shows: plugins.md#processes "The plugins of other supervisors go on."
#[test]
fn killed_supervisor_leaves_the_programs_of_other_supervisors_alone() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = LivenessPipe::new(folder.path());
    let mut supervised = Supervised::start("keep", &LivenessPipe::held_by(folder.path(), STUBBORN));
    supervised.wait_for_line("up");
    let first = supervised.supervisor(None);
    supervised.write_line();
    supervised.wait_for_line("up");
    let second = supervised.supervisor(Some(first));
    kill(first, Signal::KILL);
    supervised.wait_for_line("ended");
    assert!(identity(second).0.starts_with("supervisor"));
    pipe.assert_any_running();
    supervised.kill();
    pipe.assert_all_exited();
    wait_for("the end of the supervisor", || test_kill_process(Pid::from_raw(second).unwrap()).err());
}

/// The parent is stopped, so that it does not notice that the supervisor is killed before it is killed itself.
///
/// Shows: plugins.md#processes "at the same time | Linux kills the plugins."
#[test]
fn program_is_killed_if_the_supervisor_and_the_parent_are_killed_together() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = LivenessPipe::new(folder.path());
    let script = LivenessPipe::held_by(folder.path(), "trap '' INT TERM HUP; echo first; echo up; exec sleep 1000");
    let mut supervised = Supervised::start("run", &script);
    supervised.wait_for_line("up");
    let supervisor = supervised.supervisor(None);
    kill(i32::try_from(supervised.child.id()).unwrap(), Signal::STOP);
    kill(supervisor, Signal::KILL);
    pipe.assert_all_exited();
    supervised.kill();
}

/// Linux continues a stopped supervisor when its parent dies.
///
/// Shows: plugins.md#processes "Linux continues a supervisor that is stopped."
#[test]
fn stopped_supervisor_kills_all_if_the_parent_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = LivenessPipe::new(folder.path());
    let script = format!("{DETACHED} {STUBBORN}");
    let mut supervised = Supervised::start("run", &LivenessPipe::held_by(folder.path(), &script));
    supervised.wait_for_line("up");
    let supervisor = supervised.supervisor(None);
    kill(supervisor, Signal::STOP);
    supervised.kill();
    pipe.assert_all_exited();
    wait_for("the end of the supervisor", || test_kill_process(Pid::from_raw(supervisor).unwrap()).err());
}

/// Prints the tag of the program, its limit on locks.
const PRINT_TAG: &str = "sed -n 's/^Max file locks *[0-9a-z]* *//p' /proc/self/limits | cut -d ' ' -f 1";

/// Gives the tag of a program to a process. A program can do that to any process of its account.
fn give_tag(process: u32, tag: u64) {
    let limit = Rlimit { current: Some(tag), maximum: Some(tag) };
    prlimit(Pid::from_raw(i32::try_from(process).unwrap()), Resource::Locks, limit).unwrap();
}

impl Supervised {
    /// Reads lines until one has a number after a prefix, and returns it.
    fn read_number(&mut self, prefix: &str) -> u64 {
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "it exited without a number");
            if let Some(number) = line.trim().strip_prefix(prefix).and_then(|number| number.parse().ok()) {
                return number;
            }
        }
    }
}

/// Shows: plugins.md#processes "The limit alone never makes `sc` kill a process"
#[test]
fn process_with_the_tag_of_a_program_is_left_alone() {
    for kill_supervisor in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let pipe = LivenessPipe::new(folder.path());
        let script = format!("echo first; {PRINT_TAG}; {STUBBORN}");
        let mut supervised = Supervised::start("run", &LivenessPipe::held_by(folder.path(), &script));
        let tag = supervised.read_number("");
        supervised.wait_for_line("up");
        let mut victim = Command::new("sleep").arg("1000").spawn().unwrap();
        let supervisor = supervised.supervisor(None);
        for process in [victim.id(), u32::try_from(supervisor).unwrap(), supervised.child.id()] {
            give_tag(process, tag);
        }
        if kill_supervisor {
            kill(supervisor, Signal::KILL);
            assert_eq!(supervised.child.wait().unwrap().code(), Some(1));
        } else {
            supervised.kill();
        }
        assert!(victim.try_wait().unwrap().is_none(), "the process that has the tag was killed");
        victim.kill().unwrap();
        victim.wait().unwrap();
        pipe.assert_all_exited();
    }
}

/// Such as git.
///
/// Shows: plugins.md#processes "The limit alone never makes `sc` kill a process"
#[test]
fn command_of_the_parent_with_the_tag_of_a_program_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = LivenessPipe::new(folder.path());
    let script = format!("echo first; {PRINT_TAG}; {DETACHED} {STUBBORN}");
    let mut supervised = Supervised::start("keep", &LivenessPipe::held_by(folder.path(), &script));
    let command = u32::try_from(supervised.read_number("command ")).unwrap();
    let tag = supervised.read_number("");
    supervised.wait_for_line("up");
    give_tag(command, tag);
    kill(supervised.supervisor(None), Signal::KILL);
    supervised.wait_for_line("its supervisor process has ended (killed by signal 9), so it was killed");
    supervised.wait_for_line("ended");
    pipe.assert_all_exited();
    assert_eq!(parent(i32::try_from(command).unwrap()), Some(supervised.child.id()), "the command was killed");
    assert!(!supervised.kill().contains("command ended"));
}

/// Returns a shell command that waits for the file `go`.
fn wait_for_go(folder: &Path) -> String {
    format!("while ! [ -e '{}/go' ]; do sleep 0.01; done", folder.display())
}

/// There is no tag below such a limit: it would be the limit of every process of the shell.
///
/// Shows: plugins.md#processes "The limit alone never makes `sc` kill a process"
#[test]
fn small_limit_on_locks_kills_no_other_process() {
    // Without a tag, a process that has left the session is not found if the supervisor is killed.
    let in_session = DETACHED.replace("setsid ", "");
    let kill_supervisor = "kill -9 $PPID; sleep 1000";
    for (limit, start, end) in
        [(0, DETACHED, ""), (0, &in_session, kill_supervisor), (1024, &in_session, kill_supervisor)]
    {
        let folder = tempfile::tempdir().unwrap();
        let pipe = LivenessPipe::new(folder.path());
        let small = Rlimit { current: Some(limit), maximum: Some(limit) };
        let mut shell = Command::new("sleep").arg("1000").spawn().unwrap();
        prlimit(Pid::from_raw(i32::try_from(shell.id()).unwrap()), Resource::Locks, small).unwrap();
        let mut command = Command::new("prlimit");
        command.arg(format!("--locks={limit}:{limit}")).args([env!("CARGO_BIN_EXE_bridge-supervised"), "keep"]);
        command.arg(LivenessPipe::held_by(
            folder.path(),
            &format!("echo first; {start} {}; {end}", wait_for_go(folder.path())),
        ));
        let mut supervised = Supervised::start_command(command);
        supervised.wait_for_line("detached");
        fs::write(folder.path().join("go"), "").unwrap();
        // The program that starts supervised processes lives on.
        supervised.wait_for_line("ended");
        pipe.assert_all_exited();
        assert!(shell.try_wait().unwrap().is_none() && supervised.child.try_wait().unwrap().is_none());
        shell.kill().unwrap();
        shell.wait().unwrap();
        supervised.kill();
    }
}

/// In a namespace of process ids whose first process was not started in a session of its own, as by `unshare`, the number of the
/// session of `sc` is 0.
#[test]
fn killed_supervisor_is_noticed_where_the_session_of_the_parent_has_no_number() {
    let as_user: &[&str] = &["--user", "--map-root-user"];
    let options: &[&str] = &["--pid", "--fork", "--kill-child", "--mount-proc"];
    let unshare = |user: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(user).args(options);
        command
    };
    let is_allowed = |user: &&&[&str]| unshare(user).arg("true").status().is_ok_and(|status| status.success());
    let Some(user) = [&[][..], as_user].iter().find(is_allowed).copied() else {
        let text = b"SKIPPED: the system allows no new namespace of process ids (unshare)\n";
        // `eprintln!` would show it for a failed test only.
        std::io::stderr().write_all(text).unwrap();
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let pipe = LivenessPipe::new(folder.path());
    let script = format!("echo first; {DETACHED} {}; kill -9 $PPID; sleep 1000", wait_for_go(folder.path()));
    let mut command = unshare(user);
    command.args([env!("CARGO_BIN_EXE_bridge-supervised"), "keep"]);
    command.arg(LivenessPipe::held_by(folder.path(), &script));
    let mut supervised = Supervised::start_command(command);
    supervised.wait_for_line("detached");
    fs::write(folder.path().join("go"), "").unwrap();
    supervised.wait_for_line("its supervisor process has ended (killed by signal 9), so it was killed");
    supervised.wait_for_line("ended");
    pipe.assert_all_exited();
    // The command of the parent is in the session without a number, too.
    assert!(!supervised.kill().contains("command ended"));
}

/// Linux sends the signal for the death of the parent at the end of the thread that started the process.
#[test]
fn program_outlives_the_thread_that_started_it() {
    let mut supervised = Supervised::start("run", "echo first; while :; do echo alive; sleep 0.01; done");
    supervised.wait_for_line("started");
    for _ in 0..20 {
        supervised.wait_for_line("alive");
    }
    supervised.kill();
}

/// The leader of a session has no terminal, and the system lets it join no other group.
///
/// Shows: plugins.md#processes "Each plugin leads a session and a process group of its own. It has no terminal"
#[test]
fn program_leads_its_session_and_its_group() {
    let mut supervised = Supervised::start("run", "echo first; cat /proc/$$/stat; echo up; exec sleep 1000");
    let mut stat = String::new();
    supervised.stdout.read_line(&mut stat).unwrap();
    while !stat.contains('(') {
        stat.clear();
        supervised.stdout.read_line(&mut stat).unwrap();
    }
    let (pid, rest) = stat.split_once(' ').unwrap();
    let fields: Vec<_> = rest.rsplit(')').next().unwrap().split_whitespace().collect();
    // state, parent, group, session, terminal
    assert_eq!(fields[2..5], [pid, pid, "0"], "{stat}");
    supervised.kill();
}

/// Shows: plugins.md#processes "`sc` while it starts a plugin | The program of the plugin is not executed."
#[test]
fn gate_does_not_execute_the_program_if_its_parent_has_changed() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let run_gate_of = |parent: &str| {
        let script = format!("touch '{}'", mark.display());
        let mut gate = Command::new(env!("CARGO_BIN_EXE_bridge-supervised"))
            .args(["__exec", parent, "1000", "none", "/bin/sh", "-c", &script])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        // The gate may have exited already; the error is ignored.
        gate.stdin.take().unwrap().write_all(b"\n").ok();
        gate.wait().unwrap();
        mark.exists()
    };
    assert!(!run_gate_of("1"));
    assert!(run_gate_of(&std::process::id().to_string()));
}

/// `killall` compares the name of a process, `pkill` searches in it.
///
/// Shows: plugins.md#processes "so `killall sc` and `pkill sc` do not reach it"
#[test]
fn supervisor_has_a_name_of_its_own() {
    let mut supervised = Supervised::start("run", "echo first; echo up; exec sleep 1000");
    supervised.wait_for_line("up");
    let own = identity(i32::try_from(supervised.child.id()).unwrap());
    assert_eq!(own.1, "bridge-supervis");
    assert_eq!(identity(supervised.supervisor(None)).1, "supervisor");
    supervised.kill();
}

/// Starts a process that leaves the session of the script, loses its parent, clears its environment and ignores signals.
const DETACHED: &str = "(setsid env -i sh -c \"trap '' INT TERM HUP; echo detached; while :; do sleep 1; done\" &); ";

/// Shows: plugins.md#processes "so a daemon that a plugin starts does not outlive the plugin"
#[test]
fn process_that_leaves_its_session_is_killed_when_the_parent_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = LivenessPipe::new(folder.path());
    let script = format!("echo first; {DETACHED} exec sleep 1000");
    let mut supervised = Supervised::start("run", &LivenessPipe::held_by(folder.path(), &script));
    supervised.wait_for_line("detached");
    pipe.assert_any_running();
    supervised.kill();
    pipe.assert_all_exited();
}

/// Shows: plugins.md#processes "so a daemon that a plugin starts does not outlive the plugin"
#[test]
fn process_that_leaves_its_session_is_killed_when_the_program_exits() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = LivenessPipe::new(folder.path());
    let go = folder.path().join("go");
    let script = format!("echo first; {DETACHED} while ! [ -e '{}' ]; do sleep 0.01; done", go.display());
    let mut supervised = Supervised::start("run", &LivenessPipe::held_by(folder.path(), &script));
    supervised.wait_for_line("detached");
    pipe.assert_any_running();
    fs::write(go, "").unwrap();
    // The program that starts supervised processes exits with the script, so its supervisor has an empty list.
    pipe.assert_all_exited();
}
