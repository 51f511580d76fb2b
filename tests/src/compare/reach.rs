//! Who must be wholly alike, and who only so far as both sides got (rule 5).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Held, calls, text};
use crate::scenario::{Deployment, Op, Outcome, Resource, Step};

/// How far the recorded run got, and what follows from it for the comparison.
pub(super) struct Reach<'a> {
    /// The recorded step.
    pub(super) step: &'a Step,
    /// `None`: everything is held whole.
    whole: Option<BTreeSet<String>>,
    /// Resource to provider resource, by URN.
    providers: BTreeMap<String, String>,
}

impl<'a> Reach<'a> {
    pub(super) fn new(step: &'a Step, base: &Deployment, expected: &Outcome) -> Self {
        let whole = whole(step, base, expected);
        Self { step, whole, providers: providers(step, base, expected) }
    }

    /// How much of a resource must be alike.
    pub(super) fn of(&self, urn: &str) -> Held {
        match &self.whole {
            Some(whole) if !whole.contains(urn) => Held::Beginning,
            _ => Held::Whole,
        }
    }

    /// Whether everything must be alike.
    pub(super) fn is_whole(&self) -> bool {
        self.whole.is_none()
    }

    /// The provider resource that serves a resource; `None` where neither state nor program tells.
    pub(super) fn provider(&self, urn: &str) -> Option<&str> {
        self.providers.get(urn).map(String::as_str)
    }
}

/// The resources that are held whole in a run that failed; `None` if all are.
fn whole(step: &Step, base: &Deployment, expected: &Outcome) -> Option<BTreeSet<String>> {
    if expected.ok {
        return None;
    }
    let failed: BTreeSet<String> = expected.failed.iter().cloned().collect();
    let erring: BTreeSet<String> =
        expected.errors.iter().map(|(urn, _)| urn.clone()).filter(|urn| !urn.is_empty()).collect();
    if !erring.is_subset(&failed) {
        // Step generation broke off. Those that made it do so had come as far as they could.
        return Some(if calls::configure_failed(expected) { BTreeSet::new() } else { erring });
    }
    let independent = step.op == Op::Refresh && !step.flags.run_program;
    if step.interrupt.is_none() && (step.flags.continue_on_error || independent) {
        return None;
    }
    Some(hanging_on(step, base, expected, failed))
}

/// The failed resources and all that cannot have been reached because of them.
fn hanging_on(step: &Step, base: &Deployment, expected: &Outcome, failed: BTreeSet<String>) -> BTreeSet<String> {
    let mut whole = failed.clone();
    let urns = step.program.urns();
    let urn_of = |name: &str| urns.get(name).map(|urn| urn.as_str().to_owned());
    loop {
        let hangs = |resource: &&Resource| {
            resource.needs(&step.program).iter().filter_map(|name| urn_of(name)).any(|urn| whole.contains(&urn))
        };
        let more: Vec<String> =
            step.program.resources.iter().filter(hangs).filter_map(|resource| urn_of(&resource.name)).collect();
        let before = whole.len();
        whole.extend(more);
        if whole.len() == before {
            break;
        }
    }
    // What a resource that could not be deleted depends on is not deleted either.
    let deleting = |urn: &String| expected.steps.iter().any(|(op, other)| other == urn && op.starts_with("delete"));
    let mut kept: BTreeSet<String> = failed.into_iter().filter(deleting).collect();
    for resource in base.resources.iter().rev() {
        if kept.contains(text(resource, "urn")) {
            kept.extend(references(resource).into_iter().map(str::to_owned));
        }
    }
    whole.extend(kept);
    whole
}

/// All URNs that an entry refers to, its provider left out.
pub(super) fn references(resource: &Value) -> Vec<&str> {
    let mut urns: Vec<&str> = Vec::new();
    for name in ["parent", "deletedWith"] {
        urns.extend(resource.get(name).and_then(Value::as_str));
    }
    for name in ["dependencies", "replaceWith"] {
        urns.extend(resource.get(name).into_iter().flat_map(texts));
    }
    let by_property = resource.get("propertyDependencies").and_then(Value::as_object);
    urns.extend(by_property.into_iter().flat_map(|lists| lists.values()).flat_map(texts));
    urns
}

/// The texts in a list.
fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Which provider resource serves which resource: by the program, else by a state.
fn providers(step: &Step, base: &Deployment, expected: &Outcome) -> BTreeMap<String, String> {
    let mut providers = BTreeMap::new();
    for resource in base.resources.iter().chain(&expected.state.resources) {
        if let Some((urn, _)) = text(resource, "provider").rsplit_once("::") {
            providers.insert(text(resource, "urn").to_owned(), urn.to_owned());
        }
    }
    let urns = step.program.urns();
    let by_name: BTreeMap<&str, &Resource> =
        step.program.resources.iter().map(|resource| (resource.name.as_str(), resource)).collect();
    for resource in &step.program.resources {
        let mut ancestor = Some(resource);
        while let Some(current) = ancestor {
            if let Some(provider) = &current.options.provider {
                if let (Some(urn), Some(provider)) = (urns.get(&resource.name), urns.get(provider)) {
                    providers.insert(urn.as_str().to_owned(), provider.as_str().to_owned());
                }
                break;
            }
            ancestor = current.options.parent.as_deref().and_then(|name| by_name.get(name).copied());
        }
    }
    providers
}
