//! Views: parts of a resource that its provider publishes while it works on the resource
//! (docs/spec/engine-semantics.md#4.2; docs/spec/provider-protocol.md#2.2).
//!
//! Views are not registered. The steps that a provider publishes for them during a call are reported like other steps,
//! and recorded with the end of the call. A view is confirmed, marked as pending delete, renamed and removed together
//! with its resource.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bridge::provider::{View, ViewFailure, ViewListener, ViewOp, ViewStep, Views};
use hashbrown::{HashMap, HashSet};
use pulumi_proto::urn::Urn;

use state::{Effect, Entry, ResourceState};

use super::view_steps::{Published, ViewOutcome, is_taken, name_of, outcomes, rewritten};
use crate::context::Context;
use crate::deployment_state::{DeploymentState, Incomplete};
use crate::events::{Event, Message, Severity, StepFailure, StepInfo, StepOp};
use crate::messages;
use crate::reporter::{ErrorReported, Failure};
use crate::secretness::{GoalInputs, mark_secrets};
use crate::step::Step;

/// Log of the views of one resource during one step.
#[derive(Debug)]
pub(crate) struct ViewLog {
    ctx: Arc<Context>,
    /// URN of the resource, as its provider receives it.
    resource: Urn,
    /// Entry whose views are recorded; `None` for a new resource.
    recorded: Option<Entry>,
    /// True if views are only read: a view that is not recorded is not added.
    refresh: bool,
    steps: Mutex<PublishedSteps>,
}

/// Published steps of views.
#[derive(Debug, Default)]
struct PublishedSteps {
    steps: Vec<Published>,
    /// Steps of attempts that failed without an effect, until the repeated call publishes them again.
    discarded: Vec<Published>,
    /// True once the record of the step is made: no further steps are accepted.
    closed: bool,
}

impl ViewLog {
    /// Creates the log of a step.
    pub(crate) fn of_step(ctx: &Arc<Context>, step: &Step) -> Arc<Self> {
        let uses_recorded_views =
            matches!(step.op, StepOp::Same | StepOp::Update | StepOp::Read | StepOp::Delete | StepOp::DeleteReplaced);
        let recorded = step.old.clone().filter(|_| uses_recorded_views);
        Arc::new(Self::new(ctx, &step.urn, recorded, false))
    }

    /// Creates the log of a refresh of an entry.
    pub(crate) fn of_refresh(ctx: &Arc<Context>, urn: &Urn, recorded: Entry) -> Arc<Self> {
        Arc::new(Self::new(ctx, urn, Some(recorded), true))
    }

    fn new(ctx: &Arc<Context>, resource: &Urn, recorded: Option<Entry>, refresh: bool) -> Self {
        let (ctx, resource) = (Arc::clone(ctx), resource.clone());
        Self { ctx, resource, recorded, refresh, steps: Mutex::default() }
    }

    /// Returns the recorded views for a call, with this log as the listener.
    pub(crate) fn views(self: &Arc<Self>) -> Views {
        let recorded = self.recorded_views().into_iter().map(|(_, state)| {
            let parent = state.parent.as_ref().filter(|parent| state.view_of.as_ref() != Some(parent));
            View {
                type_token: state.urn.type_token().to_owned(),
                name: state.urn.name().to_owned(),
                parent: parent.map(|parent| (parent.type_token().to_owned(), parent.name().to_owned())),
                inputs: Arc::clone(&state.inputs),
                outputs: Arc::clone(&state.outputs),
            }
        });
        Views { recorded: recorded.collect(), listener: Some(Arc::clone(self) as Arc<dyn ViewListener>) }
    }

    /// Logs a step for each recorded view where no provider is called to publish one: for an unchanged resource, or for
    /// a deletion in a preview.
    pub(crate) fn log_recorded_views(&self, op: ViewOp) {
        for (_, state) in self.recorded_views() {
            let new = (op != ViewOp::Delete).then(|| Arc::clone(&state));
            self.push(op, StepInfo::new(StepOp::from(op), state.urn.clone(), Some(state), new), None);
        }
    }

    fn recorded_views(&self) -> Vec<Entry> {
        self.views_in(&self.ctx.state())
    }

    /// Returns the recorded views, under the current URN of their resource.
    fn views_in(&self, state: &DeploymentState) -> Vec<Entry> {
        let Some((id, recorded)) = &self.recorded else { return Vec::new() };
        state.views_of(state.ledger().get(*id).unwrap_or(recorded))
    }

    /// Returns the effects of the views, and accepts no further steps. `with_resource` is set if the same record adds
    /// or confirms the resource, with the effects `so_far`: new views are added after it. Otherwise views only change
    /// in place.
    pub(crate) fn close_with_effects(
        &self,
        state: &DeploymentState,
        so_far: &[Effect],
        with_resource: bool,
    ) -> Vec<Effect> {
        let published_steps = &mut *self.lock_steps();
        published_steps.closed = true;
        if published_steps.steps.is_empty() {
            return Vec::new();
        }
        let recorded = self.views_in(state);
        let by_name: HashMap<_, _> = recorded.iter().map(|entry| (name_of(&entry.1.urn), entry)).collect();
        let mut effects = Vec::new();
        let mut removed: HashSet<&Urn> = HashSet::new();
        let mut view_outcomes: HashMap<Urn, ViewOutcome> = HashMap::new();
        for (place, new) in outcomes(&published_steps.steps) {
            let Some(published) = published_steps.steps.get(place) else { continue };
            let outcome = match (by_name.get(&name_of(&published.info.urn)), new) {
                (Some((id, old)), Some(new)) => {
                    // If the resource gets a new URN, `so_far` has renamed the view already.
                    let old = rewritten(so_far, *id).unwrap_or(old);
                    let (inputs, outputs) = (Arc::clone(&new.inputs), Arc::clone(&new.outputs));
                    if old.inputs != inputs || old.outputs != outputs {
                        effects
                            .push(Effect::Rewrite(*id, Arc::new(ResourceState { inputs, outputs, ..(**old).clone() })));
                    }
                    effects.extend(with_resource.then_some(Effect::Keep(*id)));
                    ViewOutcome::Recorded
                }
                (Some((id, old)), None) => {
                    removed.insert(&old.urn);
                    effects.push(Effect::Remove(*id));
                    ViewOutcome::Recorded
                }
                (None, Some(_)) if !with_resource => ViewOutcome::NotRecorded,
                (None, Some(new)) if is_taken(state, so_far, &new.urn) => ViewOutcome::UrnTaken,
                (None, Some(new)) => {
                    effects.push(Effect::Add(published.entry, Arc::clone(new)));
                    ViewOutcome::Recorded
                }
                (None, None) => ViewOutcome::Recorded,
            };
            view_outcomes.insert(published.info.urn.clone(), outcome);
        }
        for step in &mut published_steps.steps {
            step.outcome = view_outcomes.get(&step.info.urn).copied().unwrap_or(step.outcome);
        }
        // Views within a removed view are removed, too.
        for (id, state) in &recorded {
            if state.parent.as_ref().is_some_and(|parent| removed.contains(parent)) && removed.insert(&state.urn) {
                effects.push(Effect::Remove(*id));
            }
        }
        effects
    }

    /// Completes the effects of a step with those of the views.
    pub(super) fn complete(&self, state: &DeploymentState, mut effects: Vec<Effect>) -> Vec<Effect> {
        let of_views = self.close_with_effects(state, &effects, true);
        effects.extend(of_views);
        effects
    }

    /// Reports the end of each step, and counts the successful ones if `counts` is true. Except in a refresh, steps
    /// that are not recorded are not counted.
    ///
    /// # Errors
    /// [`ErrorReported`] of the first failed step, with which the step of the resource fails, too.
    pub(crate) fn report_ends(&self, counts: bool) -> Result<(), ErrorReported> {
        let (steps, discarded) = {
            let mut published_steps = self.lock_steps();
            published_steps.closed = true;
            (published_steps.steps.clone(), std::mem::take(&mut published_steps.discarded))
        };
        for Published { info, .. } in discarded {
            let message = "the call was repeated, and did not publish the step again".into();
            let failure = StepFailure { message, indeterminate: false, partial: false, details: None };
            if !self.ctx.is_preview() {
                self.ctx.emit(Event::StepFailed(info, failure));
            }
        }
        let mut first = Ok(());
        for Published { info, failure, started, outcome, .. } in steps {
            let Some(failure) = failure else {
                if outcome == ViewOutcome::UrnTaken {
                    let text =
                        "its provider publishes a view under the URN of another resource: the view is not recorded";
                    self.ctx.emit_message(&info.urn, None, Message::new(Severity::Warning, text));
                } else if counts && (outcome == ViewOutcome::Recorded || self.refresh) {
                    self.ctx.state().count(info.result.unwrap_or(info.op));
                }
                self.ctx.emit(Event::StepSucceeded(info, started.elapsed()));
                continue;
            };
            if !self.refresh {
                let mut state = self.ctx.state();
                for urn in [&info.urn, &self.resource] {
                    state.mark_incomplete(urn, Incomplete::Failed);
                }
            }
            let mut message = Message::new(Severity::Error, failure.message.clone());
            message.plugin = Some(messages::package_of(&self.resource));
            let error = self.ctx.report_error(&info.urn, None, message, Failure::Step);
            first = first.and(Err(error));
            if !self.ctx.is_preview() {
                let ViewFailure { message, partial, indeterminate } = failure;
                let message = message.into();
                self.ctx.emit(Event::StepFailed(info, StepFailure { message, indeterminate, partial, details: None }));
            }
        }
        first
    }

    fn push(&self, op: ViewOp, info: StepInfo, failure: Option<ViewFailure>) {
        let entry = self.ctx.state().ledger_mut().new_entry();
        let published_steps = &mut *self.lock_steps();
        if published_steps.closed {
            return;
        }
        let (info, mut started) = (Arc::new(info), Instant::now());
        let is_repeated = |before: &Published| before.info.urn == info.urn && before.info.op == info.op;
        match published_steps.discarded.iter().position(is_repeated) {
            // Its start has been reported.
            Some(place) => started = published_steps.discarded.swap_remove(place).started,
            None => self.ctx.emit(Event::StepStarted(Arc::clone(&info))),
        }
        published_steps.steps.push(Published { info, op, failure, entry, started, outcome: ViewOutcome::NotRecorded });
    }

    /// Returns the state of a view. `recorded` are the recorded views.
    fn state(&self, view: View, recorded: &[Entry]) -> Arc<ResourceState> {
        let resource = &self.resource;
        let urn = Urn::new(resource.stack(), resource.project(), Some(resource), &view.type_token, &view.name);
        let mut state = ResourceState::new(urn, false);
        state.parent = Some(resource.clone());
        state.view_of = Some(resource.clone());
        state.inputs = view.inputs;
        state.outputs = view.outputs;
        let recorded = recorded.iter().find(|(_, known)| name_of(&known.urn) == name_of(&state.urn));
        mark_secrets(&mut state, &GoalInputs::default(), recorded.map(|(_, known)| &**known));
        Arc::new(state)
    }

    fn lock_steps(&self) -> MutexGuard<'_, PublishedSteps> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ViewListener for ViewLog {
    fn discard(&self) {
        let published_steps = &mut *self.lock_steps();
        published_steps.discarded.append(&mut published_steps.steps);
    }

    fn publish(&self, steps: Vec<ViewStep>) {
        let recorded = self.recorded_views();
        for ViewStep { op, old, new, failure, replace_keys, diffs, detailed_diff } in steps {
            if self.refresh && old.is_none() {
                continue;
            }
            let (old, new) = (old.map(|view| self.state(view, &recorded)), new.map(|view| self.state(view, &recorded)));
            let Some(urn) = new.as_ref().or(old.as_ref()).map(|state| state.urn.clone()) else { continue };
            let step_op = StepOp::from(op);
            let (step, result) = if self.refresh { (StepOp::Refresh, Some(step_op)) } else { (step_op, None) };
            let step_info = StepInfo {
                result,
                replace_keys,
                diffs,
                detailed_diff: detailed_diff.unwrap_or_default(),
                ..StepInfo::new(step, urn, old, new)
            };
            self.push(op, step_info, failure);
        }
    }
}
