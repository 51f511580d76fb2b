//! Rule 4: the state.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::extent::{Extents, references};
use super::normal_form::list_differences;
use super::{Difference, Rule, pairs, steps, text};
use crate::scenario::Outcome;

/// Compares the entries and the pending operations.
pub(super) fn compare(
    extents: &Extents<'_>,
    second_deletes: &BTreeSet<String>,
    expected: &Outcome,
    observed: &Outcome,
) -> Vec<Difference> {
    let mut differences = Vec::new();
    let is_comparable = is_comparable(extents, second_deletes, expected, observed);
    let (wanted, got) = (entries(expected), entries(observed));
    for (key, wanted, got) in pairs(&wanted, &got) {
        let urn = key.split(' ').next().unwrap_or_default();
        if !is_comparable(urn) {
            continue;
        }
        let text = match (wanted, got) {
            (Some(wanted), Some(got)) => list_differences(wanted, got).join("\n          "),
            (Some(_), None) => format!("{key} is missing from the state"),
            _ => format!("{key} was not expected in the state"),
        };
        if !text.is_empty() {
            differences.push(Difference { rule: Rule::State, urn: urn.to_owned(), text });
        }
    }
    let (wanted, got) = (pending(expected), pending(observed));
    if wanted != got {
        let (length, texts) =
            (wanted.len() == got.len(), wanted.iter().zip(&got).flat_map(|(a, b)| list_differences(a, b)));
        let texts = if length {
            texts.collect::<Vec<_>>().join("\n          ")
        } else {
            format!("expected {wanted:?}, got {got:?}")
        };
        differences.push(Difference {
            rule: Rule::State,
            urn: String::new(),
            text: format!("pending operations {texts}"),
        });
    }
    differences.extend(misordered_entries(&observed.state.resources));
    differences
}

/// Returns the pending operations. The id of an update is left out, as Pulumi only writes it with its second write of
/// the state.
fn pending(outcome: &Outcome) -> Vec<Value> {
    let mut operations = outcome.state.pending_operations.clone();
    for operation in operations.iter_mut().filter(|operation| text(operation, "type") == "updating") {
        if let Some(Value::Object(resource)) = operation.get_mut("resource") {
            resource.shift_remove("id");
        }
    }
    operations
}

/// Returns a predicate that is true for a resource whose entries must be equal: one that is compared completely, or that
/// has the same steps and the same number of calls on both sides.
fn is_comparable<'a>(
    extents: &'a Extents<'_>,
    second_deletes: &BTreeSet<String>,
    expected: &'a Outcome,
    observed: &'a Outcome,
) -> impl Fn(&str) -> bool + 'a {
    let mut wanted = steps::by_urn(expected);
    for urn in second_deletes {
        steps::remove_second_delete(&mut wanted, urn);
    }
    let got = steps::by_urn(observed);
    let count_calls =
        |outcome: &Outcome, urn: &str| outcome.calls.iter().filter(|call| text(&call.request, "urn") == urn).count();
    move |urn| {
        extents.of(urn) == super::Extent::Complete
            || (wanted.get(urn) == got.get(urn) && count_calls(expected, urn) == count_calls(observed, urn))
    }
}

/// Returns the entries by URN, `delete` mark and id. Entries that agree in all of these get numbers.
fn entries(outcome: &Outcome) -> BTreeMap<String, Value> {
    let mut entries = BTreeMap::new();
    for entry in &outcome.state.resources {
        let mark = if entry.get("delete").is_some() { " (to be deleted)" } else { "" };
        let key = format!("{} {}{mark}", text(entry, "urn"), text(entry, "id"));
        let copies = (1..).map(|number| if number == 1 { key.clone() } else { format!("{key} #{number}") });
        let key =
            copies.into_iter().find(|key| !entries.contains_key(key)).expect("there are more numbers than entries");
        entries.insert(key, entry.clone());
    }
    entries
}

/// Returns a difference for each entry that precedes one that it refers to.
fn misordered_entries(entries: &[Value]) -> Vec<Difference> {
    let mut seen = BTreeSet::new();
    let mut differences = Vec::new();
    for entry in entries {
        // The provider of an entry with a pending replacement may be deleted already.
        let has_provider = entry.get("pendingReplacement").is_none();
        let provider = text(entry, "provider").rsplit_once("::").map(|(urn, _)| urn).filter(|_| has_provider);
        for reference in references(entry).into_iter().chain(provider).filter(|reference| !seen.contains(reference)) {
            let urn = text(entry, "urn").to_owned();
            differences.push(Difference {
                rule: Rule::State,
                urn,
                text: format!("precedes {reference}, to which it refers"),
            });
        }
        seen.insert(text(entry, "urn"));
    }
    differences
}
