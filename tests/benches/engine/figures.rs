//! Results of one measuring process, which it prints as JSON for the comparing process.

use std::fs;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Results of one process. Times are in seconds, sizes in bytes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// Creation of all resources.
    pub(crate) create: f64,
    /// Run without changes.
    pub(crate) no_op: f64,
    /// Deletion of all resources.
    pub(crate) destroy: f64,
    /// Further results of the engine.
    pub(crate) engine: Option<EngineFigures>,
    /// Further results of the program.
    pub(crate) command: Option<CommandFigures>,
}

/// Results that only the program has.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct CommandFigures {
    /// Preview without changes.
    pub(crate) preview: f64,
    /// Refresh without drift.
    pub(crate) refresh: f64,
    /// Refresh, preview and update in one command, all without changes.
    pub(crate) combined: f64,
    /// Peak resident memory of one of the runs, sampled until shortly before its end.
    pub(crate) peak_memory: u64,
}

/// Results that only the engine has.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct EngineFigures {
    /// From the start of the provider's process to its reply to GetPluginInfo.
    pub(crate) provider_start: f64,
    /// Derivation of the key from the passphrase.
    pub(crate) key: f64,
    /// Run that adds [`ADDED_RESOURCES`] resources and changes no other.
    pub(crate) grow: f64,
    /// Steps of that run.
    pub(crate) grow_steps: usize,
    /// Bytes that this run wrote to disk before its checkpoint.
    pub(crate) grow_written: u64,
    /// Bytes that the creation of all resources wrote to disk before its checkpoint.
    pub(crate) create_written: u64,
    /// Size of the checkpoint with all resources.
    pub(crate) checkpoint: u64,
    /// Creation of all resources with a slow store; `None` if it was not measured.
    pub(crate) slow_create: Option<f64>,
    /// Peak resident memory of all runs.
    pub(crate) peak_memory: u64,
}

/// Number of resources that a run adds.
pub(crate) const ADDED_RESOURCES: usize = 100;

/// Returns the peak resident memory of this process in bytes; 0 if the system does not report it.
pub(crate) fn peak_memory() -> u64 {
    memory_of("self")
}

/// Returns the peak resident memory of another process in bytes; 0 if the system does not report it.
pub(crate) fn memory_of(process: &str) -> u64 {
    memory_in_status(process, "VmHWM:")
}

/// Returns the resident memory of another process in bytes; 0 if the system does not report it.
pub(crate) fn current_memory_of(process: &str) -> u64 {
    memory_in_status(process, "VmRSS:")
}

fn memory_in_status(process: &str, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.unwrap_or_default() * 1024
}

/// Returns the median of times.
pub(crate) fn median(times: impl IntoIterator<Item = f64>) -> f64 {
    let mut times: Vec<f64> = times.into_iter().collect();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Returns whether a figure is within its limit, in words.
pub(crate) fn verdict(holds: bool) -> &'static str {
    if holds { "within the limit" } else { "above the limit" }
}

/// Returns a duration in seconds.
pub(crate) fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}
