//! Comparison with an earlier build of the program, whose path is in the environment: the same commands on `file://`.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tests::binaries;

use crate::command::{CREATE, CommandUsage, DESTROY, FOLDER, NO_OP, Repository};
use crate::figures::{median, verdict};
use crate::workload::{Shape, Workload};

/// Environment variable with the path of the earlier build.
const BASELINE: &str = "SC_BASELINE";
/// Limit of the ratio of the times on a processor.
const LIMIT: f64 = 1.03;
/// Commands, in their order.
const COMMANDS: [(&str, &[&str]); 3] = [("create", &CREATE), ("no-op", &NO_OP), ("destroy", &DESTROY)];

/// Measures both builds in turns, the first one in every second round. Prints, for each command, the medians of the times from
/// start to exit with the median of the ratios of the rounds, and the ratio of the times on a processor of all rounds.
pub(crate) fn compare(is_quick: bool, scratch: &Path) -> anyhow::Result<()> {
    let baseline = std::env::var_os(BASELINE).map(PathBuf::from);
    let baseline = baseline.with_context(|| format!("{BASELINE} names no build to compare with"))?;
    let builds = [binaries::sc()?, baseline];
    let (rounds, sizes) = if is_quick { (1, &[20][..]) } else { (81, &[1, 100, 1_000][..]) };
    println!("{rounds} rounds in turns, resources in layers\n");
    println!(
        "| | start to exit: this build | the earlier one | ratio | processor | limit |\n|---|---|---|---|---|---|"
    );
    for resources in sizes {
        let workload = Workload { resources: *resources, shape: Shape::Layers };
        let mut usages: [Vec<[CommandUsage; 2]>; COMMANDS.len()] = Default::default();
        for round in 0..rounds {
            let repository = |build: &PathBuf| Repository::create(build.clone(), workload, FOLDER, scratch);
            let mut repositories = [repository(&builds[0])?, repository(&builds[1])?];
            for (command, usages) in COMMANDS.iter().zip(&mut usages) {
                let mut measured = [CommandUsage::default(), CommandUsage::default()];
                for turn in 0..builds.len() {
                    let build = (turn + round) % builds.len();
                    measured[build] = repositories[build].run_measured(command.1)?;
                }
                usages.push(measured);
            }
        }
        for ((name, _), usages) in COMMANDS.iter().zip(&usages) {
            println!("| {name} of {resources} {}", row(usages));
        }
    }
    Ok(())
}

/// Returns the cells of a command.
fn row(usages: &[[CommandUsage; 2]]) -> String {
    let [ours, theirs] = [0, 1].map(|build| median(usages.iter().map(|usages| usages[build].time)) * 1e3);
    let ratio = median(usages.iter().map(|[ours, theirs]| ours.time / theirs.time));
    let [on_processor, earlier] =
        [0, 1].map(|build| usages.iter().map(|usages| usages[build].processor_ticks).sum::<u64>());
    let processor = on_processor as f64 / earlier as f64;
    format!("| {ours:.0} ms | {theirs:.0} ms | {ratio:.3} | {processor:.3} | {LIMIT} {} |", verdict(processor <= LIMIT))
}
