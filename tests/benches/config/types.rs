//! Measurement of the information about types that a warm start reads from its cache.

use anyhow::{Context as _, ensure};
use bridge::host::{InputInfo, NestedObjects, ObjectInfo, PackageTypes, TypeInfo};
use serde::de::IgnoredAny;

use crate::compare_in_turns;

/// Number of types that the stack uses.
const USED: usize = 20;
/// Number of object types for each type, as in the schema of AWS.
const OBJECTS: usize = 3;

pub(crate) fn compare(types: usize, rounds: usize) -> anyhow::Result<()> {
    let property = |at: usize| format!("propertyNumber{at}");
    let inputs = |count: usize| (0..count).map(|at| (property(at), InputInfo::default())).collect();
    let object = |at: usize| format!("big:m{}/object{at}:Object{at}", at % 90);
    let info = |at: usize| {
        let nested =
            |property: usize| (property < OBJECTS).then(|| NestedObjects::Object(object(at * OBJECTS + property)));
        let outputs = (0..20).map(|at| (property(at), nested(at))).collect();
        TypeInfo { inputs: inputs(20), outputs, ..TypeInfo::default() }
    };
    let tokens = (0..types).map(|at| (format!("big:m{}/type{at}:Type{at}", at % 90), info(at)));
    let objects = (0..types * OBJECTS).map(|at| (object(at), ObjectInfo { properties: inputs(6) }));
    let lines = PackageTypes::new(tokens, objects).to_lines().context("types have lines")?;
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
