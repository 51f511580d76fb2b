//! What the engine costs, and the program around it, held against a bare loop that makes the same calls, and against
//! Pulumi where that is on PATH (`docs/performance.md`).
//!
//! `cargo bench -p tests --bench engine` measures; with `-- --test` everything runs once and small. Each measurement is a
//! process of its own, so that its memory is its own; engine and loop take turns, and medians are compared. Says what it
//! found and never fails because something was slow.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark is a program that prints")]

mod bare;
mod command;
mod figures;
mod ours;
mod pulumi;
mod report;
mod slow;
mod workload;

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::Context as _;
use tokio::runtime::Builder;

use figures::Figures;
use pulumi::Checkpoints;
use report::{Report, Round};
use workload::{Shape, Workload};

/// The scripted provider, which answers by its rules and records nothing.
const PROVIDER: &str = env!("CARGO_BIN_EXE_pulumi-resource-rec");
/// A folder on a real disk.
const SCRATCH: &str = env!("CARGO_TARGET_TMPDIR");
/// The argument that makes this program measure one workload.
const MEASURE: &str = "--measure";

/// What is measured.
struct Plan {
    workload: Workload,
    rounds: usize,
    /// Whether the program is run, too, from its start to its exit; and Pulumi's, where it is there.
    with_command: bool,
}

impl Plan {
    /// In how many rounds Pulumi takes part: for many resources it takes minutes.
    fn pulumis_rounds(&self) -> usize {
        match (self.with_command && pulumi::is_there(), self.workload.resources) {
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
        [MEASURE, who, workload] => measure(who, &serde_json::from_str(workload)?)?,
        ref arguments => compare(&plans(arguments.contains(&"--test") || arguments.contains(&"--quick")))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What is measured, the one that others are compared with first.
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
            let [ours, bare, single] = ["ours", "bare", "single"].map(|who| in_process(who, plan.workload));
            let command = plan.with_command.then(|| in_process("command", plan.workload)).transpose()?;
            let pulumis = |who| (round < plan.pulumis_rounds()).then(|| in_process(who, plan.workload)).transpose();
            let (pulumi, hasty) = (pulumis("pulumi")?, pulumis("hasty")?);
            report.add(plan.workload, Round { ours: ours?, bare: bare?, single: single?, command, pulumi, hasty });
        }
    }
    print!("{report}");
    Ok(())
}

fn in_process(who: &str, workload: Workload) -> anyhow::Result<Figures> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([MEASURE, who, &serde_json::to_string(&workload)?]).stderr(Stdio::inherit());
    let output = command.output()?;
    anyhow::ensure!(output.status.success(), "{who} with {workload:?}: {}", output.status);
    serde_json::from_slice(&output.stdout).context("figures are JSON")
}

fn measure(who: &str, workload: &Workload) -> anyhow::Result<()> {
    let figures = match who {
        // As in `sc`.
        "ours" => Builder::new_current_thread()
            .enable_all()
            .build()?
            .block_on(ours::measure(*workload, Path::new(SCRATCH)))?,
        "command" => command::measure(*workload, Path::new(SCRATCH))?,
        "pulumi" => pulumi::measure(*workload, Checkpoints::Each, Path::new(SCRATCH))?,
        "hasty" => pulumi::measure(*workload, Checkpoints::Last, Path::new(SCRATCH))?,
        // As `#[tokio::main]` has it.
        "bare" => Builder::new_multi_thread().enable_all().build()?.block_on(bare::measure(*workload))?,
        // The fastest that one thread can be.
        _ => Builder::new_current_thread().enable_all().build()?.block_on(bare::measure(*workload))?,
    };
    println!("{}", serde_json::to_string(&figures)?);
    Ok(())
}
