//! Benchmark of the engine and of the program `sc`: compares them with a bare loop that makes the same calls, and with
//! Pulumi if `go` can build it (`docs/performance.md`).
//!
//! `cargo bench -p tests --bench engine` measures; with `-- --test` everything runs once and small. `-- stores` measures the
//! program with its state in a bucket, `-- core-types` resources of core types, and `-- baseline` compares the program with another
//! build of it. Each other measurement has its own process, so that memory is measured separately. Engine and loop take turns, and medians are compared.
//! Prints the results, and never fails because of a slow result.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark is a program that prints")]

mod bare;
mod baseline;
mod command;
mod core_types;
mod figures;
mod ours;
mod pulumi;
mod report;
mod stores;
mod workload;

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::Context as _;
use tokio::runtime::Builder;

use figures::Figures;
use pulumi::Checkpoints;
use report::{Report, Round};
use workload::{Shape, Workload};

/// Scripted provider, which replies by its default rules and records no calls.
const PROVIDER: &str = env!("CARGO_BIN_EXE_pulumi-resource-rec");
/// Folder on a real disk.
const SCRATCH: &str = env!("CARGO_TARGET_TMPDIR");
/// Argument that makes this program measure one workload.
const MEASURE: &str = "--measure";

/// Workload to measure.
struct Plan {
    workload: Workload,
    rounds: usize,
    /// True if the program `sc`, and Pulumi if it can be built, are measured from start to exit as well.
    with_command: bool,
}

impl Plan {
    /// Returns the number of rounds with Pulumi, which takes minutes for many resources.
    fn pulumi_rounds(&self) -> usize {
        match (self.with_command && pulumi::can_be_built(), self.workload.resources) {
            (false, _) => 0,
            (true, ..=100) => 3,
            (true, _) => 1,
        }
    }
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if let Some(code) = bridge::process::run_helper(arguments.iter().cloned()) {
        return Ok(code);
    }
    let arguments: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
    match arguments.iter().map(|argument| &**argument).collect::<Vec<_>>()[..] {
        [MEASURE, subject, workload] => measure(subject, &serde_json::from_str(workload)?)?,
        ref arguments => {
            let is_quick = arguments.contains(&"--test") || arguments.contains(&"--quick");
            if arguments.contains(&"stores") {
                stores::compare(is_quick, Path::new(SCRATCH))?;
            } else if arguments.contains(&"core-types") {
                core_types::compare(is_quick, Path::new(SCRATCH))?;
            } else if arguments.contains(&"baseline") {
                baseline::compare(is_quick, Path::new(SCRATCH))?;
            } else {
                compare(&plans(is_quick))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the workloads to measure. The others are compared with the first one.
fn plans(quick: bool) -> Vec<Plan> {
    let plan = |resources, shape, rounds| Plan { workload: Workload { resources, shape }, rounds, with_command: false };
    let with_command = |plan| Plan { with_command: true, ..plan };
    if quick {
        return vec![
            plan(100, Shape::Independent, 1),
            with_command(plan(100, Shape::Layers, 1)),
            plan(300, Shape::Independent, 1),
        ];
    }
    vec![
        plan(1_000, Shape::Independent, 9),
        with_command(plan(1, Shape::Layers, 9)),
        with_command(plan(1_000, Shape::Layers, 9)),
        plan(10_000, Shape::Independent, 5),
        plan(50_000, Shape::Independent, 1),
    ]
}

fn compare(plans: &[Plan]) -> anyhow::Result<()> {
    let mut report = Report::default();
    for plan in plans {
        for round in 0..plan.rounds {
            let [ours, bare, single] =
                ["ours", "bare", "single"].map(|subject| measure_in_process(subject, plan.workload));
            let command = plan.with_command.then(|| measure_in_process("command", plan.workload)).transpose()?;
            let with_pulumi = |subject| {
                (round < plan.pulumi_rounds()).then(|| measure_in_process(subject, plan.workload)).transpose()
            };
            let (pulumi, without_checkpoints) = (with_pulumi("pulumi")?, with_pulumi("without-checkpoints")?);
            report.add(
                plan.workload,
                Round { ours: ours?, bare: bare?, single: single?, command, pulumi, without_checkpoints },
            );
        }
    }
    print!("{report}");
    Ok(())
}

fn measure_in_process(subject: &str, workload: Workload) -> anyhow::Result<Figures> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([MEASURE, subject, &serde_json::to_string(&workload)?]).stderr(Stdio::inherit());
    let output = command.output()?;
    anyhow::ensure!(output.status.success(), "{subject} with {workload:?}: {}", output.status);
    serde_json::from_slice(&output.stdout).context("figures are JSON")
}

fn measure(subject: &str, workload: &Workload) -> anyhow::Result<()> {
    let figures = match subject {
        // The runtime of `sc`.
        "ours" => Builder::new_current_thread()
            .enable_all()
            .build()?
            .block_on(ours::measure(*workload, Path::new(SCRATCH)))?,
        "command" => command::measure(*workload, Path::new(SCRATCH))?,
        "pulumi" => pulumi::measure(*workload, Checkpoints::Each, Path::new(SCRATCH))?,
        "without-checkpoints" => pulumi::measure(*workload, Checkpoints::Last, Path::new(SCRATCH))?,
        // The runtime of `#[tokio::main]`.
        "bare" => Builder::new_multi_thread().enable_all().build()?.block_on(bare::measure(*workload))?,
        // The bare loop on one thread.
        _ => Builder::new_current_thread().enable_all().build()?.block_on(bare::measure(*workload))?,
    };
    println!("{}", serde_json::to_string(&figures)?);
    Ok(())
}
