//! Processes in `/proc`, and waiting for conditions.
//!
//! Input: a variable that all processes of a test have in their environment. Output: those processes, or their end. Excluded:
//! the start of processes.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Time limit for conditions that take milliseconds on an idle machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Interval between two checks of a condition.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Waits until a condition holds.
///
/// # Panics
/// The condition does not hold within a minute.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < TIMEOUT, "timeout while waiting until {what}");
        // Polls: neither files nor processes in `/proc` report a change to this process.
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Returns the processes with this variable in their environment: process id and command line.
pub fn with_variable(name: &str, value: &Path) -> Vec<(i32, String)> {
    let wanted = format!("{name}={}", value.display());
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
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

/// Kills the processes with this variable in their environment. A test that fails leaves none.
pub fn kill_with_variable(name: &str, value: &Path) {
    for (pid, _) in with_variable(name, value) {
        if let Some(pid) = Pid::from_raw(pid) {
            // An error means that the process has ended.
            kill_process(pid, Signal::KILL).ok();
        }
    }
}
