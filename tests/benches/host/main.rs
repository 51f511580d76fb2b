//! Benchmark of the plugin host (`docs/performance.md`): the lease of an instance that is ready, an unchanged provision
//! with a plugin that is slow to start and to configure, and the launch of go-plugin servers.
//!
//! `cargo bench -p tests --bench host` measures; with `-- --test` everything runs once and small. Both sides take turns, and
//! medians are compared. Prints the results, and never fails because of a slow result.

#![expect(clippy::print_stdout, reason = "a benchmark is a program that prints")]

mod launch;
mod lease;
mod slow_plugin;

use std::time::Duration;

fn main() -> anyhow::Result<()> {
    let quick = std::env::args().any(|argument| argument == "--test" || argument == "--quick");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    println!("| figure | ours | bare loop | ratio | limit |");
    println!("|---|---|---|---|---|");
    runtime.block_on(lease::compare(if quick { 10 } else { 100_000 }, if quick { 1 } else { 9 }))?;
    let (start, configure) = if quick { (1, 1) } else { (300, 1_000) };
    let rounds = if quick { 1 } else { 5 };
    slow_plugin::compare(&runtime, Duration::from_millis(start), Duration::from_millis(configure), rounds)?;
    launch::compare(&runtime, if quick { 1 } else { 15 }, if quick { 2 } else { 50 })
}

/// Returns the median.
fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
