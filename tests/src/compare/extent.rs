//! Rule 5: resources whose outcomes must be equal, and resources that a failed run may not have completed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Extent, calls, text};
use crate::scenario::{Deployment, Op, Outcome, Resource, Step};

/// Extent of the comparison of each resource, which depends on the progress of the recorded run.
pub(super) struct Extents<'a> {
    /// Recorded step.
    pub(super) step: &'a Step,
    /// URNs that are compared completely; `None`: all.
    complete: Option<BTreeSet<String>>,
    /// URN of the provider resource by URN of the resource.
    providers: BTreeMap<String, String>,
}

impl<'a> Extents<'a> {
    pub(super) fn new(step: &'a Step, base: &Deployment, expected: &Outcome) -> Self {
        let complete = completely_compared(step, base, expected);
        Self { step, complete, providers: providers(step, base, expected) }
    }

    /// Returns the extent to which a resource must be equal.
    pub(super) fn of(&self, urn: &str) -> Extent {
        match &self.complete {
            Some(complete) if !complete.contains(urn) => Extent::Prefix,
            _ => Extent::Complete,
        }
    }

    /// Returns whether all resources must be equal.
    pub(super) fn is_complete(&self) -> bool {
        self.complete.is_none()
    }

    /// Returns the URN of a resource's provider resource; `None` if neither state nor program has one.
    pub(super) fn provider(&self, urn: &str) -> Option<&str> {
        self.providers.get(urn).map(String::as_str)
    }
}

/// Returns the resources that are compared completely after a failed run; `None` if all are.
fn completely_compared(step: &Step, base: &Deployment, expected: &Outcome) -> Option<BTreeSet<String>> {
    if expected.ok {
        return None;
    }
    let failed: BTreeSet<String> = expected.failed.iter().cloned().collect();
    let urns_with_errors: BTreeSet<String> =
        expected.errors.iter().map(|(urn, _)| urn.clone()).filter(|urn| !urn.is_empty()).collect();
    if !urns_with_errors.is_subset(&failed) {
        // Step generation failed. Only the resources with an error got as far as they could.
        return Some(if calls::configure_failed(expected) { BTreeSet::new() } else { urns_with_errors });
    }
    let independent = step.op == Op::Refresh && !step.flags.run_program;
    if step.interrupt.is_none() && (step.flags.continue_on_error || independent) {
        return None;
    }
    Some(failed_and_unreached(step, base, expected, failed))
}

/// Returns the failed resources, and the resources that the run cannot have reached because of them.
fn failed_and_unreached(
    step: &Step,
    base: &Deployment,
    expected: &Outcome,
    failed: BTreeSet<String>,
) -> BTreeSet<String> {
    let mut complete = failed.clone();
    let urns = step.program.urns();
    let urn_of = |name: &str| urns.get(name).map(|urn| urn.as_str().to_owned());
    loop {
        let depends_on_failed = |resource: &&Resource| {
            resource
                .dependencies(&step.program)
                .iter()
                .filter_map(|name| urn_of(name))
                .any(|urn| complete.contains(&urn))
        };
        let dependents: Vec<String> = step
            .program
            .resources
            .iter()
            .filter(depends_on_failed)
            .filter_map(|resource| urn_of(&resource.name))
            .collect();
        let before = complete.len();
        complete.extend(dependents);
        if complete.len() == before {
            break;
        }
    }
    // The dependencies of a resource whose Delete failed are not deleted either.
    let deleting = |urn: &String| expected.steps.iter().any(|(op, other)| other == urn && op.starts_with("delete"));
    let mut kept: BTreeSet<String> = failed.into_iter().filter(deleting).collect();
    for resource in base.resources.iter().rev() {
        if kept.contains(text(resource, "urn")) {
            kept.extend(references(resource).into_iter().map(str::to_owned));
        }
    }
    complete.extend(kept);
    complete
}

/// Returns all URNs that an entry refers to, except its provider.
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

/// Returns the texts in a list.
fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Returns the provider resource of each resource: that of the program, else that of a state.
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
