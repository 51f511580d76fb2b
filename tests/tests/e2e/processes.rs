//! Processes in `/proc`, and signals to them.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};
pub(crate) use tests::processes::{wait_until, with_variable};

/// Returns the children of a process: process id and command line.
pub(crate) fn children(parent: i32) -> Vec<(i32, String)> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may contain spaces.
        let of_pid = stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse::<i32>().ok()?;
        let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        (of_pid == parent).then(|| (pid, String::from_utf8_lossy(&command).replace('\0', " ")))
    })
    .collect()
}

/// Returns the name of a process, which `killall` compares and `pkill` searches in.
pub(crate) fn name(pid: i32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().to_owned()
}

/// Sends a signal to a process.
pub(crate) fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}
