//! Processes of a plugin.

use crate::fs::{ProcessStat, has_own_proc};

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
        let group = shown(process)?.group;
        // Number 0 stands for a group that this process cannot see.
        (group > 0).then_some(Self(group))
    }

    /// Returns whether a process belongs to the group, or to the session with its number.
    pub(super) fn contains(self, process: i32) -> bool {
        shown(process).is_some_and(|process| process.group == self.0 || process.session == self.0)
    }
}

/// Returns what the system shows of a process by the number that it has here.
fn shown(process: i32) -> Option<ProcessStat> {
    if has_own_proc() { ProcessStat::read(process) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn process_belongs_to_its_group_only() {
        let own = i32::try_from(std::process::id()).unwrap();
        let group = ProcessGroup::of_member(own).unwrap();
        assert!(group.contains(own));
        assert!(!ProcessGroup::of_leader(i32::MAX).contains(own) && !group.contains(i32::MAX));
    }
}
