//! Rule 2: order between resources. Only resources that the graph orders are compared.

use std::collections::BTreeSet;

use serde_json::Value;

use super::extent::{Extents, references};
use super::{Difference, Rule, sides, text};
use crate::rec::Call;
use crate::scenario::{Deployment, Outcome};

/// Checks the order of the observed calls.
pub(super) fn check(
    extents: &Extents<'_>,
    base: &Deployment,
    expected: &Outcome,
    observed: &Outcome,
) -> Vec<Difference> {
    let mut differences = Vec::new();
    if expected.ok && !extents.step.is_preview() {
        check_creates_before_dependents(extents, expected, observed, &mut differences);
    }
    let end = end_of_run(&observed.calls);
    check_deletes_after_dependents(base, &observed.calls, end, &mut differences);
    if expected.ok && observed.ok {
        let deleted = |calls: &[Call]| -> BTreeSet<String> {
            calls
                .iter()
                .filter(|call| call.rpc == "Delete")
                .map(|call| format!("{} {}", text(&call.request, "urn"), text(&call.request, "id")))
                .collect()
        };
        let at_end = |outcome: &Outcome| deleted(&outcome.calls[end_of_run(&outcome.calls)..]);
        // The calls of each resource are compared elsewhere, so only Deletes on both sides count here.
        let both: BTreeSet<String> =
            deleted(&expected.calls).intersection(&deleted(&observed.calls)).cloned().collect();
        let (wanted, got) = (&at_end(expected) & &both, &at_end(observed) & &both);
        for (delete, side) in sides(&wanted, &got) {
            let urn = delete.split(' ').next().unwrap_or_default().to_owned();
            differences.push(Difference {
                rule: Rule::Order,
                urn,
                text: format!("Delete {delete} {side} at the end of the run"),
            });
        }
    }
    differences
}

/// Returns the index of the first call of the Deletes at the end of a run. Configures are among them, as providers are
/// started for Deletes as well.
fn end_of_run(calls: &[Call]) -> usize {
    calls
        .iter()
        .rposition(|call| !matches!(call.rpc.as_str(), "Delete" | "Configure" | "Cancel"))
        .map_or(0, |last| last + 1)
}

/// Checks that a resource is created or updated before its dependents start.
fn check_creates_before_dependents(
    extents: &Extents<'_>,
    expected: &Outcome,
    observed: &Outcome,
    differences: &mut Vec<Difference>,
) {
    let calls = &observed.calls;
    let last_change = |urn: &str| {
        calls
            .iter()
            .rposition(|call| matches!(call.rpc.as_str(), "Create" | "Update") && text(&call.request, "urn") == urn)
    };
    for entry in expected.state.resources.iter().filter(|entry| entry.get("delete").is_none()) {
        let urn = text(entry, "urn");
        // A refresh reads all resources in any order. Otherwise an external resource is read when it is registered.
        let reads = !extents.step.flags.refresh && entry.get("external").is_some();
        let starts =
            |call: &Call| (call.rpc == "Check" || (reads && call.rpc == "Read")) && text(&call.request, "urn") == urn;
        let Some(start) = calls.iter().position(starts) else { continue };
        let late: BTreeSet<&str> = references(entry)
            .into_iter()
            .filter(|dependency| last_change(dependency).is_some_and(|change| change > start))
            .collect();
        differences.extend(late.into_iter().map(|dependency| Difference {
            rule: Rule::Order,
            urn: urn.to_owned(),
            text: format!("started before {dependency} was completed"),
        }));
    }
}

/// Checks that Deletes at the end of a run go from dependents to dependencies of the old state.
fn check_deletes_after_dependents(base: &Deployment, calls: &[Call], end: usize, differences: &mut Vec<Difference>) {
    let deleted = |entry: &Value| {
        let is_it = |call: &Call| {
            call.rpc == "Delete"
                && text(&call.request, "urn") == text(entry, "urn")
                && text(&call.request, "id") == text(entry, "id")
        };
        calls[end..].iter().position(is_it)
    };
    for (index, entry) in base.resources.iter().enumerate() {
        let Some(position) = deleted(entry) else { continue };
        let references = references(entry);
        for dependency in base.resources[..index].iter().filter(|other| references.contains(&text(other, "urn"))) {
            if deleted(dependency).is_some_and(|other| other < position) {
                let text = format!("was deleted after {}, on which it depends", text(dependency, "urn"));
                differences.push(Difference { rule: Rule::Order, urn: super::text(entry, "urn").to_owned(), text });
            }
        }
    }
}
