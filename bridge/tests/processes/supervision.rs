//! Tests of kills of the supervisor, alone and together with `sc`.

use std::fs;
use std::io::{BufRead as _, Write as _};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

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

impl Supervised {
    /// Returns the supervisor of the program, other than `previous`, with the groups on its list at its start.
    fn supervisor(&self, previous: Option<i32>) -> (i32, String) {
        wait_for("the supervisor", || {
            let entries = fs::read_dir("/proc").unwrap().flatten();
            let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
            let mut children = pids.filter(|pid| Some(*pid) != previous && parent(*pid) == Some(self.child.id()));
            children.find_map(|pid| {
                let (command_line, _) = identity(pid);
                Some((pid, command_line.strip_prefix("supervisor __supervise")?.trim().to_owned()))
            })
        })
    }
}

/// The grandchild of the script is left unless a supervisor kills the group.
#[test]
fn killed_supervisor_is_replaced_by_one_that_knows_the_running_groups() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = LivenessPipe::new(folder.path());
    let mut supervised = Supervised::start("run", &LivenessPipe::held_by(folder.path(), STUBBORN));
    supervised.wait_for_line("up");
    let (mut pid, groups) = supervised.supervisor(None);
    assert_eq!(groups, "");
    for _ in 0..5 {
        kill(pid, Signal::KILL);
        let (next, groups) = supervised.supervisor(Some(pid));
        let (group, tag) = groups.split_once(':').unwrap();
        assert!(group.parse::<i32>().is_ok() && tag.parse::<u64>().is_ok(), "one group: {groups}");
        pid = next;
    }
    pipe.assert_any_running();
    supervised.kill();
    pipe.assert_all_exited();
    wait_for("the end of the supervisor", || test_kill_process(Pid::from_raw(pid).unwrap()).err());
}

#[test]
fn program_is_killed_if_the_supervisor_and_the_parent_are_killed_together() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = LivenessPipe::new(folder.path());
    let script = LivenessPipe::held_by(folder.path(), "trap '' INT TERM HUP; echo first; echo up; exec sleep 1000");
    let mut supervised = Supervised::start("run", &script);
    supervised.wait_for_line("up");
    let (supervisor, _) = supervised.supervisor(None);
    // A stopped supervisor kills nothing, as if it were killed at the same moment.
    kill(supervisor, Signal::STOP);
    supervised.kill();
    pipe.assert_all_exited();
    kill(supervisor, Signal::KILL);
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
#[test]
fn supervisor_has_a_name_of_its_own() {
    let mut supervised = Supervised::start("run", "echo first; echo up; exec sleep 1000");
    supervised.wait_for_line("up");
    let own = identity(i32::try_from(supervised.child.id()).unwrap());
    assert_eq!(own.1, "bridge-supervis");
    let (pid, _) = supervised.supervisor(None);
    assert_eq!(identity(pid), ("supervisor __supervise".to_owned(), "supervisor".to_owned()));
    supervised.kill();
}

#[test]
fn supervisor_that_does_not_reply_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = LivenessPipe::new(folder.path());
    let mut supervised = Supervised::start("run", &LivenessPipe::held_by(folder.path(), STUBBORN));
    supervised.wait_for_line("up");
    let (stopped, _) = supervised.supervisor(None);
    kill(stopped, Signal::STOP);
    supervised.write_line();
    supervised.wait_for_line("up");
    let (_, groups) = supervised.supervisor(Some(stopped));
    assert_eq!(groups.split(' ').count(), 2, "{groups}");
    pipe.assert_any_running();
    supervised.kill();
    pipe.assert_all_exited();
}

/// Starts a process that leaves the session of the script, loses its parent, clears its environment and ignores signals.
const DETACHED: &str = "(setsid env -i sh -c \"trap '' INT TERM HUP; echo detached; while :; do sleep 1; done\" &); ";

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
