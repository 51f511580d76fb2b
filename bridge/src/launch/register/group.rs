//! Processes of a plugin.

use std::path::Path;

use crate::fs::read_regular;

/// Limit on the size of `/proc/PID/stat` in bytes. It has about 300.
const MAX_STAT: u64 = 16 * 1024;

/// Processes of a plugin: the group that a process leads, and its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessGroup(i32);

impl ProcessGroup {
    /// Returns the processes of the group of this leader.
    pub(super) fn of_leader(leader: i32) -> Self {
        Self(leader)
    }

    /// Returns the group of a process; `None` if the system does not show it.
    pub(super) fn of_member(process: i32) -> Option<Self> {
        let (group, _) = group_and_session(process)?;
        // Number 0 stands for a group that this process cannot see.
        (group > 0).then_some(Self(group))
    }

    /// Returns whether a process belongs to the group, or to the session with its number.
    pub(super) fn contains(self, process: i32) -> bool {
        group_and_session(process).is_some_and(|(group, session)| group == self.0 || session == self.0)
    }
}

/// Returns the numbers of the group and of the session of a process.
fn group_and_session(process: i32) -> Option<(i32, i32)> {
    let stat = read_regular(Path::new(&format!("/proc/{process}/stat")), MAX_STAT).ok()?;
    parse_stat(&String::from_utf8_lossy(&stat))
}

/// Parses the group and the session: the third and the fourth field after the name, which is in parentheses and may
/// contain parentheses and spaces.
fn parse_stat(stat: &str) -> Option<(i32, i32)> {
    let mut fields = stat.rsplit(')').next()?.split_whitespace().skip(2);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_and_session_follow_the_name_of_the_program() {
        assert_eq!(parse_stat("7 (a) b) (c) S 1 42 43 0 -1"), Some((42, 43)));
        for invalid in ["", "7 (a)", "7 (a) S 1 42", "7 (a) S 1 x y"] {
            assert_eq!(parse_stat(invalid), None, "{invalid}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn process_belongs_to_its_group_only() {
        let own = i32::try_from(std::process::id()).unwrap();
        let group = ProcessGroup::of_member(own).unwrap();
        assert!(group.contains(own));
        assert!(!ProcessGroup::of_leader(i32::MAX).contains(own) && !group.contains(i32::MAX));
    }
}
