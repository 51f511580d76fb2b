//! Rule 3: steps of each resource, and the counts in the summary.

use std::collections::{BTreeMap, BTreeSet};

use super::extent::Extents;
use super::{Difference, Extent, Rule, pairs, text};
use crate::scenario::{Deployment, Outcome};

/// Compares the steps of each resource and, if the whole run is compared, the counts.
pub(super) fn compare(
    extents: &Extents<'_>,
    second_deletes: &BTreeSet<String>,
    base: &Deployment,
    expected: &Outcome,
    observed: &Outcome,
) -> Vec<Difference> {
    let mut differences = Vec::new();
    let mut wanted = by_urn(expected);
    for urn in second_deletes {
        remove_second_delete(&mut wanted, urn);
    }
    let got = by_urn(observed);
    for (urn, wanted, got) in pairs(&wanted, &got) {
        let (mut wanted, mut got) = (wanted.cloned().unwrap_or_default(), got.cloned().unwrap_or_default());
        let copies = base.resources.iter().filter(|entry| text(entry, "urn") == urn).count();
        if copies > 1 {
            wanted.sort_unstable();
            got.sort_unstable();
        }
        if !is_equal(extents.of(urn), copies > 1, &wanted, &got) {
            let text = format!("expected {wanted:?}, got {got:?}");
            differences.push(Difference { rule: Rule::Steps, urn: urn.clone(), text });
        }
    }
    if extents.is_complete() && expected.changes != observed.changes {
        let text = format!("expected {:?}, got {:?}", expected.changes, observed.changes);
        differences.push(Difference { rule: Rule::Changes, urn: String::new(), text });
    }
    differences
}

/// Returns the ops of each URN, in order.
pub(super) fn by_urn(outcome: &Outcome) -> BTreeMap<String, Vec<&str>> {
    let mut sorted = BTreeMap::<String, Vec<&str>>::new();
    for (op, urn) in &outcome.steps {
        sorted.entry(urn.clone()).or_default().push(op);
    }
    sorted
}

/// Removes the step of a second Delete (rule 6).
pub(super) fn remove_second_delete(steps: &mut BTreeMap<String, Vec<&str>>, urn: &str) {
    if let Some(ops) = steps.get_mut(urn)
        && let Some(last) = ops.iter().rposition(|op| *op == "delete-replaced")
    {
        ops.remove(last);
    }
}

fn is_equal(extent: Extent, unordered: bool, a: &[&str], b: &[&str]) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    match extent {
        Extent::Complete => a == b,
        Extent::Prefix if unordered => short.iter().all(|op| long.contains(op)),
        Extent::Prefix => long.starts_with(short),
    }
}
