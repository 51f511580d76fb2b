//! Rule 2: calls of each resource; and the second Deletes of rule 6.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::extent::Extents;
use super::normal_form::list_differences;
use super::{Difference, Extent, Rule, pairs, text};
use crate::rec::Call;
use crate::scenario::{Deployment, Outcome};

/// Name under which calls of functions are grouped, as they have no URN.
const INVOKES: &str = "calls of functions";

/// Returns whether the outcome contains a failed Configure.
pub(super) fn configure_failed(outcome: &Outcome) -> bool {
    outcome.calls.iter().any(|call| call.rpc == "Configure" && call.error.is_some())
}

/// Returns the URNs of resources that Pulumi deletes a second time, and our engine does not (rule 6).
///
/// The resource is marked with `pendingReplacement` in the state that the step starts from.
pub(super) fn second_deletes(base: &Deployment, expected: &Outcome, observed: &Outcome) -> BTreeSet<String> {
    let pending_replacements = base.resources.iter().filter(|entry| entry.get("pendingReplacement").is_some());
    let is_called = |outcome: &Outcome, entry: &Value| outcome.calls.iter().any(|call| is_delete_of(call, entry));
    let second_deletes = pending_replacements.filter(|entry| is_called(expected, entry) && !is_called(observed, entry));
    second_deletes.map(|entry| text(entry, "urn").to_owned()).collect()
}

fn is_delete_of(call: &Call, entry: &Value) -> bool {
    call.rpc == "Delete"
        && text(&call.request, "id") == text(entry, "id")
        && text(&call.request, "urn") == text(entry, "urn")
}

/// Compares the calls of each resource.
pub(super) fn compare(
    extents: &Extents<'_>,
    second_deletes: &BTreeSet<String>,
    expected: &Outcome,
    observed: &Outcome,
) -> Vec<Difference> {
    let mut differences = Vec::new();
    let mut wanted = by_urn(expected);
    for urn in second_deletes {
        if let Some(calls) = wanted.get_mut(urn)
            && let Some(last) = calls.iter().rposition(|call| call.rpc == "Delete")
        {
            calls.remove(last);
        }
    }
    let got = by_urn(observed);
    for (urn, wanted, got) in pairs(&wanted, &got) {
        let (wanted, got) = (wanted.map_or(&[][..], |calls| calls), got.map_or(&[][..], |calls| calls));
        let Some(text) = sequences(extents.of(urn), wanted, got) else { continue };
        let without_idle = |outcome, calls| without_idle_configures(extents, urn, outcome, calls);
        if extents.step.is_preview()
            && sequences(extents.of(urn), &without_idle(expected, wanted), &without_idle(observed, got)).is_none()
        {
            continue;
        }
        differences.push(Difference { rule: Rule::Calls, urn: urn.clone(), text });
    }
    let cancelled = |outcome: &Outcome| outcome.calls.iter().any(|call| call.rpc == "Cancel");
    if cancelled(expected) != cancelled(observed) {
        let text = format!("expected Cancel = {}, got {}", cancelled(expected), cancelled(observed));
        differences.push(Difference { rule: Rule::Calls, urn: String::new(), text });
    }
    differences
}

fn by_urn(outcome: &Outcome) -> BTreeMap<String, Vec<&Call>> {
    let mut sorted = BTreeMap::<String, Vec<&Call>>::new();
    for call in outcome.calls.iter().filter(|call| call.rpc != "Cancel") {
        let urn = if call.rpc == "Invoke" { INVOKES } else { text(&call.request, "urn") };
        sorted.entry(urn.to_owned()).or_default().push(call);
    }
    sorted
}

/// Leaves out each Configure after which no resource of the provider is called.
fn without_idle_configures<'a>(
    extents: &Extents<'_>,
    provider: &str,
    outcome: &Outcome,
    calls: &[&'a Call],
) -> Vec<&'a Call> {
    let serves = |call: &Call| match call.rpc.as_str() {
        "Invoke" => true,
        "CheckConfig" | "DiffConfig" | "Configure" | "Cancel" => false,
        // A resource without a provider in state and program has the default provider.
        _ => extents.provider(text(&call.request, "urn")).map_or(provider.contains("::default"), |urn| urn == provider),
    };
    let last_use = outcome.calls.iter().rposition(serves);
    let is_idle = |call: &&Call| {
        let position = outcome.calls.iter().position(|other| std::ptr::eq(other, *call));
        call.rpc == "Configure" && position > last_use
    };
    calls.iter().copied().filter(|call| !is_idle(call)).collect()
}

/// Compares two sequences of calls, in which adjacent Deletes and Invokes have no order. Returns the difference.
fn sequences(extent: Extent, wanted: &[&Call], got: &[&Call]) -> Option<String> {
    let (wanted_groups, got_groups) = (groups(wanted), groups(got));
    for (index, (a, b)) in wanted_groups.iter().zip(&got_groups).enumerate() {
        let last = index + 1 == wanted_groups.len() || index + 1 == got_groups.len();
        let included = |a: &[&Call], b: &[&Call]| a.iter().all(|call| b.contains(call));
        let is_equal = match extent {
            Extent::Prefix if last => included(a, b) || included(b, a),
            _ => a.len() == b.len() && included(a, b) && included(b, a),
        };
        if !is_equal {
            return Some(explain(a, b));
        }
    }
    if extent == Extent::Complete && wanted_groups.len() != got_groups.len() {
        return Some(format!("expected {}, got {}", names(wanted), names(got)));
    }
    None
}

fn groups<'a, 'b>(calls: &'a [&'b Call]) -> Vec<&'a [&'b Call]> {
    calls.chunk_by(|a, b| a.rpc == b.rpc && matches!(a.rpc.as_str(), "Delete" | "Invoke")).collect()
}

fn explain(wanted: &[&Call], got: &[&Call]) -> String {
    if names(wanted) != names(got) {
        return format!("expected {}, got {}", names(wanted), names(got));
    }
    let mut texts = Vec::new();
    for (a, b) in wanted.iter().zip(got) {
        texts.extend(list_differences(&a.request, &b.request).into_iter().map(|text| format!("{} {text}", a.rpc)));
        if a.error != b.error {
            texts.push(format!("{}: expected the error {:?}, got {:?}", a.rpc, a.error, b.error));
        }
    }
    texts.join("\n          ")
}

fn names(calls: &[&Call]) -> String {
    let names: Vec<_> =
        calls.iter().map(|call| format!("{} {}", call.rpc, text(&call.request, "id")).trim_end().to_owned()).collect();
    format!("[{}]", names.join(", "))
}
