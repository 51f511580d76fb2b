//! Planned steps as the events of a preview, for a display.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::events::{Deletions, StepInfo, StepOp};
use pulumi_proto::property::PropertyMap;
use pulumi_proto::urn::Urn;
use state::ResourceState;

use super::planned::{PlannedRegistration, PlannedResource, PlannedStep, StackPlan};

/// Planned steps of a stack, for a display.
#[derive(Clone, Debug)]
pub struct ShownSteps {
    /// Steps in the order in which they were decided.
    pub steps: Vec<Arc<StepInfo>>,
    /// Number of steps of each kind, as in the summary of a preview.
    pub changes: BTreeMap<StepOp, usize>,
    /// Numbers of deleted and replaced resources.
    pub deletions: Deletions,
    /// Root stack resource with the planned outputs, if it is planned.
    pub root: Option<Arc<ResourceState>>,
}

impl StackPlan {
    /// Returns the planned steps for a display.
    pub fn shown_steps(&self) -> ShownSteps {
        let positions: BTreeMap<&Urn, &PlannedResource> =
            self.resources.iter().map(|resource| (&resource.urn, resource)).collect();
        let mut shown =
            ShownSteps { steps: Vec::new(), changes: BTreeMap::new(), deletions: Deletions::default(), root: None };
        for resource in &self.resources {
            let registered = resource.registration.iter().flat_map(|registration| &registration.steps);
            for PlannedStep { op, urn } in registered.chain(&resource.steps) {
                let of = positions.get(urn).copied().unwrap_or(resource);
                if is_counted(*op) && !of.internal {
                    *shown.changes.entry(*op).or_default() += 1;
                }
                match op {
                    StepOp::Delete => shown.deletions.removed += 1,
                    StepOp::DeleteReplaced => shown.deletions.replaced += 1,
                    _ => {}
                }
                shown.steps.push(Arc::new(step(*op, urn, of)));
            }
            let is_root = resource.urn.type_token() == pulumi_proto::urn::ROOT_STACK_TYPE;
            if let Some(registration) = resource.registration.as_ref().filter(|_| is_root) {
                let mut root = new_entry(&resource.urn, resource, registration);
                root.outputs = Arc::new(self.outputs.clone());
                shown.root = Some(Arc::new(root));
            }
        }
        shown
    }
}

/// Returns whether a summary counts a step. Parts of another step are not counted.
fn is_counted(op: StepOp) -> bool {
    matches!(
        op,
        StepOp::Same
            | StepOp::Create
            | StepOp::Update
            | StepOp::Delete
            | StepOp::Replace
            | StepOp::Read
            | StepOp::Discard
            | StepOp::Import
    )
}

fn step(op: StepOp, urn: &Urn, resource: &PlannedResource) -> StepInfo {
    let new = match (&resource.registration, &resource.read) {
        (Some(registration), _) => Some(new_entry(urn, resource, registration)),
        (None, Some(read)) => Some(ResourceState { inputs: Arc::clone(&read.properties), ..entry(urn, resource) }),
        (None, None) => None,
    };
    let is_deletion = matches!(op, StepOp::Delete | StepOp::DeleteReplaced | StepOp::Discard | StepOp::DiscardReplaced);
    let old = resource.old_inputs.as_ref().map(|inputs| old_entry(urn, resource, inputs));
    let old = old.or_else(|| is_deletion.then(|| entry(urn, resource)));
    let is_same = op == StepOp::Same;
    let old = if is_same { new.clone() } else { old.filter(|_| op != StepOp::Create) };
    let mut info = StepInfo::new(op, urn.clone(), old.map(Arc::new), new.filter(|_| !is_deletion).map(Arc::new));
    info.internal = resource.internal;
    if let Some(registration) = resource.registration.as_ref().filter(|_| !is_same && !is_deletion) {
        info.replace_keys.clone_from(&registration.replace_keys);
        info.diffs.clone_from(&registration.diffs);
        info.detailed_diff.clone_from(&registration.detailed_diff);
    }
    info
}

fn entry(urn: &Urn, resource: &PlannedResource) -> ResourceState {
    ResourceState::new(urn.clone(), resource.custom)
}

fn new_entry(urn: &Urn, resource: &PlannedResource, registration: &PlannedRegistration) -> ResourceState {
    let inputs = registration.checked.as_ref().unwrap_or(&registration.inputs);
    let parent = registration.options.get("parent").and_then(|parent| parent.parse().ok());
    ResourceState { inputs: Arc::clone(inputs), parent, ..entry(urn, resource) }
}

/// Returns an entry before a step. A plan has no recorded outputs, so the inputs stand for them.
fn old_entry(urn: &Urn, resource: &PlannedResource, inputs: &Arc<PropertyMap>) -> ResourceState {
    ResourceState { inputs: Arc::clone(inputs), outputs: Arc::clone(inputs), ..entry(urn, resource) }
}
