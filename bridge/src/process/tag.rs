//! The tag of a program, which every process that descends from it inherits, also one that leaves the process group and
//! the session of the program, and whose parents have exited.
//!
//! On Linux the tag is a limit that the kernel no longer enforces (RLIMIT_LOCKS, since Linux 2.4.25), and that nothing else
//! sets. Processes inherit their limits, `/proc` shows them, and only a privileged process can raise one again. A process
//! that lowers this limit itself has no tag any more. Other systems have no such limit: there the tag has no effect.

use std::fmt;
use std::io;
use std::str::FromStr;

#[cfg(target_os = "linux")]
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Smallest tag that is chosen if the limit is not set: far above every limit that a person would set.
const MIN: u64 = 1 << 60;

/// Tag of a program. Differs from the tags of all other running programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ProcessTag(u64);

impl ProcessTag {
    /// Returns a new tag.
    pub(super) fn new() -> Self {
        Self::below(current_limit(), uuid::Uuid::new_v4().as_u64_pair().1)
    }

    /// Returns a tag that a process with this limit can set. The limit is set if `sc` itself runs in a plugin.
    fn below(limit: Option<u64>, random: u64) -> Self {
        match limit {
            None => Self(MIN + random % MIN),
            Some(limit) => Self(random % limit.max(1)),
        }
    }

    /// Sets the tag of this process.
    #[cfg(target_os = "linux")]
    pub(super) fn apply(self) -> io::Result<()> {
        let limit = Rlimit { current: Some(self.0), maximum: Some(self.0) };
        Ok(setrlimit(Resource::Locks, limit)?)
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn apply(self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(target_os = "linux")]
fn current_limit() -> Option<u64> {
    getrlimit(Resource::Locks).maximum
}

#[cfg(not(target_os = "linux"))]
fn current_limit() -> Option<u64> {
    None
}

impl fmt::Display for ProcessTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ProcessTag {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn kill_tagged(_: &[ProcessTag]) {}

#[cfg(target_os = "linux")]
pub(super) use linux::kill_tagged;

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::path::Path;
    use std::time::{Duration, Instant};

    use rustix::io::Errno;
    use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

    use super::{ProcessTag, current_limit};
    use crate::fs::read_regular;

    /// Limit on the time until no process has a tag. A process that belongs to another account cannot be killed.
    const LIMIT: Duration = Duration::from_secs(2);
    /// Pause until a killed process has exited.
    const PAUSE: Duration = Duration::from_millis(1);
    /// Limit on the size of a file of `/proc`. They have about 1 KiB.
    const MAX_FILE: u64 = 64 * 1024;

    /// Kills all processes with one of the tags, until there are none, at most for two seconds.
    pub(in crate::process) fn kill_tagged(tags: &[ProcessTag]) {
        let tags = &distinct(tags, current_limit());
        let started = Instant::now();
        // Processes that were started while the others were killed are found by the next search.
        while !tags.is_empty() && kill_found(tags) && started.elapsed() < LIMIT {
            // Polls: the system does not report the exits of processes that are not our children.
            std::thread::sleep(PAUSE);
        }
    }

    /// Returns the tags that differ from the limit of this process. A tag that is equal, because the limit was 0, says nothing:
    /// this process and others of the account have it without being descendants of a plugin.
    pub(super) fn distinct(tags: &[ProcessTag], own_limit: Option<u64>) -> Vec<ProcessTag> {
        tags.iter().copied().filter(|tag| own_limit != Some(tag.0)).collect()
    }

    /// Kills the running processes with one of the tags. Returns whether there are any that can be killed.
    fn kill_found(tags: &[ProcessTag]) -> bool {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
        let mut found = false;
        for pid in pids.filter(|pid| has_tag(*pid, tags)) {
            found |= kill(pid, tags);
        }
        found
    }

    /// Kills a process if it has one of the tags and has not exited. Returns whether it was killed.
    fn kill(pid: Pid, tags: &[ProcessTag]) -> bool {
        // Another process may get the number. The descriptor never leads to that process, so the tag is read again.
        let descriptor = pidfd_open(pid, PidfdFlags::empty());
        if !has_tag(pid, tags) || has_exited(pid) {
            return false;
        }
        match descriptor {
            Ok(process) => pidfd_send_signal(process, Signal::KILL).is_ok(),
            // Linux before 5.3.
            Err(Errno::NOSYS) => kill_process(pid, Signal::KILL).is_ok(),
            Err(_) => false,
        }
    }

    fn has_tag(pid: Pid, tags: &[ProcessTag]) -> bool {
        let limits = read(pid, "limits");
        parse_tag(&limits).is_some_and(|tag| tags.contains(&tag))
    }

    /// Returns whether a process is a zombie: some containers have no process that reaps orphans.
    fn has_exited(pid: Pid) -> bool {
        let stat = read(pid, "stat");
        // The name in parentheses may contain parentheses and spaces.
        let state = stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next());
        matches!(state, None | Some('Z' | 'X'))
    }

    /// Returns the content of a file of a process; empty if there is no such process.
    fn read(pid: Pid, file: &str) -> String {
        let path = format!("/proc/{}/{file}", pid.as_raw_nonzero());
        let content = read_regular(Path::new(&path), MAX_FILE).unwrap_or_default();
        String::from_utf8_lossy(&content).into_owned()
    }

    /// Returns the tag in the limits of a process: the hard limit of the locks.
    pub(super) fn parse_tag(limits: &str) -> Option<ProcessTag> {
        let locks = limits.lines().find_map(|line| line.strip_prefix("Max file locks"))?;
        locks.split_whitespace().nth(1)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_can_be_set_below_every_limit() {
        assert_eq!(ProcessTag::below(None, 5).0, MIN + 5);
        assert!(ProcessTag::below(None, u64::MAX).0 < 2 * MIN);
        assert_eq!(ProcessTag::below(Some(100), 205).0, 5);
        assert_eq!(ProcessTag::below(Some(0), 7).0, 0);
        assert_ne!(ProcessTag::new(), ProcessTag::new());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn tag_that_this_process_has_itself_kills_nothing() {
        let tag = ProcessTag::below(Some(0), 7);
        assert_eq!(linux::distinct(&[tag, ProcessTag(5)], Some(0)), [ProcessTag(5)]);
        assert_eq!(linux::distinct(&[tag, ProcessTag(5)], None), [tag, ProcessTag(5)]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn tag_is_the_hard_limit_of_the_locks() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max address space         unlimited            unlimited            bytes     \n\
                      Max file locks            12                   13                   locks     \n";
        assert_eq!(linux::parse_tag(limits), Some(ProcessTag(13)));
        for other in ["", "Max file locks            unlimited            unlimited            locks"] {
            assert_eq!(linux::parse_tag(other), None);
        }
    }
}
