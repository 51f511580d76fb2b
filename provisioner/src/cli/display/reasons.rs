//! Reasons of the changes of a preview, in a few words: edited here, changed outside, gone, or a consequence of other changes.
//!
//! Input: the step of a resource with the result of its last refresh. The text of a reason may name properties, never their values.

use engine::events::{StepInfo, StepOp};
use pulumi_proto::property::PropertyValue;

use super::diff::engine_reason;
use super::property_changes::{PropertyChange, PropertyChanges, compare_maps};
use super::rows::Row;

/// Reason for the change of a resource, shown behind its row; empty if there is none to show.
pub(super) fn reason(row: &Row) -> String {
    step_reason(row.op, &row.diff_step, row.refreshed.as_deref())
}

/// Returns the reason for an operation whose step has the entries before and after it. `refreshed` is the refresh that found a
/// difference from the recorded state.
pub(super) fn step_reason(op: StepOp, info: &StepInfo, refreshed: Option<&StepInfo>) -> String {
    let is_gone = refreshed.is_some_and(|refresh| refresh.result == Some(StepOp::Delete));
    match op {
        StepOp::Create if is_gone => "it is gone: created again".to_owned(),
        StepOp::Update => change(info, refreshed),
        StepOp::Replace => {
            let because = replace_reason(info);
            let change = change(info, refreshed);
            [change, because].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ")
        }
        _ => String::new(),
    }
}

/// Returns whether the inputs were edited, the resource was changed outside, or both.
fn change(info: &StepInfo, refreshed: Option<&StepInfo>) -> String {
    let is_drifted = refreshed.is_some_and(|refresh| refresh.new.is_some());
    // The refresh has put what it read in the place of what was recorded.
    let recorded = refreshed.and_then(|refresh| refresh.old.as_ref()).or(info.old.as_ref());
    let difference = match (recorded, &info.new) {
        (Some(old), Some(new)) => Difference::of(&compare_maps(&old.inputs, &new.inputs)),
        _ => Difference::default(),
    };
    // A refresh compares with what is recorded alone.
    let is_edited = difference.is_known && info.op != StepOp::Refresh;
    let reason = match (is_edited, is_drifted, difference.is_unknown) {
        (true, true, _) => "edited here, changed outside",
        (true, false, _) => "edited here",
        (false, true, _) => "changed outside",
        (false, false, true) => "follows from other changes",
        (false, false, false) => "",
    };
    let names = info.diffs.iter().chain(&info.replace_keys);
    match names.filter(|name| name.starts_with('#')).find_map(|name| engine_reason(name)) {
        Some(engine) if reason.is_empty() => engine.to_owned(),
        _ => reason.to_owned(),
    }
}

/// Returns the properties whose change replaces the resource, or the reason of the engine to replace it.
fn replace_reason(info: &StepInfo) -> String {
    let detailed = info.detailed_diff.iter().filter(|(_, difference)| difference.kind.is_replace());
    let mut names: Vec<&str> = detailed.map(|(path, _)| path.as_str()).collect();
    if names.is_empty() {
        names = info.replace_keys.iter().map(String::as_str).collect();
    }
    let mut texts: Vec<String> = Vec::new();
    let mut properties: Vec<&str> = Vec::new();
    for name in names.into_iter().filter(|name| !name.starts_with("__")) {
        let is_property = |entry: &state::ResourceState| entry.inputs.contains_key(name);
        let is_input = info.old.iter().chain(&info.new).any(|entry| is_property(entry));
        match engine_reason(name).filter(|_| !is_input) {
            Some(reason) => texts.push(reason.to_owned()),
            None => properties.push(name),
        }
    }
    if !properties.is_empty() {
        texts.insert(0, format!("replaced because of {}", properties.join(", ")));
    }
    texts.join("; ")
}

/// Difference between recorded and new inputs.
#[derive(Clone, Copy, Debug, Default)]
struct Difference {
    /// True if values differ that are known.
    is_known: bool,
    /// True if values differ that only the change of another resource makes known.
    is_unknown: bool,
}

impl Difference {
    fn of(changes: &PropertyChanges<'_>) -> Self {
        let mut found = Self::default();
        for change in changes.values() {
            match change {
                PropertyChange::Nested(inner) => {
                    let inner = Self::of(inner);
                    found.is_known |= inner.is_known;
                    found.is_unknown |= inner.is_unknown;
                }
                PropertyChange::Value(value) if value.new.is_some_and(PropertyValue::contains_unknowns) => {
                    found.is_unknown = true;
                }
                PropertyChange::Value(_) => found.is_known = true,
            }
        }
        found
    }
}
