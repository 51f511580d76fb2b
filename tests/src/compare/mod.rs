//! Compares the outcome of a step of our engine with the recorded outcome of Pulumi's engine.
//!
//! Input: a recorded step with the state that it starts from, and an [`Outcome`] of our engine. Output: differences as
//! text. Excluded: engines, providers, files. The rules, with their numbers, are those of
//! `tests/goldens/engine/README.md`, "How to hold an engine against them".

mod calls;
mod extent;
mod normal_form;
mod order;
mod secrecy;
mod state;
mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use crate::scenario::{Deployment, Outcome, Step};

pub use secrecy::reveal_where_plain;

/// Difference between our engine and the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Rule that the difference violates.
    pub rule: Rule,
    /// URN of the resource; empty for the run as a whole.
    pub urn: String,
    /// Expected and observed behaviour.
    pub text: String,
}

/// Rule of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Rule 1: success, failed resources, errors.
    Result,
    /// Rule 2: calls of each resource.
    Calls,
    /// Rule 2: order between resources.
    Order,
    /// Rule 3: steps of each resource.
    Steps,
    /// Rule 3: counts in the summary.
    Changes,
    /// Rule 4: the state.
    State,
}

impl Rule {
    /// Returns the name of the rule in lists of differences.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Result => "result",
            Self::Calls => "calls",
            Self::Order => "order",
            Self::Steps => "steps",
            Self::Changes => "changes",
            Self::State => "state",
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let urn = self.urn.strip_prefix("urn:pulumi:dev::t::").unwrap_or(&self.urn);
        let colon = if urn.is_empty() { "" } else { ": " };
        write!(f, "{:7} {urn}{colon}{}", self.rule.as_str(), self.text)
    }
}

/// Inputs of the comparison besides the two outcomes.
#[derive(Clone, Copy, Debug)]
pub struct ComparisonInput<'a> {
    /// Recorded step.
    pub step: &'a Step,
    /// State that the step starts from.
    pub base: &'a Deployment,
    /// Part of the outcomes that must be equal.
    pub scope: Scope,
}

/// Part of the outcomes of a step that must be equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Whole outcomes.
    #[default]
    All,
    /// Whole outcomes, except that a value of ours may be secret where the recorded one is plain.
    MoreSecrets,
}

/// Extent to which the two outcomes of a resource must be equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// Both must be equal.
    Complete,
    /// Either must be a prefix of the other.
    Prefix,
}

/// Returns all differences, by rule.
pub fn compare(input: &ComparisonInput<'_>, observed: &Outcome) -> Vec<Difference> {
    let observed = match input.scope {
        Scope::All => normal_form::outcome(observed),
        Scope::MoreSecrets => normal_form::outcome(&secrecy::without_more_secrets(&input.step.expect, observed)),
    };
    let expected = normal_form::outcome(&input.step.expect);
    let base = normal_form::deployment(input.base);
    let extents = extent::Extents::new(input.step, &base, &expected);
    let mut differences = result(&expected, &observed);
    let second_deletes = calls::second_deletes(&base, &expected, &observed);
    differences.extend(calls::compare(&extents, &second_deletes, &expected, &observed));
    differences.extend(order::check(&extents, &base, &expected, &observed));
    differences.extend(steps::compare(&extents, &second_deletes, &base, &expected, &observed));
    differences.extend(state::compare(&extents, &second_deletes, &expected, &observed));
    differences.sort_by_key(|difference| difference.rule);
    differences
}

/// Compares the results (rule 1).
fn result(expected: &Outcome, observed: &Outcome) -> Vec<Difference> {
    let mut differences = Vec::new();
    let mut differs =
        |urn: &str, text: String| differences.push(Difference { rule: Rule::Result, urn: urn.to_owned(), text });
    if expected.ok != observed.ok {
        let errors = observed.errors.iter().map(|(urn, text)| format!("\n          {urn} {text}")).collect::<String>();
        differs("", format!("expected ok = {}, got {}{errors}", expected.ok, observed.ok));
    }
    let failed = |outcome: &Outcome| outcome.failed.iter().cloned().collect::<BTreeSet<_>>();
    for (urn, side) in sides(&failed(expected), &failed(observed)) {
        differs(&urn, format!("{side} to have failed"));
    }
    let configure_failed = calls::configure_failed(expected);
    let urns_with_errors = |outcome: &Outcome| {
        let urns = outcome.errors.iter().map(|(urn, _)| urn.as_str()).filter(|urn| !urn.is_empty());
        // An error of Configure is reported for the first of the provider's resources that needs it, which can be any.
        let subject =
            |urn: &str| if configure_failed { "a resource of the provider".to_owned() } else { urn.to_owned() };
        urns.map(subject).collect::<BTreeSet<_>>()
    };
    for (urn, side) in sides(&urns_with_errors(expected), &urns_with_errors(observed)) {
        let texts: Vec<_> = observed.errors.iter().filter(|(other, _)| *other == urn).map(|(_, text)| text).collect();
        differs(&urn, format!("{side} to have an error {texts:?}"));
    }
    differences
}

/// Returns the items that only one of two sets has, each with words for its side.
fn sides(expected: &BTreeSet<String>, observed: &BTreeSet<String>) -> Vec<(String, &'static str)> {
    let missing = expected.difference(observed).map(|item| (item.clone(), "was expected"));
    let surplus = observed.difference(expected).map(|item| (item.clone(), "was not expected"));
    missing.chain(surplus).collect()
}

/// Returns both values of each key of two maps.
fn pairs<'a, T>(
    a: &'a BTreeMap<String, T>,
    b: &'a BTreeMap<String, T>,
) -> Vec<(&'a String, Option<&'a T>, Option<&'a T>)> {
    let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    keys.into_iter().map(|key| (key, a.get(key), b.get(key))).collect()
}

/// Returns a string member of an object; empty if it has none.
fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}
