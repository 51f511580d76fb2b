//! Benchmark of the code around the engine, compared with a bare loop over the same bytes (`docs/performance.md`).
//! Compares reading stacks with parsing their YAML, validating them with reading them, a warm start of plugins with asking the system
//! about their files, one entry with `forEach` with the resources written out, several stacks with the longest of them, the fetch of an archive with `tar`, many downloads with the slowest of them, the memory of a large download with that
//! of a small one, generating schemas with parsing their JSON, and looking up cached types with parsing all of them.
//!
//! `cargo bench -p tests --bench config` measures; with `-- --test` everything runs once and small. Both sides take
//! turns, and medians are compared. Prints the results, and never fails because of a slow result.

#![expect(clippy::print_stdout, reason = "a benchmark is a program that prints")]

mod downloads;
mod plugins;
mod preview;
mod schema;
mod several;
mod stacks;
mod types;

use std::fmt::Display;
use std::time::{Duration, Instant};

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some((stacks::READ, rest)) = arguments.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return stacks::read_once(rest);
    }
    if let Some((downloads::FETCH, rest)) = arguments.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return downloads::fetch_once(rest);
    }
    let quick = arguments.iter().any(|argument| argument == "--test" || argument == "--quick");
    let rounds = if quick { 1 } else { 9 };
    println!("| figure | ours | bare loop | ratio | limit |");
    println!("|---|---|---|---|---|");
    stacks::compare(if quick { 10 } else { 200 }, rounds)?;
    stacks::compare_for_each(if quick { 100 } else { 50_000 }, if quick { 1 } else { 5 })?;
    several::compare_with_one(if quick { 2 } else { 10 }, if quick { 1 } else { 100 }, if quick { 1 } else { 5 })?;
    plugins::compare_with_walk(if quick { 2 } else { 20 }, if quick { 10 } else { 500 }, rounds)?;
    plugins::compare_sizes(if quick { 1 } else { 5 }, if quick { (4, 1) } else { (256, 8) }, rounds)?;
    plugins::compare_with_tar(if quick { 1 } else { 200 }, if quick { 1 } else { 5 })?;
    let (kibibytes, bytes_per_second) = if quick { (2 << 10, 4 << 20) } else { (40 << 10, 8 << 20) };
    downloads::compare_with_slowest(kibibytes, bytes_per_second, if quick { 1 } else { 5 })?;
    downloads::compare_memory(if quick { (20, 2) } else { (200, 20) }, if quick { 1 } else { 5 })?;
    preview::compare_sizes(if quick { (16, 8) } else { (500, 8) }, rounds)?;
    schema::compare(if quick { 30 } else { 1_500 }, rounds)?;
    types::compare(if quick { 30 } else { 1_500 }, rounds)?;
    Ok(())
}

/// Runs both sides in turns, and prints their medians.
fn compare_in_turns(
    figure: &str,
    limit: impl Display,
    rounds: usize,
    mut ours: impl FnMut() -> anyhow::Result<()>,
    mut bare: impl FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let time = |work: &mut dyn FnMut() -> anyhow::Result<()>| -> anyhow::Result<Duration> {
        let started = Instant::now();
        work()?;
        Ok(started.elapsed())
    };
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        a.push(time(&mut ours)?);
        b.push(time(&mut bare)?);
    }
    a.sort();
    b.sort();
    let (a, b) = (a[rounds / 2], b[rounds / 2]);
    let (ratio, millis) = (a.as_secs_f64() / b.as_secs_f64(), |time: Duration| time.as_secs_f64() * 1000.0);
    println!("| {figure} | {:.1} ms | {:.1} ms | {ratio:.2} | {limit} |", millis(a), millis(b));
    Ok(())
}
