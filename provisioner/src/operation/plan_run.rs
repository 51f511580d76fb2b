//! Provision by a saved plan: what the plan has, or nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use bridge::error::Hint as _;
use bridge::message_text::MessageText;
use engine::DeletionLimit;
use engine::events::{ActivityKind, Event, Message, Operation, Outcome, Severity};
use jiff::Timestamp;
use state::format::UpdateKind;
use state::store::{StackReference, StateStore, UsedPlan};
use state::{StateError, content_digest};

use super::pending_creates::PendingCreates;
use super::pending_resolution::{Opened, Opening};
use super::plan_error::PlanError;
use super::plan_opening::OpenedPlan;
use super::plan_saving::plugin_identities;
use super::provision::decide;
use super::{OperationError, Report, StackRun};
use crate::plan::{PlanEnforcer, PlanFile, PlanUse, StackPlan, Surroundings, output_differences};

/// Saved plan that a run carries out.
#[derive(Clone, Debug)]
pub struct PlannedProvision {
    /// Plan of all stacks.
    pub file: Arc<PlanFile>,
    /// True if planned operations may be left out that are no longer needed.
    pub allows_fewer: bool,
    /// Limit on the resources that are deleted or replaced.
    pub deletion_limit: Option<DeletionLimit>,
}

/// Provisions a stack as its plan says: makes no refresh and no preview, and refuses what the plan does not have. `opened` is the
/// plan as [`super::Stacks::open_plan`] has opened it.
///
/// # Errors
/// [`PlanError`] before anything is changed: what the plan was made with has changed, or the plan was used; else the errors of
/// [`super::provision()`]. Refusals of single steps are in the report.
///
/// # Cancellation
/// As of [`super::provision()`].
pub async fn provision_plan(
    run: &StackRun,
    planned: &PlannedProvision,
    opened: OpenedPlan,
) -> Result<Option<Report>, OperationError> {
    let stack = run.program.stack().name.clone();
    opened.check(&stack)?;
    let plan = opened.plan;
    let host = &run.load_plugins(1).await?;
    let started = Timestamp::now().as_second();
    run.check_types(host, Operation::Update).await?;
    let now = Surroundings { plugins: Some(plugin_identities(host)), ..of_plan(&plan) };
    refuse_stale(&stack, plan.surroundings.differences(&now))?;
    let mut run = run.clone();
    // A plan has no resolution of pending creates.
    run.options.pending = PendingCreates { recreates: run.options.pending.recreates, ..PendingCreates::default() };
    let state = match run.open_and_resolve(host, Operation::Update, started).await? {
        Opening::Opened(state) => state,
        Opening::Ended(report) => return Ok(report.map(|report| *report)),
    };
    // Under the lock, no other run changes the state any more.
    if let Err(error) = check_state(&stack, &state, &plan) {
        state.close_unchanged().await?;
        return Err(error);
    }
    let mut run = match decide(&state.run(&run), host, &state.snapshot).await {
        Ok(run) => run,
        Err(error) => {
            state.close_unchanged().await?;
            return Err(error);
        }
    };
    run.options.deployment.deletion_limit.clone_from(&planned.deletion_limit);
    let plan_use = Arc::new(StoredPlanUse {
        store: run.access.store.clone(),
        stack: run.access.stack.clone(),
        digest: planned.file.digest.clone(),
        by: format!("{}@{}", run.holder.username, run.holder.hostname),
        expires: planned.file.header.expires,
    });
    let enforcer = Arc::new(PlanEnforcer::new(Arc::clone(&plan), planned.allows_fewer, plan_use));
    run.guard = Arc::clone(&enforcer) as _;
    let mode = run.applied_to(&state.state, UpdateKind::Update);
    let mut report = run.deploy(host, Operation::Update, false, state.snapshot.clone(), mode).await;
    if report.summary.outcome == Outcome::Succeeded {
        if let Some(message) = left_out(&enforcer) {
            run.events.emit(Event::Message(message));
            report.summary.outcome = Outcome::Failed;
        }
        report_outputs(&run, &plan, &report);
    }
    let history = run.history(UpdateKind::Update, started, &report).await;
    let _saving = run.begin(ActivityKind::SaveState);
    state.state.close(report.snapshot.clone(), Some(&history)).await?;
    Ok(Some(report))
}

/// Returns the surroundings of a plan without its state, which is compared under the lock.
fn of_plan(plan: &StackPlan) -> Surroundings {
    Surroundings { state: None, ..plan.surroundings.clone() }
}

/// Refuses a plan whose state is not the recorded one.
fn check_state(stack: &str, state: &Opened, plan: &StackPlan) -> Result<(), OperationError> {
    let digest = content_digest(&state.snapshot).map_err(StateError::from)?;
    let now = Surroundings { state: Some(digest), ..of_plan(plan) };
    Ok(refuse_stale(stack, plan.surroundings.differences(&now))?)
}

fn refuse_stale(stack: &str, differences: Vec<String>) -> Result<(), PlanError> {
    if differences.is_empty() { Ok(()) } else { Err(PlanError::Stale { stack: stack.to_owned(), differences }) }
}

fn used_error(UsedPlan { time, by, .. }: UsedPlan) -> PlanError {
    PlanError::Used { time, by }
}

/// Returns the message about planned changes that a run has not come to.
fn left_out(enforcer: &PlanEnforcer) -> Option<Message> {
    let left_out = enforcer.left_out();
    let names: BTreeSet<String> =
        left_out.iter().map(|(urn, kind)| format!("{} was to be {}", urn.name(), kind.participle())).collect();
    if names.is_empty() {
        return None;
    }
    let names: Vec<String> = names.into_iter().collect();
    let text = MessageText::new(format_args!("the run has not come to all planned changes: {}", names.join("; ")));
    let hint = "give --allow-fewer if planned changes may be left out that are no longer needed".into();
    Some(Message { hint: Some(hint), ..Message::new(Severity::Error, text) })
}

/// Warns of outputs of the stack that are other ones than planned.
fn report_outputs(run: &StackRun, plan: &StackPlan, report: &Report) {
    let Some(outputs) = report.snapshot.stack_outputs() else { return };
    for difference in output_differences(&plan.outputs, outputs) {
        let text = MessageText::new(format_args!("the output {difference}"));
        run.events.emit(Event::Message(Message::new(Severity::Warning, text)));
    }
}

/// Record in the store of a stack that its plan is used.
#[derive(Debug)]
struct StoredPlanUse {
    store: StateStore,
    stack: StackReference,
    digest: String,
    by: String,
    expires: Timestamp,
}

#[async_trait]
impl PlanUse for StoredPlanUse {
    async fn record(&self) -> Result<(), Box<Message>> {
        let used = UsedPlan::now(self.by.clone(), self.expires);
        match self.store.use_plan(&self.stack, &self.digest, &used).await {
            Ok(None) => {
                // What stays is removed by a later run.
                self.store.remove_expired_plans(&self.stack, Timestamp::now()).await.ok();
                Ok(())
            }
            Ok(Some(earlier)) => {
                let error = used_error(earlier);
                let message = Message::new(Severity::Error, MessageText::of(&error));
                Err(Box::new(Message { hint: error.hint(), ..message }))
            }
            Err(error) => {
                let text = MessageText::new(format_args!(
                    "it cannot be recorded that the plan is used: {}",
                    MessageText::chain(&error)
                ));
                Err(Box::new(Message { hint: error.hint(), ..Message::new(Severity::Error, text) }))
            }
        }
    }
}
