//! Processes in `/proc`, and waiting for conditions.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Time limit for conditions that take milliseconds on an idle machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Interval between two checks of a condition.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Waits until a condition holds.
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < TIMEOUT, "timeout while waiting until {what}");
        // Polls: neither files nor processes in `/proc` report a change to this process.
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Returns the processes with this variable in their environment: process id and command line.
pub(crate) fn with_variable(name: &str, value: &Path) -> Vec<(i32, String)> {
    let wanted = format!("{name}={}", value.display());
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| {
        // A process that ends meanwhile, or that is not reaped, has no environment.
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        let found = environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes());
        let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        found.then(|| (pid, String::from_utf8_lossy(&command).replace('\0', " ")))
    })
    .collect()
}

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
