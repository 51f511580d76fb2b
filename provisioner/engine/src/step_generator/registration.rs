//! A registration between its goal and its steps: values only.

use std::sync::Arc;

use bridge::provider::Provider;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::Urn;
use state::{Entry, ResourceState};

use crate::decisions::autonaming::Proposal;
use crate::decisions::decision::Replies;
use crate::events::StepOp;
use crate::goal::{Goal, ResourceKind};
use crate::providers::Instance;
use crate::secretness::GoalInputs;
use crate::step::{Actor, Step};

/// Source of a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GoalOrigin {
    /// The program, or the plugin of a component.
    Program,
    /// The engine itself: a default provider.
    Engine,
}

/// Registration between its goal and its steps.
#[derive(Debug)]
pub(crate) struct Registration {
    pub(crate) goal: Goal,
    /// Inputs of the goal, searched for secrets.
    pub(crate) goal_inputs: GoalInputs,
    pub(crate) urn: Urn,
    pub(crate) kind: ResourceKind,
    pub(crate) origin: GoalOrigin,
    pub(crate) old: Option<Entry>,
    /// True if this registration has imported the recorded entry.
    pub(crate) imported: bool,
    /// True if targets and excludes permit changes of the resource.
    pub(crate) in_scope: bool,
    /// True if a refresh that runs the program (`--run-program`) should read the recorded entry.
    pub(crate) should_refresh: bool,
    pub(crate) seed: [u8; 32],
    /// Physical name that is proposed to the provider.
    pub(crate) autonaming: Option<Proposal>,
    pub(crate) replies: Replies,
    /// Instance that serves the resource; `None` for components and provider resources.
    pub(crate) instance: Option<Arc<Instance>>,
    /// New instance of a provider resource, checked and not configured.
    pub(crate) unconfigured: Option<Arc<dyn Provider>>,
}

impl Registration {
    /// Returns a step of the registration that has neither the old entry nor the new state.
    pub(crate) fn step(&self, op: StepOp) -> Step {
        let mut step = Step::new(op, self.urn.clone());
        step.internal = self.origin == GoalOrigin::Engine;
        step.source = self.goal.source;
        step.goal_inputs = self.goal_inputs.clone();
        step.actor = match (&self.instance, &self.unconfigured) {
            (Some(instance), _) => Actor::Instance(Arc::clone(instance)),
            (None, Some(unconfigured)) => Actor::Unconfigured(Arc::clone(unconfigured)),
            (None, None) => Actor::Engine,
        };
        step
    }

    /// Returns a step from the recorded entry to the state of the goal.
    pub(crate) fn step_to(&self, op: StepOp, inputs: Arc<PropertyMap>) -> Step {
        let mut step = self.step(op);
        step.old.clone_from(&self.old);
        step.new = Some(Arc::new(self.new_state(inputs)));
        step
    }

    pub(crate) fn old_state(&self) -> Option<&ResourceState> {
        self.old.as_ref().map(|(_, old)| &**old)
    }

    /// Returns the new state by the goal, before any provider has replied.
    pub(crate) fn new_state(&self, inputs: Arc<PropertyMap>) -> ResourceState {
        let goal = &self.goal;
        let mut state = ResourceState::new(self.urn.clone(), goal.custom);
        state.inputs = inputs;
        state.parent.clone_from(&goal.parent);
        state.protect = goal.protect.unwrap_or_default();
        state.dependencies.clone_from(&goal.dependencies);
        state.property_dependencies.clone_from(&goal.property_dependencies);
        state.provider = if self.kind == ResourceKind::Custom { goal.provider.clone() } else { None };
        state.additional_secret_outputs.clone_from(&goal.additional_secret_outputs);
        state.custom_timeouts = goal.custom_timeouts.into();
        state.import_id.clone_from(&goal.import_id);
        state.retain_on_delete = goal.retain_on_delete.unwrap_or_default();
        state.deleted_with.clone_from(&goal.deleted_with);
        state.replace_with.clone_from(&goal.replace_with);
        state.ignore_changes.clone_from(&goal.ignore_changes);
        state.hide_diff.clone_from(&goal.hide_diff);
        state.replace_on_changes.clone_from(&goal.replace_on_changes);
        state.replacement_trigger = goal.replacement_trigger.clone().unwrap_or(PropertyValue::Null);
        if let Some((_, old)) = &self.old {
            state.created = old.created;
            state.modified = old.modified;
            state.refresh_before_update = old.refresh_before_update;
        }
        state
    }
}
