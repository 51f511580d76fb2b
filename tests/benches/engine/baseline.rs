//! Comparison with an earlier build of the program, whose path is in the environment: the same commands on `file://`.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tests::binaries;

use crate::command::{CREATE, DESTROY, FOLDER, NO_OP, Repository};
use crate::figures::{median, verdict};
use crate::workload::{Shape, Workload};

/// Environment variable with the path of the earlier build.
const BASELINE: &str = "SC_BASELINE";
/// Limit of the median of the ratios.
const LIMIT: f64 = 1.05;
/// Commands, in their order.
const COMMANDS: [(&str, &[&str]); 3] = [("create", &CREATE), ("no-op", &NO_OP), ("destroy", &DESTROY)];

/// Measures both builds in turns, the first one in every second round, and prints the median of the ratios of the rounds.
pub(crate) fn compare(is_quick: bool, scratch: &Path) -> anyhow::Result<()> {
    let baseline = std::env::var_os(BASELINE).map(PathBuf::from);
    let baseline = baseline.with_context(|| format!("{BASELINE} names no build to compare with"))?;
    let (rounds, resources) = if is_quick { (1, 20) } else { (81, 1_000) };
    let workload = Workload { resources, shape: Shape::Layers };
    let builds = [binaries::sc()?, baseline];
    let mut times: [Vec<[f64; 2]>; COMMANDS.len()] = Default::default();
    for round in 0..rounds {
        let mut repositories = Vec::new();
        for build in &builds {
            repositories.push(Repository::create(build.clone(), workload, FOLDER, scratch)?);
        }
        for (command, times) in COMMANDS.iter().zip(&mut times) {
            let mut measured = [0.0; 2];
            for turn in 0..builds.len() {
                let build = (turn + round) % builds.len();
                measured[build] = repositories[build].run(command.1)?;
            }
            times.push(measured);
        }
    }
    println!("{rounds} rounds in turns, {resources} resources in layers, start to exit\n");
    println!("| | this build | the earlier one | ratio | limit |\n|---|---|---|---|---|");
    for ((name, _), times) in COMMANDS.iter().zip(&times) {
        let [ours, theirs] = [0, 1].map(|build| median(times.iter().map(|times| times[build])) * 1e3);
        let ratio = median(times.iter().map(|[ours, theirs]| ours / theirs));
        println!("| {name} | {ours:.0} ms | {theirs:.0} ms | {ratio:.3} | {LIMIT} {} |", verdict(ratio <= LIMIT));
    }
    Ok(())
}
