//! The tag of a program, which every process that descends from it inherits, also one that leaves the process group and
//! the session of the program, and whose parents have exited.
//!
//! On Linux the tag is a limit that the kernel no longer enforces (RLIMIT_LOCKS, since Linux 2.4.25). A process can lower
//! its own limit, and set that of another process of its account, so a tag proves nothing: it only tells to which program a
//! descendant of `sc` belongs. Where the limit of `sc` is too small for tags that differ, and on other systems, a program has
//! no tag.

use std::fmt;
use std::io;
#[cfg(target_os = "linux")]
use std::path::Path;
use std::str::FromStr;

#[cfg(target_os = "linux")]
use rustix::process::{Pid, Resource, Rlimit, getrlimit, setrlimit};

#[cfg(target_os = "linux")]
use crate::fs::read_regular;

/// Smallest tag: far above every limit that a person would set.
const MIN: u64 = 1 << 60;

/// Limit on the size of `/proc/PID/limits` in bytes. It has about 1,300.
#[cfg(target_os = "linux")]
const MAX_LIMITS: u64 = 64 * 1024;

/// Tag of a program. Differs from the tags of all other running programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ProcessTag(u64);

impl ProcessTag {
    /// Returns a new tag; `None` if the limit of this process is too small for one.
    pub(super) fn new() -> Option<Self> {
        Self::below(current_limit(), uuid::Uuid::new_v4().as_u64_pair().1)
    }

    /// Returns a tag that a process with this limit can set. The limit is set if `sc` itself runs in a plugin.
    fn below(limit: Option<u64>, random: u64) -> Option<Self> {
        let largest = limit.map_or(2 * MIN, |limit| limit.min(2 * MIN));
        let number = largest.checked_sub(MIN).filter(|number| *number > 0)?;
        Some(Self(MIN + random % number))
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

    #[cfg(target_os = "linux")]
    pub(super) fn is_of(self, process: Pid) -> bool {
        let path = format!("/proc/{process}/limits");
        let limits = read_regular(Path::new(&path), MAX_LIMITS).unwrap_or_default();
        parse_tag(&String::from_utf8_lossy(&limits)) == Some(self)
    }
}

#[cfg(target_os = "linux")]
fn current_limit() -> Option<u64> {
    getrlimit(Resource::Locks).maximum
}

/// Other systems have no such limit.
#[cfg(not(target_os = "linux"))]
fn current_limit() -> Option<u64> {
    Some(0)
}

/// Returns the tag in the limits of a process: the hard limit of the locks.
#[cfg(target_os = "linux")]
fn parse_tag(limits: &str) -> Option<ProcessTag> {
    let locks = limits.lines().find_map(|line| line.strip_prefix("Max file locks"))?;
    locks.split_whitespace().nth(1)?.parse().ok()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_can_be_set_below_the_limit_and_differs_from_others() {
        assert_eq!(ProcessTag::below(None, 5), Some(ProcessTag(MIN + 5)));
        assert!(ProcessTag::below(None, u64::MAX).is_some_and(|tag| tag.0 < 2 * MIN));
        assert_eq!(ProcessTag::below(Some(MIN + 100), 205), Some(ProcessTag(MIN + 5)));
        for too_small in [0, 1, 1024, MIN] {
            assert_eq!(ProcessTag::below(Some(too_small), 7), None, "{too_small}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn tag_is_the_hard_limit_of_the_locks() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max address space         unlimited            unlimited            bytes     \n\
                      Max file locks            12                   13                   locks     \n";
        assert_eq!(parse_tag(limits), Some(ProcessTag(13)));
        for other in ["", "Max file locks            unlimited            unlimited            locks"] {
            assert_eq!(parse_tag(other), None);
        }
    }
}
