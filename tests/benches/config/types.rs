//! Measurement of the information about types that a warm start reads from its cache.

use anyhow::{Context as _, ensure};
use bridge::host::{InputInfo, PackageTypes, TypeInfo};
use serde::de::IgnoredAny;

use crate::compare_in_turns;

/// Number of types that the stack uses.
const USED: usize = 20;

pub(crate) fn compare(types: usize, rounds: usize) -> anyhow::Result<()> {
    let property = |at: usize| format!("propertyNumber{at}");
    let info = TypeInfo {
        inputs: (0..20).map(|at| (property(at), InputInfo::default())).collect(),
        outputs: (0..20).map(property).collect(),
        ..TypeInfo::default()
    };
    let tokens = (0..types).map(|at| (format!("big:m{}/type{at}:Type{at}", at % 90), info.clone()));
    let lines = tokens.collect::<PackageTypes>().to_lines().context("types have lines")?;
    let ours = || {
        let types = PackageTypes::from_lines(lines.clone()).context("lines are read")?;
        for at in 0..USED {
            let token = types.resolve(&format!("big:m{at}:Type{at}")).context("the type is resolved")?;
            ensure!(types.get(token).context("the type is found")?.inputs.len() == 20);
        }
        Ok(())
    };
    let parse_all = || {
        for line in lines.lines().skip(1) {
            let (_, info) = line.split_once('\t').context("a line has a token")?;
            serde_json::from_str::<IgnoredAny>(info)?;
        }
        Ok(())
    };
    let kilobytes = lines.len() / 1_000;
    let figure = format!("{USED} of {types} cached types ({kilobytes} KB), against parsing all of them");
    compare_in_turns(&figure, 1.0, rounds, ours, parse_all)
}
