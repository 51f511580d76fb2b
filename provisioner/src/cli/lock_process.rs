//! Process of a lock: whether it still runs on this host.

use std::path::Path;

use bridge::fs::{MAX_DOCUMENT_BYTES, ProcessStat, has_own_proc, read_regular, utf8};
use bridge::message_text::MessageText;
use bridge::shell::option;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use state::store::{LockInfo, ProcessFingerprint};

/// Process that holds a lock, as far as it is known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockProcess {
    /// A process with this id runs on this host. If the lock has no identity of the process, it may be another program that
    /// has the id now.
    Runs(u32),
    /// No process with this id and this identity runs on this host.
    Ended(u32),
    /// The process belongs to another host or container, or to an earlier start of the machine, or the lock cannot be read.
    Unknown,
}

impl LockProcess {
    /// Returns what is known about the process of a lock.
    pub(crate) fn of(lock: &LockInfo) -> Self {
        let here = Here {
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            pid: std::process::id(),
            sees_processes: sees_processes(),
            fingerprint: own_fingerprint(),
        };
        here.find(lock)
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

/// Place in which processes are searched: this host, or this container of it.
struct Here {
    host: String,
    /// Id of this process.
    pid: u32,
    /// False if the system shows processes by other ids than those that they have here.
    sees_processes: bool,
    fingerprint: Option<ProcessFingerprint>,
}

impl Here {
    fn find(&self, lock: &LockInfo) -> LockProcess {
        let Some((holder, _)) = &lock.holder else { return LockProcess::Unknown };
        if holder.hostname != self.host || !self.sees_processes {
            return LockProcess::Unknown;
        }
        let runs = match (&holder.process, &self.fingerprint) {
            (Some(process), Some(own)) if !is_same_place(process, own) => return LockProcess::Unknown,
            (Some(process), Some(_)) => match start_of(holder.pid) {
                Some(started) => started == process.started,
                // The system may hide processes of other accounts.
                None => self.has_process(holder.pid),
            },
            // A process of ours that sees no processes does not identify itself: it may have its id in another place.
            (None, Some(_)) if holder.lease.is_some() => return LockProcess::Unknown,
            (Some(_), None) | (None, _) => self.has_process(holder.pid),
        };
        if runs { LockProcess::Runs(holder.pid) } else { LockProcess::Ended(holder.pid) }
    }

    /// Returns whether another process has an id. This process holds no lock yet: its id in a lock is that of an earlier
    /// process, as often in containers.
    fn has_process(&self, pid: u32) -> bool {
        let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
        pid != self.pid && process.is_some_and(|process| !matches!(test_kill_process(process), Err(Errno::SRCH)))
    }
}

/// Returns whether two processes see each other's ids and starts. Machines whose names are equal differ in the id of their start.
fn is_same_place(process: &ProcessFingerprint, own: &ProcessFingerprint) -> bool {
    let place = |process: &ProcessFingerprint| {
        (process.boot_id.clone(), process.pid_namespace.clone(), process.time_namespace.clone())
    };
    place(process) == place(own)
}

/// Returns whether the process of a lock has ended for certain: the lock identifies it, and this process would see it.
pub(crate) fn has_ended_for_certain(lock: &LockInfo) -> bool {
    let is_identified = lock.holder.as_ref().is_some_and(|(holder, _)| holder.process.is_some());
    is_identified && own_fingerprint().is_some() && matches!(LockProcess::of(lock), LockProcess::Ended(_))
}

/// Returns whether the system shows processes by the ids that they have here, or shows none: in a container, `/proc` may be
/// that of the host.
fn sees_processes() -> bool {
    has_own_proc() || !Path::new("/proc").join("1").exists()
}

/// Returns the identity of this process; `None` if the system does not show it, or shows another process under its id.
pub(crate) fn own_fingerprint() -> Option<ProcessFingerprint> {
    if !has_own_proc() {
        return None;
    }
    let boot_id = read("/proc/sys/kernel/random/boot_id")?.trim().to_owned();
    let namespace = |kind: &str| Some(std::fs::read_link(format!("/proc/self/ns/{kind}")).ok()?.display().to_string());
    let (pid_namespace, time_namespace) = (namespace("pid")?, namespace("time"));
    Some(ProcessFingerprint { started: start_of(std::process::id())?, boot_id, pid_namespace, time_namespace })
}

/// Returns the start of a process in clock ticks since the start of the machine. `None` if it does not run, or the system does
/// not show it.
fn start_of(process: u32) -> Option<u64> {
    Some(ProcessStat::read(i32::try_from(process).ok()?)?.started)
}

fn read(path: &str) -> Option<String> {
    read_regular(Path::new(path), MAX_DOCUMENT_BYTES).and_then(utf8).ok()
}

/// Returns what to do about locks of a stack.
pub(crate) fn hint(stack: &str, locks: &[LockInfo]) -> MessageText {
    advice(stack, &locks.iter().map(LockProcess::of).collect::<Vec<_>>(), takeover_time(locks))
}

/// Returns the time after which a lock without renewal is taken over, if all locks have leases.
fn takeover_time(locks: &[LockInfo]) -> Option<u64> {
    let times = locks.iter().map(|lock| lock.lease().map(|lease| 2 * lease.duration.as_secs()));
    times.collect::<Option<Vec<_>>>()?.into_iter().max()
}

fn advice(stack: &str, processes: &[LockProcess], takeover: Option<u64>) -> MessageText {
    let stack = option("-s", stack);
    let is_ended = |process: &LockProcess| matches!(process, LockProcess::Ended(_));
    let running = processes.iter().find(|process| matches!(process, LockProcess::Runs(_)));
    match (running.and_then(|process| process.text()), processes) {
        (Some(text), _) => MessageText::new(format_args!("{text}: wait for that run to end")),
        (None, [process, ..]) if processes.iter().all(is_ended) => MessageText::new(format_args!(
            "{}; remove its lock with `sc cancel {stack}`",
            process.text().unwrap_or_default()
        )),
        _ => match takeover {
            Some(seconds) => MessageText::new(format_args!(
                "wait for that run to end; if it was interrupted, the next command takes over its lock {seconds} s after its last \
                 renewal, unless `lock.takeover` is false, or `sc cancel {stack}` removes it"
            )),
            None => MessageText::new(format_args!(
                "wait for that run to end; if it was interrupted, remove its lock with `sc cancel {stack}`"
            )),
        },
    }
}

#[cfg(test)]
mod tests {
    use state::store::{LockHolder, LockLease};

    use super::*;

    fn lock(pid: u32, hostname: &str, process: Option<ProcessFingerprint>) -> LockInfo {
        let holder = LockHolder { pid, username: String::new(), hostname: hostname.to_owned(), process, lease: None };
        LockInfo::new("lock", Some((holder, String::new())))
    }

    fn here(pid: u32) -> Here {
        Here { host: "reefbox".to_owned(), pid, sees_processes: true, fingerprint: own_fingerprint() }
    }

    /// In a PID namespace with the `/proc` of the host, an id belongs to another process.
    ///
    /// Shows: state.md#locks "a lock has none of these, and nothing is said about processes"
    #[test]
    fn process_is_unknown_where_the_system_shows_other_ids() {
        let own = std::process::id();
        let elsewhere = Here { sees_processes: false, fingerprint: None, ..here(own + 1) };
        for process in [None, own_fingerprint()] {
            for pid in [own, 0x7fff_ffff] {
                let lock = lock(pid, "reefbox", process.clone());
                assert_eq!(elsewhere.find(&lock), LockProcess::Unknown, "{lock}");
            }
        }
    }

    /// The process did not see itself, so its id may be that of another namespace.
    ///
    /// Shows: state.md#locks "a lock has none of these, and nothing is said about processes"
    #[test]
    #[cfg(target_os = "linux")]
    fn process_of_sc_without_an_identity_is_unknown() {
        let lease = Some(LockLease::new(LockLease::DURATION));
        let process = LockHolder { lease, ..lock(0x7fff_ffff, "reefbox", None).holder.unwrap().0 };
        let lock = LockInfo::new("lock", Some((process, String::new())));
        assert_eq!(here(std::process::id()).find(&lock), LockProcess::Unknown);
    }

    /// Shows: state.md#a-run "says whether its process runs, if that is a process of this host"
    #[test]
    fn process_of_a_lock_is_searched_on_its_host_only() {
        let own = std::process::id();
        let table = [
            (lock(own, "reefbox", None), own + 1, LockProcess::Runs(own)),
            (lock(own, "reefbox", None), own, LockProcess::Ended(own)),
            // Greater than the maximum of the system.
            (lock(0x7fff_ffff, "reefbox", None), own, LockProcess::Ended(0x7fff_ffff)),
            (lock(0, "reefbox", None), own, LockProcess::Ended(0)),
            (lock(own, "elsewhere", None), own + 1, LockProcess::Unknown),
            (LockInfo::new("lock", None), own, LockProcess::Unknown),
        ];
        for (lock, pid, expected) in table {
            let here = here(pid);
            assert_eq!(here.find(&lock), expected, "{lock}");
        }
    }

    /// Shows: state.md#locks "all of them must agree: a process of another container, or of an earlier start of the
    ///   machine, proves nothing"
    #[test]
    #[cfg(target_os = "linux")]
    fn process_with_an_identity_is_distinguished_from_others_with_its_id() {
        let (own, fingerprint) = (std::process::id(), own_fingerprint().unwrap());
        assert_eq!(start_of(own), Some(fingerprint.started));
        let changed = |change: fn(&mut ProcessFingerprint)| {
            let mut changed = fingerprint.clone();
            change(&mut changed);
            changed
        };
        let table = [
            (fingerprint.clone(), own, LockProcess::Runs(own)),
            (changed(|fingerprint| fingerprint.started += 1), own, LockProcess::Ended(own)),
            (fingerprint.clone(), 0x7fff_ffff, LockProcess::Ended(0x7fff_ffff)),
            // Of a container with the same name, or of this machine before its last start.
            (changed(|fingerprint| fingerprint.pid_namespace = "pid:[1]".to_owned()), own, LockProcess::Unknown),
            // In a container with clocks of its own, in which the same process has another start.
            (
                changed(|fingerprint| fingerprint.time_namespace = Some("time:[1]".to_owned())),
                own,
                LockProcess::Unknown,
            ),
            (changed(|fingerprint| fingerprint.boot_id = "earlier".to_owned()), 0x7fff_ffff, LockProcess::Unknown),
        ];
        for (process, pid, expected) in table {
            assert_eq!(here(own + 1).find(&lock(pid, "reefbox", Some(process.clone()))), expected, "{process:?}");
        }
    }

    /// Shows: state.md#a-run "says whether its process runs, if that is a process of this host"
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
            assert_eq!(advice("reef", processes, None), expected);
        }
        let hostile = advice("-a$(id)", &[LockProcess::Ended(7)], None);
        assert!(hostile.ends_with("`sc cancel -s='-a$(id)'`"), "{hostile}");
        let leased = advice("reef", &[LockProcess::Unknown], Some(120));
        assert!(leased.contains("the next command takes over its lock 120 s after its last renewal"), "{leased}");
    }
}
