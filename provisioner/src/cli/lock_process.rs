//! Process of a lock: whether it still runs on this host.

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use state::store::{LockHolder, LockInfo};

/// Process that holds a lock, as far as it is known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockProcess {
    /// A process with this id runs on this host. It may be another program that has the id now.
    Runs(u32),
    /// No process with this id runs on this host.
    Ended(u32),
    /// The process belongs to another host, or the lock cannot be read.
    Unknown,
}

impl LockProcess {
    /// Returns what is known about the process of a lock.
    pub(crate) fn of(lock: &LockInfo) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self::on_host(lock, &host, std::process::id())
    }

    fn on_host(lock: &LockInfo, host: &str, own_pid: u32) -> Self {
        let Some((LockHolder { pid, hostname, .. }, _)) = &lock.holder else { return Self::Unknown };
        if hostname != host {
            return Self::Unknown;
        }
        let process = i32::try_from(*pid).ok().and_then(Pid::from_raw);
        // This process holds no lock yet: its id in a lock is that of an earlier process, as often in containers.
        let runs =
            *pid != own_pid && process.is_some_and(|process| !matches!(test_kill_process(process), Err(Errno::SRCH)));
        if runs { Self::Runs(*pid) } else { Self::Ended(*pid) }
    }

    /// Returns a sentence about the process, if anything is known.
    pub(crate) fn text(self) -> Option<String> {
        match self {
            Self::Runs(pid) => Some(format!("process {pid} runs on this host")),
            Self::Ended(pid) => Some(format!("no process {pid} runs on this host: the run has ended")),
            Self::Unknown => None,
        }
    }
}

/// Returns what to do about locks of a stack.
pub(crate) fn hint(stack: &str, locks: &[LockInfo]) -> String {
    advice(stack, &locks.iter().map(LockProcess::of).collect::<Vec<_>>())
}

fn advice(stack: &str, processes: &[LockProcess]) -> String {
    let is_ended = |process: &LockProcess| matches!(process, LockProcess::Ended(_));
    let running = processes.iter().find(|process| matches!(process, LockProcess::Runs(_)));
    match (running.and_then(|process| process.text()), processes) {
        (Some(text), _) => format!("{text}: wait for that run to end"),
        (None, [process, ..]) if processes.iter().all(is_ended) => {
            format!("{}; remove its lock with `sc cancel -s {stack}`", process.text().unwrap_or_default())
        }
        _ => format!("wait for that run to end; if it was interrupted, remove its lock with `sc cancel -s {stack}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_of_a_lock_is_searched_on_its_host_only() {
        let own = std::process::id();
        let lock = |pid, hostname: &str| LockInfo {
            name: "lock".to_owned(),
            holder: Some((LockHolder { pid, username: String::new(), hostname: hostname.to_owned() }, String::new())),
        };
        let table = [
            (lock(own, "reefbox"), own + 1, LockProcess::Runs(own)),
            (lock(own, "reefbox"), own, LockProcess::Ended(own)),
            // Greater than the maximum of the system.
            (lock(0x7fff_ffff, "reefbox"), own, LockProcess::Ended(0x7fff_ffff)),
            (lock(0, "reefbox"), own, LockProcess::Ended(0)),
            (lock(own, "elsewhere"), own + 1, LockProcess::Unknown),
            (LockInfo { name: "lock".to_owned(), holder: None }, own, LockProcess::Unknown),
        ];
        for (lock, own_pid, expected) in table {
            assert_eq!(LockProcess::on_host(&lock, "reefbox", own_pid), expected, "{lock}");
        }
    }

    #[test]
    fn lock_of_an_ended_process_is_to_be_removed_and_others_to_be_waited_for() {
        let table = [
            (
                &[LockProcess::Ended(7)][..],
                "no process 7 runs on this host: the run has ended; remove its lock with `sc cancel -s reef`",
            ),
            (&[LockProcess::Ended(7), LockProcess::Runs(8)], "process 8 runs on this host: wait for that run to end"),
            (
                &[LockProcess::Ended(7), LockProcess::Unknown],
                "wait for that run to end; if it was interrupted, remove its lock with `sc cancel -s reef`",
            ),
            (&[], "wait for that run to end; if it was interrupted, remove its lock with `sc cancel -s reef`"),
        ];
        for (processes, expected) in table {
            assert_eq!(advice("reef", processes), expected);
        }
    }
}
