//! Plan of a stack: values only.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bridge::provider::PropertyDiff;
use engine::SeedKey;
use engine::events::StepOp;
use pulumi_proto::property::PropertyMap;
use pulumi_proto::urn::Urn;

/// Plan of a stack.
#[derive(Clone, Debug)]
pub struct StackPlan {
    /// Files, plugins and state that the plan was made with.
    pub surroundings: Surroundings,
    /// Key of the seeds from which random names are derived.
    pub seeds: SeedKey,
    /// Names of plugins with the names of those values of their `config` that are taken anew in the run.
    pub renewed: BTreeMap<String, BTreeSet<String>>,
    /// Resources, in the order in which they were decided.
    pub resources: Vec<PlannedResource>,
    /// Outputs of the stack. They contain unknown values.
    pub outputs: PropertyMap,
}

/// Files, plugins and state with which a stack is provisioned: what a run compares before its first change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// Digest of the resources and the pending operations of the state; `None` if it is compared later, under the lock.
    pub state: Option<String>,
    /// Digests of all files that were read, by path.
    pub files: BTreeMap<String, String>,
    /// Plugins by name: version, revision and digest of the package.
    pub plugins: Option<BTreeMap<String, String>>,
}

impl Surroundings {
    /// Returns the differences from these surroundings to others, one sentence each. What one of them does not have (`None`) is not
    /// compared.
    pub fn differences(&self, now: &Self) -> Vec<String> {
        let mut found = Vec::new();
        if let (Some(planned), Some(state)) = (&self.state, &now.state)
            && planned != state
        {
            found.push("the recorded state has changed".to_owned());
        }
        let changed = |what: &str, planned: &BTreeMap<String, String>, now: &BTreeMap<String, String>| {
            let names: BTreeSet<&String> = planned.keys().chain(now.keys()).collect();
            let difference = |name: &String| match (planned.get(name), now.get(name)) {
                (Some(planned), Some(now)) if planned == now => None,
                (Some(_), Some(_)) => Some(format!("the {what} {name} has changed")),
                (Some(_), None) => Some(format!("the {what} {name} is missing")),
                (None, _) => Some(format!("the {what} {name} is new")),
            };
            names.into_iter().filter_map(difference).collect::<Vec<_>>()
        };
        found.extend(changed("file", &self.files, &now.files));
        if let (Some(planned), Some(now)) = (&self.plugins, &now.plugins) {
            found.extend(changed("plugin", planned, now));
        }
        found
    }
}

/// Planned steps on a resource.
#[derive(Clone, Debug)]
pub struct PlannedResource {
    /// URN of the resource.
    pub urn: Urn,
    /// True for custom and provider resources, false for components.
    pub custom: bool,
    /// True for a resource of the engine itself, which is not displayed.
    pub internal: bool,
    /// Registration of the resource, if it is registered.
    pub registration: Option<PlannedRegistration>,
    /// Steps that belong to no registration: deletions, reads, imports.
    pub steps: Vec<PlannedStep>,
    /// Read of the resource, if it is not one of the stack.
    pub read: Option<PlannedRead>,
    /// Recorded inputs, if a step changes the resource.
    pub old_inputs: Option<Arc<PropertyMap>>,
}

impl PlannedResource {
    /// Creates a resource without steps.
    pub(super) fn new(urn: Urn) -> Self {
        Self { urn, custom: true, internal: false, registration: None, steps: Vec::new(), read: None, old_inputs: None }
    }
}

/// Planned registration of a resource. Inputs contain unknown values where the run decides them.
#[derive(Clone, Debug)]
pub struct PlannedRegistration {
    /// Options of the goal, as texts.
    pub options: BTreeMap<String, String>,
    /// Inputs of the goal.
    pub inputs: Arc<PropertyMap>,
    /// Inputs that Check has returned.
    pub checked: Option<Arc<PropertyMap>>,
    /// Steps in their order. Deletions of dependents may be among them.
    pub steps: Vec<PlannedStep>,
    /// Names of properties that replace the resource.
    pub replace_keys: Vec<String>,
    /// Top-level names of changed properties.
    pub diffs: Vec<String>,
    /// Changes by property path, if known.
    pub detailed_diff: BTreeMap<String, PropertyDiff>,
}

/// Planned step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedStep {
    /// Operation of the step.
    pub op: StepOp,
    /// URN of the resource that it changes.
    pub urn: Urn,
}

/// Planned read of a resource that is not one of the stack.
#[derive(Clone, Debug)]
pub struct PlannedRead {
    /// Id of the resource; `None` if it is not known yet.
    pub id: Option<String>,
    /// Properties that determine what is read.
    pub properties: Arc<PropertyMap>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_difference_of_the_surroundings_is_named() {
        let texts = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, digest)| ((*name).to_owned(), (*digest).to_owned())).collect()
        };
        let planned = Surroundings {
            state: Some("1".to_owned()),
            files: texts(&[("a.yaml", "1"), ("b.yaml", "1"), ("c.yaml", "1")]),
            plugins: Some(texts(&[("note", "1.0.0")])),
        };
        assert_eq!(planned.differences(&planned), Vec::<String>::new());
        let now = Surroundings {
            state: Some("2".to_owned()),
            files: texts(&[("a.yaml", "1"), ("b.yaml", "2"), ("d.yaml", "1")]),
            plugins: Some(texts(&[("note", "1.0.1")])),
        };
        let expected = [
            "the recorded state has changed",
            "the file b.yaml has changed",
            "the file c.yaml is missing",
            "the file d.yaml is new",
            "the plugin note has changed",
        ];
        assert_eq!(planned.differences(&now), expected);
        let unknown = Surroundings { state: None, plugins: None, ..planned.clone() };
        assert_eq!(planned.differences(&unknown), Vec::<String>::new());
    }
}
