//! The file system of processes.

use std::path::Path;

use super::read_regular;

/// Limit on the size of `/proc/PID/stat` in bytes. It has about 300.
const MAX_STAT: u64 = 16 * 1024;

/// Returns whether `/proc` shows processes by the numbers that they have for this process. In a PID namespace, it may be that of
/// another namespace, in which the same numbers belong to other processes. False on systems without `/proc`.
pub fn has_own_proc() -> bool {
    let own = std::fs::read_link("/proc/self");
    own.is_ok_and(|own| own.to_str() == Some(&std::process::id().to_string()))
}

/// Process as `/proc/PID/stat` shows it (proc_pid_stat(5)). Numbers are those of the PID namespace of this process; 0 stands
/// for what it cannot see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessStat {
    /// Number of the parent.
    pub parent: i32,
    /// Number of the process group.
    pub group: i32,
    /// Number of the session.
    pub session: i32,
    /// Start in clock ticks since the start of the machine. With the number, it identifies a process for the time that the
    /// machine runs.
    pub started: u64,
    /// False if the process has exited and is not reaped yet.
    pub runs: bool,
}

impl ProcessStat {
    /// Returns what is shown of the process with a number. `None` if there is none, or if the system does not show it. The
    /// caller makes sure that the numbers are its own: [`has_own_proc`].
    pub fn read(process: i32) -> Option<Self> {
        let stat = read_regular(Path::new(&format!("/proc/{process}/stat")), MAX_STAT).ok()?;
        Self::parse(&String::from_utf8_lossy(&stat))
    }

    fn parse(stat: &str) -> Option<Self> {
        // The name of the program, in parentheses, may contain any character.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse().ok();
        Some(Self {
            runs: !["Z", "X"].contains(fields.first()?),
            parent: number(1)?,
            group: number(2)?,
            session: number(3)?,
            started: fields.get(19)?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_shows_this_process_on_linux() {
        assert_eq!(has_own_proc(), cfg!(target_os = "linux"));
        let own = ProcessStat::read(i32::try_from(std::process::id()).unwrap());
        assert_eq!(own.map(|own| (own.runs, own.group > 0)), cfg!(target_os = "linux").then_some((true, true)));
    }

    #[test]
    fn fields_follow_the_name_of_the_program() {
        let stat = |state: &str| format!("7 (a) b) (c) {state} 5 42 43 0 -1 1 1 1 1 1 1 1 1 1 20 0 1 0 777 1");
        let expected = |runs| Some(ProcessStat { parent: 5, group: 42, session: 43, started: 777, runs });
        for (state, runs) in [("S", true), ("R", true), ("Z", false), ("X", false)] {
            assert_eq!(ProcessStat::parse(&stat(state)), expected(runs), "{state}");
        }
        for invalid in ["", "7 (a)", "7 (a) S", "7 (a) S 5 42 43", "7 (a) S x y"] {
            assert_eq!(ProcessStat::parse(invalid), None, "{invalid}");
        }
    }
}
