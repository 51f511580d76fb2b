//! Benchmark of the plugin host (`docs/performance.md`): the lease of an instance that is ready, an unchanged provision
//! with a plugin that is slow to start and to configure, and the launch of go-plugin servers.
//!
//! `cargo bench -p tests --bench host` measures; names of figures limit it to them, as `-- launch`, and with `-- --test`
//! everything runs once and small. Both sides take turns, and medians are compared. Prints the results, and never fails because of a slow result.

#![expect(clippy::print_stdout, reason = "a benchmark is a program that prints")]

mod launch;
mod lease;
mod slow_plugin;

use std::time::Duration;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let quick = arguments.iter().any(|argument| argument == "--test" || argument == "--quick");
    let names: Vec<&str> = arguments.iter().filter(|name| !name.starts_with("--")).map(String::as_str).collect();
    let is_selected = |name| names.is_empty() || names.contains(&name);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    println!("| figure | ours | bare loop | ratio | limit |");
    println!("|---|---|---|---|---|");
    if is_selected("lease") {
        runtime.block_on(lease::compare(if quick { 10 } else { 100_000 }, if quick { 1 } else { 9 }))?;
    }
    if is_selected("provision") {
        let (start, configure) = if quick { (1, 1) } else { (300, 1_000) };
        let rounds = if quick { 1 } else { 5 };
        slow_plugin::compare(&runtime, Duration::from_millis(start), Duration::from_millis(configure), rounds)?;
    }
    if is_selected("launch") {
        launch::compare(&runtime, if quick { 1 } else { 15 }, if quick { 2 } else { 50 })?;
    }
    Ok(())
}

/// Returns the median.
fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
