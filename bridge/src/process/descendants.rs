//! Descendants of this process: the processes that it and its children have started.
//!
//! On Linux, the supervisor of a program and `sc` are *subreapers*: a descendant whose parent exits becomes a child of the
//! nearest of them, whatever group and session it has joined. So descent is a fact of the kernel that no process can feign,
//! and that ends only with the subreaper. `/proc` shows it, if it belongs to the PID namespace of this process.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, kill_process, pidfd_open, pidfd_send_signal, waitid,
};

use crate::fs::{has_own_proc, read_regular};

/// Limit on the time until all descendants have ended. A process that belongs to another account cannot be killed.
pub(super) const LIMIT: Duration = Duration::from_secs(2);
/// Pause until a killed process has exited.
pub(super) const PAUSE: Duration = Duration::from_millis(1);
/// Limit on the size of a file of `/proc`. They have about 1 KiB.
const MAX_FILE: u64 = 64 * 1024;

/// Process in `/proc`. The number may belong to another process later, which has another start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    pid: Pid,
    parent: i32,
    /// Start in clock ticks since the start of the machine.
    started: u64,
    /// False if it has exited and is not reaped yet.
    runs: bool,
}

/// Kills the selected children of this process with their descendants, until there are none, at most for [`LIMIT`], and
/// reaps them.
pub(super) fn kill_selected(is_selected: impl Fn(Pid) -> bool) {
    let started = Instant::now();
    while started.elapsed() < LIMIT {
        let found = kill_found(&is_selected);
        for child in &found {
            // A child that still runs is reaped in the next round.
            waitid(WaitId::Pid(*child), WaitIdOptions::EXITED | WaitIdOptions::NOHANG).ok();
        }
        if found.is_empty() {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Kills the selected children of this process and their descendants. Returns the selected children, with those that have
/// exited; none if `/proc` shows the processes of another namespace.
pub(super) fn kill_found(is_selected: impl Fn(Pid) -> bool) -> Vec<Pid> {
    if !has_own_proc() {
        return Vec::new();
    }
    let own = getpid().as_raw_nonzero().get();
    let entries: Vec<Entry> = processes().filter_map(entry).collect();
    let mut by_parent: BTreeMap<i32, Vec<Entry>> = BTreeMap::new();
    for entry in &entries {
        by_parent.entry(entry.parent).or_default().push(*entry);
    }
    let mut next = by_parent.remove(&own).unwrap_or_default();
    next.retain(|child| is_selected(child.pid));
    let children = next.iter().map(|child| child.pid).collect();
    while let Some(found) = next.pop() {
        next.extend(by_parent.remove(&found.pid.as_raw_nonzero().get()).unwrap_or_default());
        kill(found);
    }
    children
}

/// Kills a process, unless its number belongs to another one by now.
fn kill(found: Entry) {
    if !found.runs {
        return;
    }
    // The descriptor never leads to another process, so the start is compared once it is open.
    let descriptor = pidfd_open(found.pid, PidfdFlags::empty());
    if entry(found.pid).is_none_or(|now| now.started != found.started) {
        return;
    }
    // It may have exited, or belong to another account; the error is ignored.
    match descriptor {
        Ok(process) => pidfd_send_signal(process, Signal::KILL).ok(),
        // Linux before 5.3.
        Err(Errno::NOSYS) => kill_process(found.pid, Signal::KILL).ok(),
        Err(_) => None,
    };
}

fn processes() -> impl Iterator<Item = Pid> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
}

fn entry(pid: Pid) -> Option<Entry> {
    parse_stat(pid, &read(pid, "stat"))
}

/// Parses the parent, the start and the state of a process.
fn parse_stat(pid: Pid, stat: &str) -> Option<Entry> {
    // The name in parentheses may contain parentheses and spaces. The start is the 20th field after it.
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let (parent, started) = (fields.get(1)?.parse().ok()?, fields.get(19)?.parse().ok()?);
    Some(Entry { pid, parent, started, runs: !["Z", "X"].contains(&fields[0]) })
}

/// Returns the content of a file of a process; empty if there is no such process.
pub(super) fn read(pid: Pid, file: &str) -> String {
    let path = format!("/proc/{}/{file}", pid.as_raw_nonzero());
    let content = read_regular(Path::new(&path), MAX_FILE).unwrap_or_default();
    String::from_utf8_lossy(&content).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parent_start_and_state_follow_the_name_of_the_program() {
        let pid = Pid::from_raw(7).unwrap();
        let stat = |state: &str| format!("7 (a) b) (c) {state} 5 42 43 0 -1 1 1 1 1 1 1 1 1 1 20 0 1 0 777 1");
        assert_eq!(parse_stat(pid, &stat("S")), Some(Entry { pid, parent: 5, started: 777, runs: true }));
        assert_eq!(parse_stat(pid, &stat("Z")), Some(Entry { pid, parent: 5, started: 777, runs: false }));
        for invalid in ["", "7 (a)", "7 (a) S 5", "7 (a) S x y"] {
            assert_eq!(parse_stat(pid, invalid), None, "{invalid}");
        }
    }

    #[test]
    fn own_process_is_found_with_its_parent() {
        let (own, parent) = (entry(getpid()).unwrap(), rustix::process::getppid().unwrap());
        assert!(own.runs && own.parent == parent.as_raw_nonzero().get());
    }
}
