//! Tests that the comparison accepts differences only where the rules allow them (rules 2, 5 and 6).

use tests::compare::{ComparisonInput, Difference, Scope, compare};
use tests::scenario::{Outcome, Scenario};

use crate::scenarios;

const URN_PREFIX: &str = "urn:pulumi:dev::t::rec:index:Thing::";

fn scenario(name: &str) -> &'static Scenario {
    scenarios().iter().find(|scenario| scenario.name == name).unwrap()
}

/// Returns the differences that an alteration of a recorded step causes.
fn differences(name: &str, index: usize, alter: impl FnOnce(&mut Outcome)) -> Vec<Difference> {
    let scenario = scenario(name);
    let step = &scenario.steps[index];
    let mut outcome = step.expect.clone();
    alter(&mut outcome);
    compare(&ComparisonInput { step, base: &scenario.base(index), scope: Scope::All }, &outcome)
}

fn drop_calls(outcome: &mut Outcome, rpc: &str, name: &str) {
    let before = outcome.calls.len();
    outcome.calls.retain(|call| call.rpc != rpc || call.request["name"] != name);
    assert!(outcome.calls.len() < before, "no {rpc} of {name}");
}

fn drop_steps(outcome: &mut Outcome, op: &str, name: &str) {
    let urn = format!("{URN_PREFIX}{name}");
    let before = outcome.steps.len();
    outcome.steps.retain(|(other, of)| other != op || *of != urn);
    assert!(outcome.steps.len() < before, "no {op} of {name}");
}

#[test]
fn failed_resource_and_dependents_are_compared_completely() {
    // Create fails for `a`, and `b` depends on it.
    let (name, index) = ("depends-on-failed", 0);
    assert_ne!(differences(name, index, |outcome| drop_calls(outcome, "Create", "a")), []);
    let reached = |outcome: &mut Outcome| {
        let mut check = outcome.calls.iter().find(|call| call.rpc == "Check").unwrap().clone();
        check.request["urn"] = format!("{URN_PREFIX}b").into();
        outcome.calls.push(check);
    };
    assert_ne!(differences(name, index, reached), []);
}

#[test]
fn run_with_continue_on_error_is_compared_completely() {
    let altered = differences("continue-skips", 1, |outcome| drop_calls(outcome, "Diff", "x"));
    assert_ne!(altered, []);
    let altered = differences("continue-skips", 1, |outcome| outcome.changes.clear());
    assert_ne!(altered, []);
}

#[test]
fn counts_of_run_that_stopped_at_a_failure_are_not_compared() {
    let altered = differences("outputs-after-failure", 1, |outcome| outcome.changes.clear());
    assert_eq!(altered, []);
    let altered = differences("outputs-after-failure", 1, |outcome| drop_calls(outcome, "Update", "b"));
    assert_ne!(altered, []);
    // `a` does not depend on `b`: the run need not reach it, but its calls must be as recorded.
    let altered = differences("outputs-after-failure", 1, |outcome| {
        drop_calls(outcome, "Update", "a");
        drop_steps(outcome, "update", "a");
    });
    assert_eq!(altered, []);
    let altered = differences("outputs-after-failure", 1, |outcome| drop_calls(outcome, "Check", "a"));
    assert_ne!(altered, []);
}

#[test]
fn second_delete_may_be_missing_only_with_its_step() {
    let (name, index, resource) = ("dbr-create-fails", 2, "b");
    let altered = differences(name, index, |outcome| {
        drop_calls(outcome, "Delete", resource);
        drop_steps(outcome, "delete-replaced", resource);
    });
    assert_eq!(altered, []);
    assert_ne!(differences(name, index, |outcome| drop_calls(outcome, "Delete", resource)), []);
    assert_ne!(differences(name, index, |outcome| drop_steps(outcome, "delete-replaced", resource)), []);
    // A first Delete must not be missing.
    let altered = differences("dbr", 2, |outcome| {
        drop_calls(outcome, "Delete", "a");
        drop_steps(outcome, "delete-replaced", "a");
    });
    assert_ne!(altered, []);
}

#[test]
fn configure_may_be_missing_only_in_preview_without_other_calls() {
    assert_ne!(differences("create", 0, |outcome| drop_calls(outcome, "Configure", "default")), []);
    // The preview of a destroy sends no Delete, so it does not need the provider.
    let idle = |outcome: &mut Outcome| drop_calls(outcome, "Configure", "default");
    assert_eq!(differences("destroy-preview", 1, idle), []);
    let step = &scenario("destroy-preview").steps[1];
    assert!(step.is_preview());
}

#[test]
fn import_may_read_with_empty_properties() {
    let with_empty = |outcome: &mut Outcome| {
        let read = outcome.calls.iter_mut().find(|call| call.rpc == "Read").unwrap();
        read.request["properties"] = serde_json::json!({});
    };
    assert_eq!(differences("import", 0, with_empty), []);
    let with_some = |outcome: &mut Outcome| {
        let read = outcome.calls.iter_mut().find(|call| call.rpc == "Read").unwrap();
        read.request["properties"] = serde_json::json!({"v": 1});
    };
    assert_ne!(differences("import", 0, with_some), []);
}

#[test]
fn deletes_of_entries_with_one_urn_have_no_order() {
    let altered = differences("cbd-delete-fails-twice", 4, |outcome| {
        let deletes: Vec<usize> =
            outcome.calls.iter().enumerate().filter(|(_, call)| call.rpc == "Delete").map(|(index, _)| index).collect();
        assert!(deletes.len() > 1);
        let (first, last) = (deletes[0], deletes[deletes.len() - 1]);
        outcome.calls.swap(first, last);
    });
    assert_eq!(altered, []);
}
