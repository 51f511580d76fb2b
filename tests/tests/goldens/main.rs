//! Compares our engine with recordings of Pulumi's.
//!
//! `cargo test -p tests --test goldens` runs everything. `-- NAME` runs the scenarios with that name (or, if there is
//! none, those whose names contain it) and prints all their differences. `SC_GOLDENS` names a folder with more
//! recordings, `SC_GOLDENS_REPORT` a file for a report with one line per scenario.
//!
//! `exceptions.tsv` beside the recordings lists known differences: name, step (or `*`), reason. The suite fails for a
//! listed step without differences, and for differences that are not listed.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a test with a main of its own")]

mod run;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tests::exceptions::Exceptions;
use tests::scenario::Scenario;

use run::{Held, run_all};

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

    let chosen = choose(&scenarios, &names);
    let started = std::time::Instant::now();
    let held = run_all(&chosen);
    let verdict = judge(&held, &exceptions, !names.is_empty());
    if let Some(report) = std::env::var_os("SC_GOLDENS_REPORT") {
        write_report(Path::new(&report), &held);
    }

    let result = if verdict.failed == 0 { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {result}. {} passed; {} failed; {} ignored; 0 measured; {} filtered out; finished in {:.2}s\n",
        verdict.passed,
        verdict.failed,
        verdict.excepted,
        scenarios.len() - chosen.len(),
        started.elapsed().as_secs_f64()
    );
    if verdict.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
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

fn choose<'a>(scenarios: &'a [Scenario], names: &[String]) -> Vec<&'a Scenario> {
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
struct Verdict {
    passed: usize,
    failed: usize,
    excepted: usize,
}

/// Compares the results with the exceptions, and prints the unexpected ones.
fn judge(held: &[Held<'_>], exceptions: &Exceptions, in_full: bool) -> Verdict {
    let mut verdict = Verdict::default();
    let (mut steps, mut holding) = (0, 0);
    for scenario in held {
        let mut bad = false;
        let mut excepted = false;
        steps += scenario.steps.len();
        for (index, differences) in scenario.steps.iter().enumerate() {
            let reason = exceptions.reason(&scenario.scenario.name, index);
            holding += usize::from(differences.is_empty());
            excepted |= reason.is_some();
            let unexpected = !differences.is_empty() && reason.is_none();
            bad |= unexpected;
            if unexpected || (in_full && !differences.is_empty()) {
                println!(
                    "{}/{index} {}",
                    scenario.scenario.name,
                    reason.map(|reason| format!("(listed: {reason})")).unwrap_or_default()
                );
                let shown = if in_full { differences.len() } else { 3 };
                differences.iter().take(shown).for_each(|text| println!("    {text}"));
                if differences.len() > shown {
                    println!("    … and {} more", differences.len() - shown);
                }
            }
        }
        for step in exceptions.stale(&scenario.scenario.name, &scenario.steps) {
            println!("{}/{step} is listed in exceptions.tsv and holds: take it off the list", scenario.scenario.name);
            bad = true;
        }
        match (bad, excepted) {
            (true, _) => verdict.failed += 1,
            (false, true) => verdict.excepted += 1,
            (false, false) => verdict.passed += 1,
        }
        if in_full && !bad {
            println!("{} {}", scenario.scenario.name, if excepted { "is listed" } else { "holds" });
        }
    }
    println!(
        "{} scenarios: {} as recorded, {} listed, {} neither; {holding} of {steps} steps as recorded",
        held.len(),
        verdict.passed,
        verdict.excepted,
        verdict.failed
    );
    verdict
}

/// Writes a line per scenario: name, steps, steps without differences, first difference.
fn write_report(path: &Path, held: &[Held<'_>]) {
    let line = |scenario: &Held<'_>| {
        let holding = scenario.steps.iter().filter(|differences| differences.is_empty()).count();
        let first = scenario
            .steps
            .iter()
            .enumerate()
            .find_map(|(index, differences)| Some(format!("/{index} {}", differences.first()?)));
        let first = first.unwrap_or_default().replace(['\t', '\n'], " ");
        format!("{}\t{}\t{holding}\t{first}\n", scenario.scenario.name, scenario.steps.len())
    };
    std::fs::write(path, held.iter().map(line).collect::<String>())
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
