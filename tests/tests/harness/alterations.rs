//! Tests that the comparison with recordings detects every alteration of a recording.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tests::compare::{ComparisonInput, Difference, Scope, compare};
use tests::export;
use tests::rec::Call;
use tests::scenario::Outcome;

use crate::scenarios;

/// Calls a function with every recorded step: its name, its outcome, and a comparison with it.
fn each_step(mut check: impl FnMut(&str, &Outcome, &dyn Fn(&Outcome) -> Vec<Difference>)) {
    for scenario in scenarios() {
        for (index, step) in scenario.steps.iter().enumerate() {
            let base = scenario.base(index);
            let input = ComparisonInput { step, base: &base, scope: Scope::All };
            check(&format!("{}/{index}", scenario.name), &step.expect, &|outcome| compare(&input, outcome));
        }
    }
}

#[test]
fn recording_equals_itself() {
    each_step(|name, recorded, compare| assert_eq!(compare(recorded), [], "{name}"));
}

#[test]
fn recorded_state_round_trips() {
    each_step(|name, recorded, compare| {
        let snapshot = export::import(&recorded.state).unwrap_or_else(|error| panic!("{name}: {error}"));
        state::integrity::verify(&snapshot).unwrap_or_else(|error| panic!("{name}: {error}"));
        let outcome = Outcome { state: export::export(&snapshot), ..recorded.clone() };
        assert_eq!(compare(&outcome), [], "{name}");
    });
}

/// Number of attempts for each kind of alteration.
const ATTEMPTS: usize = 5;

/// Attempted alterations of successful recorded steps, a few of each kind. Each must be detected.
#[derive(Default)]
struct AlterationAttempts {
    attempts: BTreeMap<String, usize>,
    undetected: Vec<String>,
}

impl AlterationAttempts {
    fn attempt(
        &mut self,
        kind: String,
        name: &str,
        compare: &dyn Fn(&Outcome) -> Vec<Difference>,
        altered: impl FnOnce() -> Outcome,
    ) {
        let attempts = self.attempts.entry(kind).or_default();
        if *attempts < ATTEMPTS {
            *attempts += 1;
            if compare(&altered()).is_empty() {
                self.undetected.push(name.to_owned());
            }
        }
    }
}

/// Returns a slightly different value.
fn different_value(value: &Value) -> Value {
    match value {
        Value::Bool(value) => json!(!value),
        Value::Number(number) => json!(number.as_f64().unwrap() + 1.0),
        Value::String(text) => json!(format!("{text}x")),
        Value::Array(items) => items.iter().cloned().chain([json!("x")]).collect::<Vec<_>>().into(),
        Value::Object(members) => {
            members.clone().into_iter().chain([("more".to_owned(), json!(1))]).collect::<serde_json::Map<_, _>>().into()
        }
        Value::Null => json!(1),
    }
}

/// Returns the variants of a value in which one member is altered, removed or added, with descriptions.
fn variants(value: &Value) -> Vec<(String, Value)> {
    let members = value.as_object().unwrap();
    let mut variants = Vec::new();
    for (key, member) in members {
        let mut altered = members.clone();
        altered.insert(key.clone(), different_value(member));
        variants.push((format!("{key} altered"), altered.clone().into()));
        altered.shift_remove(key);
        variants.push((format!("{key} left out"), altered.into()));
    }
    let mut more = members.clone();
    more.insert("more".to_owned(), json!(true));
    variants.push(("additional member".to_owned(), more.into()));
    variants
}

#[test]
fn altered_call_is_detected() {
    let mut alterations = AlterationAttempts::default();
    each_step(|name, recorded, compare| {
        if !recorded.ok {
            return;
        }
        let calls = recorded.calls.iter().enumerate().filter(|(_, call)| call.rpc != "Cancel");
        for (index, call) in calls {
            let with = |calls: Vec<Call>| Outcome { calls, ..recorded.clone() };
            let replaced = |call: Call| {
                let mut calls = recorded.calls.clone();
                calls[index] = call;
                with(calls)
            };
            for (kind, request) in variants(&call.request) {
                let kind = format!("{} {kind}", call.rpc);
                let label = format!("{name} #{index} {kind}");
                alterations.attempt(kind, &label, compare, || replaced(Call { request, ..call.clone() }));
            }
            let label = |variant: &str| format!("{name} #{index} {} {variant}", call.rpc);
            let kind = |variant: &str| format!("{} {variant}", call.rpc);
            let mut twice = recorded.calls.clone();
            twice.insert(index, call.clone());
            alterations.attempt(kind("twice"), &label("twice"), compare, || with(twice));
            let failed = Call { error: Some("failure".to_owned()), ..call.clone() };
            alterations.attempt(kind("failed"), &label("failed"), compare, || replaced(failed));
            let renamed = Call { rpc: "Construct".to_owned(), ..call.clone() };
            alterations.attempt(kind("renamed"), &label("renamed"), compare, || replaced(renamed));
            // Our engine may omit a Configure in a preview.
            if call.rpc != "Configure" {
                let mut without = recorded.calls.clone();
                without.remove(index);
                alterations.attempt(kind("left out"), &label("left out"), compare, || with(without));
            }
        }
    });
    assert_eq!(alterations.undetected, Vec::<String>::new(), "of {} kinds", alterations.attempts.len());
    assert!(alterations.attempts.len() > 150, "{:?}", alterations.attempts.keys());
}

#[test]
fn altered_state_is_detected() {
    let mut alterations = AlterationAttempts::default();
    each_step(|name, recorded, compare| {
        if !recorded.ok {
            return;
        }
        let entries = &recorded.state.resources;
        for (index, entry) in entries.iter().enumerate() {
            let with = |entries: Vec<Value>| {
                let mut outcome = recorded.clone();
                outcome.state.resources = entries;
                outcome
            };
            let resource_type = entry["type"].as_str().unwrap();
            for (variant, altered) in variants(entry) {
                let mut entries = entries.clone();
                entries[index] = altered;
                alterations.attempt(
                    format!("{resource_type} {variant}"),
                    &format!("{name} #{index} {variant}"),
                    compare,
                    || with(entries),
                );
            }
            let mut without = entries.clone();
            without.remove(index);
            alterations.attempt(
                format!("{resource_type} missing"),
                &format!("{name} #{index} missing"),
                compare,
                || with(without),
            );
            let mut twice = entries.clone();
            twice.push(entry.clone());
            alterations
                .attempt(format!("{resource_type} twice"), &format!("{name} #{index} twice"), compare, || with(twice));
        }
        if entries.len() > 1 {
            let mut backwards = recorded.clone();
            backwards.state.resources.reverse();
            alterations.attempt("order".to_owned(), &format!("{name} reversed"), compare, || backwards);
        }
        for (index, operation) in recorded.state.pending_operations.iter().enumerate() {
            for (variant, altered) in variants(operation) {
                let mut outcome = recorded.clone();
                outcome.state.pending_operations[index] = altered;
                alterations.attempt(
                    format!("pending {variant}"),
                    &format!("{name} pending {variant}"),
                    compare,
                    || outcome,
                );
            }
        }
    });
    assert_eq!(alterations.undetected, Vec::<String>::new(), "of {} kinds", alterations.attempts.len());
    assert!(alterations.attempts.len() > 80, "{:?}", alterations.attempts.keys());
}

#[test]
fn altered_steps_and_result_are_detected() {
    let mut alterations = AlterationAttempts::default();
    each_step(|name, recorded, compare| {
        let mut outcome = recorded.clone();
        outcome.ok = !outcome.ok;
        alterations.attempt(format!("not ok = {}", recorded.ok), &format!("{name} ok"), compare, || outcome);
        let mut outcome = recorded.clone();
        outcome.failed.push("urn:more".to_owned());
        alterations.attempt("failed more".to_owned(), &format!("{name} failed more"), compare, || outcome);
        let mut outcome = recorded.clone();
        outcome.errors.push(("urn:more".to_owned(), "text".to_owned()));
        if !recorded.calls.iter().any(|call| call.rpc == "Configure" && call.error.is_some()) {
            alterations.attempt("errors more".to_owned(), &format!("{name} errors more"), compare, || outcome);
        }
        if !recorded.failed.is_empty() {
            let outcome = Outcome { failed: Vec::new(), ..recorded.clone() };
            alterations.attempt("failed less".to_owned(), &format!("{name} failed less"), compare, || outcome);
        }
        if recorded.errors.iter().any(|(urn, _)| !urn.is_empty()) {
            let outcome = Outcome { errors: Vec::new(), ..recorded.clone() };
            alterations.attempt("errors less".to_owned(), &format!("{name} errors less"), compare, || outcome);
        }
        if !recorded.ok {
            return;
        }
        for op in recorded.changes.keys() {
            let mut outcome = recorded.clone();
            *outcome.changes.get_mut(op).unwrap() += 1;
            alterations.attempt(format!("changes {op}"), &format!("{name} changes {op}"), compare, || outcome);
        }
        for (index, (op, _)) in recorded.steps.iter().enumerate() {
            let mut outcome = recorded.clone();
            outcome.steps.remove(index);
            alterations
                .attempt(format!("{op} left out"), &format!("{name} #{index} {op} left out"), compare, || outcome);
            let mut outcome = recorded.clone();
            outcome.steps[index].0 = "other".to_owned();
            alterations.attempt(format!("{op} other"), &format!("{name} #{index} {op} other"), compare, || outcome);
            let mut outcome = recorded.clone();
            outcome.steps[index].1.push('x');
            alterations
                .attempt(format!("{op} elsewhere"), &format!("{name} #{index} {op} elsewhere"), compare, || outcome);
        }
    });
    assert_eq!(alterations.undetected, Vec::<String>::new(), "of {} kinds", alterations.attempts.len());
}

#[test]
fn call_order_that_violates_the_graph_is_detected() {
    let mut alterations = AlterationAttempts::default();
    each_step(|name, recorded, compare| {
        let position =
            |rpc: &str, urn: &str| recorded.calls.iter().position(|call| call.rpc == rpc && call.request["urn"] == urn);
        if !recorded.ok {
            return;
        }
        // The Deletes of a destroy in reverse order.
        let trailing = recorded.calls.iter().rev().take_while(|call| call.rpc == "Delete").count();
        if matches!(name, "destroy/2" | "delete-order/2") {
            let mut outcome = recorded.clone();
            let start = outcome.calls.len() - trailing;
            assert!(trailing > 1, "{name}");
            outcome.calls[start..].reverse();
            alterations.attempt("deletes".to_owned(), &format!("{name} deletes"), compare, || outcome);
        }
        // A dependent that starts before its dependency is created.
        for entry in &recorded.state.resources {
            let urn = entry["urn"].as_str().unwrap();
            for dependency in entry["dependencies"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                if let (Some(create), Some(check)) = (position("Create", dependency), position("Check", urn)) {
                    if recorded.calls[create].request.get("preview").is_some() {
                        continue;
                    }
                    let mut outcome = recorded.clone();
                    let call = outcome.calls.remove(create);
                    outcome.calls.insert(check, call);
                    alterations.attempt("dependents".to_owned(), &format!("{name} {urn}"), compare, || outcome);
                }
            }
        }
    });
    assert_eq!(alterations.undetected, Vec::<String>::new());
    assert_eq!(alterations.attempts.len(), 2);
}
