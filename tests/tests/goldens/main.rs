//! Compares our engine with recordings of Pulumi's engine.
//!
//! `cargo test -p tests --test goldens` runs everything. `-- NAME` runs the scenarios with that name (or, if there is
//! none, those whose names contain it) and prints all their differences. `SC_GOLDENS` names a folder with more
//! recordings, `SC_GOLDENS_REPORT` a file for a report with one line per scenario.
//!
//! `exceptions.tsv` beside the recordings lists known differences: name, step (or `*`), kind, reason. The suite fails for a
//! listed step without differences, for differences that are not listed, and for others than more secrets where the list
//! has these only.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a test with its own main function")]

mod run;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tests::exceptions::{ExceptionKind, Exceptions};
use tests::scenario::Scenario;

use run::{ScenarioResult, run_all};

fn main() -> ExitCode {
    let mut names = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            // Arguments with a value, which `cargo test` passes to every harness.
            "--test-threads" | "--skip" | "--format" | "--color" | "-Z" => drop(arguments.next()),
            flag if flag.starts_with('-') => {}
            name => names.push(name.to_owned()),
        }
    }
    let folders: Vec<PathBuf> = [
        Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/engine")),
        std::env::var_os("SC_GOLDENS").map(PathBuf::from),
    ]
    .into_iter()
    .flatten()
    .collect();
    let scenarios: Vec<Scenario> = folders.iter().flat_map(|folder| read(folder)).collect();
    let exceptions = Exceptions::read(&folders).unwrap_or_else(|error| panic!("{error}"));

    let selected = select(&scenarios, &names);
    let started = std::time::Instant::now();
    let results = run_all(&selected, &exceptions);
    let counts = compare_with_exceptions(&results, &exceptions, !names.is_empty());
    if let Some(report) = std::env::var_os("SC_GOLDENS_REPORT") {
        write_report(Path::new(&report), &results);
    }

    let result = if counts.failed == 0 { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {result}. {} passed; {} failed; {} ignored; 0 measured; {} filtered out; finished in {:.2}s\n",
        counts.passed,
        counts.failed,
        counts.listed,
        scenarios.len() - selected.len(),
        started.elapsed().as_secs_f64()
    );
    if counts.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Reads the scenarios in the files of a folder.
fn read(folder: &Path) -> Vec<Scenario> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "jsonl"))
        .collect();
    files.sort();
    files.iter().flat_map(|file| Scenario::read(file).unwrap_or_else(|error| panic!("{error}"))).collect()
}

fn select<'a>(scenarios: &'a [Scenario], names: &[String]) -> Vec<&'a Scenario> {
    let is_named = |scenario: &&Scenario| names.contains(&scenario.name);
    if names.is_empty() {
        scenarios.iter().collect()
    } else if scenarios.iter().any(|scenario| is_named(&scenario)) {
        scenarios.iter().filter(is_named).collect()
    } else {
        scenarios.iter().filter(|scenario| names.iter().any(|name| scenario.name.contains(name))).collect()
    }
}

/// Number of scenarios by result.
#[derive(Default)]
struct Counts {
    passed: usize,
    failed: usize,
    listed: usize,
}

/// Compares the results with the exceptions, and prints the unexpected ones.
fn compare_with_exceptions(results: &[ScenarioResult<'_>], exceptions: &Exceptions, show_all: bool) -> Counts {
    let mut counts = Counts::default();
    let (mut steps, mut equal_steps) = (0, 0);
    for scenario in results {
        let mut has_failed = false;
        let mut listed = false;
        steps += scenario.steps.len();
        for (index, differences) in scenario.steps.iter().enumerate() {
            let exception = exceptions.get(&scenario.scenario.name, index);
            let reason = exception.map(|(_, reason)| reason);
            equal_steps += usize::from(differences.is_empty());
            listed |= exception.is_some();
            let is_allowed = match exception {
                Some((ExceptionKind::Different, _)) => true,
                Some((ExceptionKind::MoreSecrets, _)) => !scenario.beside_secrets.contains(&index),
                None => false,
            };
            let unexpected = !differences.is_empty() && !is_allowed;
            has_failed |= unexpected;
            if unexpected || (show_all && !differences.is_empty()) {
                println!(
                    "{}/{index} {}",
                    scenario.scenario.name,
                    reason.map(|reason| format!("(listed: {reason})")).unwrap_or_default()
                );
                let shown = if show_all { differences.len() } else { 3 };
                differences.iter().take(shown).for_each(|text| println!("    {text}"));
                if differences.len() > shown {
                    println!("    … and {} more", differences.len() - shown);
                }
            }
        }
        for step in exceptions.stale(&scenario.scenario.name, &scenario.steps) {
            println!(
                "{}/{step} is listed in exceptions.tsv, but equals the recording: remove it from the list",
                scenario.scenario.name
            );
            has_failed = true;
        }
        match (has_failed, listed) {
            (true, _) => counts.failed += 1,
            (false, true) => counts.listed += 1,
            (false, false) => counts.passed += 1,
        }
        if show_all && !has_failed {
            println!("{} {}", scenario.scenario.name, if listed { "is listed" } else { "equals the recording" });
        }
    }
    println!(
        "{} scenarios: {} as recorded, {} listed, {} failed; {equal_steps} of {steps} steps as recorded",
        results.len(),
        counts.passed,
        counts.listed,
        counts.failed
    );
    counts
}

/// Writes a line per scenario: name, steps, steps without differences, first difference.
fn write_report(path: &Path, results: &[ScenarioResult<'_>]) {
    let line = |scenario: &ScenarioResult<'_>| {
        let equal_steps = scenario.steps.iter().filter(|differences| differences.is_empty()).count();
        let first = scenario
            .steps
            .iter()
            .enumerate()
            .find_map(|(index, differences)| Some(format!("/{index} {}", differences.first()?)));
        let first = first.unwrap_or_default().replace(['\t', '\n'], " ");
        format!("{}\t{}\t{equal_steps}\t{first}\n", scenario.scenario.name, scenario.steps.len())
    };
    std::fs::write(path, results.iter().map(line).collect::<String>())
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
