//! Tests that the comparison accepts differences only where the rules allow them (rules 2, 5 and 6).

use tests::compare::{Difference, Situation, compare};
use tests::scenario::{Outcome, Scenario};

use crate::scenarios;

const THING: &str = "urn:pulumi:dev::t::rec:index:Thing::";

fn scenario(name: &str) -> &'static Scenario {
    scenarios().iter().find(|scenario| scenario.name == name).unwrap()
}

/// Returns the differences that an alteration of a recorded step causes.
fn differences(name: &str, index: usize, alter: impl FnOnce(&mut Outcome)) -> Vec<Difference> {
    let scenario = scenario(name);
    let step = &scenario.steps[index];
    let mut outcome = step.expect.clone();
    alter(&mut outcome);
    compare(&Situation { step, base: &scenario.base(index) }, &outcome)
}

fn drop_calls(outcome: &mut Outcome, rpc: &str, name: &str) {
    let before = outcome.calls.len();
    outcome.calls.retain(|call| call.rpc != rpc || call.request["name"] != name);
    assert!(outcome.calls.len() < before, "there is no {rpc} of {name}");
}

fn drop_steps(outcome: &mut Outcome, op: &str, name: &str) {
    let urn = format!("{THING}{name}");
    let before = outcome.steps.len();
    outcome.steps.retain(|(other, of)| other != op || *of != urn);
    assert!(outcome.steps.len() < before, "there is no {op} of {name}");
}

#[test]
fn a_failed_resource_and_what_hangs_on_it_are_held_whole() {
    // Create fails for `a`, and `b` depends on it.
    let (name, index) = ("depends-on-failed", 0);
    assert_ne!(differences(name, index, |outcome| drop_calls(outcome, "Create", "a")), []);
    let reached = |outcome: &mut Outcome| {
        let mut check = outcome.calls.iter().find(|call| call.rpc == "Check").unwrap().clone();
        check.request["urn"] = format!("{THING}b").into();
        outcome.calls.push(check);
    };
    assert_ne!(differences(name, index, reached), []);
}

#[test]
fn a_run_that_goes_on_after_a_failure_is_held_whole() {
    let altered = differences("continue-skips", 1, |outcome| drop_calls(outcome, "Diff", "x"));
    assert_ne!(altered, []);
    let altered = differences("continue-skips", 1, |outcome| outcome.changes.clear());
    assert_ne!(altered, []);
}

#[test]
fn a_run_that_stopped_at_a_failure_is_not_counted() {
    let altered = differences("outputs-after-failure", 1, |outcome| outcome.changes.clear());
    assert_eq!(altered, []);
    let altered = differences("outputs-after-failure", 1, |outcome| drop_calls(outcome, "Update", "b"));
    assert_ne!(altered, []);
    // `a` does not depend on `b`: it may have been reached or not, but its calls must be as recorded.
    let altered = differences("outputs-after-failure", 1, |outcome| {
        drop_calls(outcome, "Update", "a");
        drop_steps(outcome, "update", "a");
    });
    assert_eq!(altered, []);
    let altered = differences("outputs-after-failure", 1, |outcome| drop_calls(outcome, "Check", "a"));
    assert_ne!(altered, []);
}

#[test]
fn a_second_delete_may_be_left_out_with_its_step_and_not_without() {
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
fn a_configure_may_be_missing_only_in_a_preview_that_asks_nothing_of_its_provider() {
    assert_ne!(differences("create", 0, |outcome| drop_calls(outcome, "Configure", "default")), []);
    // The preview of a destroy sends no Delete, so it does not need the provider.
    let idle = |outcome: &mut Outcome| drop_calls(outcome, "Configure", "default");
    assert_eq!(differences("destroy-preview", 1, idle), []);
    let step = &scenario("destroy-preview").steps[1];
    assert!(step.is_preview());
}

#[test]
fn an_import_may_read_with_empty_properties() {
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
fn deletes_of_several_copies_have_no_order() {
    let altered = differences("cbd-delete-fails-twice", 4, |outcome| {
        let deletes: Vec<usize> =
            outcome.calls.iter().enumerate().filter(|(_, call)| call.rpc == "Delete").map(|(index, _)| index).collect();
        assert!(deletes.len() > 1);
        let (first, last) = (deletes[0], deletes[deletes.len() - 1]);
        outcome.calls.swap(first, last);
    });
    assert_eq!(altered, []);
}
