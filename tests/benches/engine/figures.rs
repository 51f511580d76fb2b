//! What one measuring process found out, as it says it to the process that compares.

use std::fs;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The figures of one process. Times in seconds, sizes in bytes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// Creation of everything.
    pub(crate) create: f64,
    /// A run that finds nothing to do.
    pub(crate) no_op: f64,
    /// Deletion of everything.
    pub(crate) destroy: f64,
    /// The engine only: what lies beside its work.
    pub(crate) engine: Option<EngineFigures>,
    /// The program only.
    pub(crate) command: Option<CommandFigures>,
}

/// What is measured of the program alone.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct CommandFigures {
    /// A preview that finds nothing to do.
    pub(crate) preview: f64,
    /// A refresh that finds everything as it was.
    pub(crate) refresh: f64,
    /// Refresh, preview and update in one command, of which none finds anything to do.
    pub(crate) everything: f64,
    /// Most memory that was resident at once in one of the runs, as the system showed it shortly before its end.
    pub(crate) peak_memory: u64,
}

/// What is measured of the engine alone.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct EngineFigures {
    /// From the start of the provider's process to its answer to GetPluginInfo.
    pub(crate) provider_start: f64,
    /// Derivation of the key from the passphrase.
    pub(crate) key: f64,
    /// A run that makes [`MORE`] further resources beside those that are there, with no change to these.
    pub(crate) grow: f64,
    /// Steps of that run.
    pub(crate) grow_steps: usize,
    /// What that run wrote to disk before its checkpoint.
    pub(crate) grow_written: u64,
    /// What the creation of everything wrote to disk before its checkpoint.
    pub(crate) create_written: u64,
    /// The checkpoint of everything.
    pub(crate) checkpoint: u64,
    /// Creation of everything with a slow store; `None` where that was not tried.
    pub(crate) slow_create: Option<f64>,
    /// Most memory that was resident at once, all runs together.
    pub(crate) peak_memory: u64,
}

/// How many resources are made beside those that are there.
pub(crate) const MORE: usize = 100;

/// Most memory that was resident at once in this process, in bytes; 0 where the system does not say.
pub(crate) fn peak_memory() -> u64 {
    memory_of("self")
}

/// The same of another process.
pub(crate) fn memory_of(process: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.unwrap_or_default() * 1024
}

/// The median of some times.
pub(crate) fn median(times: impl IntoIterator<Item = f64>) -> f64 {
    let mut times: Vec<f64> = times.into_iter().collect();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Seconds.
pub(crate) fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}
