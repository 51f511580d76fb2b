//! Descendants of this process: the processes that it and its children have started.
//!
//! On Linux, the supervisor of a program and `sc` are *subreapers*: a descendant whose parent exits becomes a child of the
//! nearest of them, whatever group and session it has joined. So descent is a fact of the kernel that no process can feign,
//! and that ends only with the subreaper. `/proc` shows it, if it belongs to the PID namespace of this process.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, kill_process, pidfd_open, pidfd_send_signal, waitid,
};

use crate::fs::{ProcessStat, has_own_proc};

/// Limit on the time until all descendants have ended. A process that belongs to another account cannot be killed.
pub(super) const LIMIT: Duration = Duration::from_secs(2);
/// Pause until a killed process has exited.
pub(super) const PAUSE: Duration = Duration::from_millis(1);

/// Kills the selected children of this process with their descendants, until there are none, at most for [`LIMIT`], and
/// reaps them.
pub(super) fn kill_selected(is_selected: impl Fn(Pid, ProcessStat) -> bool) {
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
        // Polls: the system reports no exits of descendants that are not children.
        std::thread::sleep(PAUSE);
    }
}

/// Kills the selected children of this process and their descendants. Returns the selected children, with those that have
/// exited; none if `/proc` shows the processes of another namespace.
pub(super) fn kill_found(is_selected: impl Fn(Pid, ProcessStat) -> bool) -> Vec<Pid> {
    if !has_own_proc() {
        return Vec::new();
    }
    let mut by_parent: BTreeMap<i32, Vec<(Pid, ProcessStat)>> = BTreeMap::new();
    for (pid, process) in processes().filter_map(|pid| Some((pid, stat(pid)?))) {
        by_parent.entry(process.parent).or_default().push((pid, process));
    }
    let mut next = by_parent.remove(&number(getpid())).unwrap_or_default();
    next.retain(|(pid, child)| is_selected(*pid, *child));
    let children = next.iter().map(|(pid, _)| *pid).collect();
    while let Some((pid, found)) = next.pop() {
        next.extend(by_parent.remove(&number(pid)).unwrap_or_default());
        kill(pid, found);
    }
    children
}

/// Kills a process, unless its number belongs to another one by now.
fn kill(pid: Pid, found: ProcessStat) {
    if !found.runs {
        return;
    }
    // The descriptor never leads to another process, so the start is compared once it is open.
    let descriptor = pidfd_open(pid, PidfdFlags::empty());
    if stat(pid).is_none_or(|now| now.started != found.started) {
        return;
    }
    // It may have exited, or belong to another account; the error is ignored.
    match descriptor {
        Ok(process) => pidfd_send_signal(process, Signal::KILL).ok(),
        // Linux before 5.3.
        Err(Errno::NOSYS) => kill_process(pid, Signal::KILL).ok(),
        Err(_) => None,
    };
}

fn processes() -> impl Iterator<Item = Pid> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
}

fn stat(pid: Pid) -> Option<ProcessStat> {
    ProcessStat::read(number(pid))
}

fn number(pid: Pid) -> i32 {
    pid.as_raw_nonzero().get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_process_is_found_with_its_parent() {
        let (own, parent) = (stat(getpid()).unwrap(), rustix::process::getppid().unwrap());
        assert!(own.runs && own.parent == number(parent));
    }
}
