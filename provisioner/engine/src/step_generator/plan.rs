//! Steps of a plan.

use std::sync::Arc;

use bridge::message_text::MessageText;
use bridge::shell::option;

use super::carry_over::{ProviderReplaced, carry_over};
use super::early_end::EarlyEnd;
use super::references::{refuse_cycle, refuse_skipped_dependencies};
use super::registration::Registration;
use super::replacement;
use crate::context::Context;
use crate::decisions::decision::Plan;
use crate::deployment_state::Incomplete;
use crate::events::{Message, Operation, Severity, StepOp};
use crate::messages;
use crate::reporter::ErrorReported;
use crate::secretness::with_secrets_of;
use crate::step::{CarryOver, Step};

/// Returns the steps of a plan, and marks them as decided in the deployment state.
///
/// # Errors
/// [`EarlyEnd`] if the plan cannot be carried out.
pub(super) async fn steps(ctx: &Arc<Context>, registration: &Registration, plan: Plan) -> Result<Vec<Step>, EarlyEnd> {
    let applies_goal = !matches!(plan, Plan::Skip | Plan::CarryOver);
    if ctx.request.operation == Operation::Update && applies_goal {
        let goal = &registration.goal;
        refuse_skipped_dependencies(ctx, &registration.urn, goal.all_dependencies(), goal.source)?;
    }
    // An entry that stays as it is recorded keeps its references.
    let stays = matches!(plan, Plan::KeepUntilDeleted | Plan::KeepRecorded | Plan::CarryOver);
    if !stays {
        let old = registration.old.as_ref();
        refuse_cycle(ctx, old, registration.goal.source, || registration.new_state(Arc::default()))?;
    }
    let steps = match plan {
        Plan::Replace(replacement) => replacement::steps(ctx, registration, replacement).await?,
        Plan::KeepUntilDeleted => keep_until_deleted(ctx, registration),
        Plan::Same { inputs } => vec![registration.step_to(StepOp::Same, inputs)],
        Plan::Create { inputs } => vec![registration.step_to(StepOp::Create, inputs)],
        Plan::Update { inputs, change } => {
            if let Some(message) = registration.old_state().and_then(messages::not_initialized) {
                ctx.emit_message(&registration.urn, registration.goal.source, message);
            }
            vec![Step { change, ..registration.step_to(StepOp::Update, inputs) }]
        }
        Plan::CarryOver => carry_over_untouched(ctx, registration)?,
        Plan::Skip => {
            ctx.state().mark_incomplete(&registration.urn, Incomplete::Skipped);
            vec![registration.step(StepOp::Same)]
        }
        Plan::KeepRecorded => {
            // The plan has no step that confirms the entry. Only an entry that was imported or read is confirmed
            // already.
            if let Some((entry, _)) = &registration.old {
                ctx.records.defer(|state| state.confirm_effects(*entry)).await;
            }
            Vec::new()
        }
    };
    ctx.state().decide(&registration.urn);
    Ok(steps)
}

/// Returns the step for an entry that the operation is about to delete. The entry keeps its URN and its references,
/// which determine the order of deletions. Options that matter to the deletion are those of the goal.
fn keep_until_deleted(ctx: &Context, registration: &Registration) -> Vec<Step> {
    let Some(old) = &registration.old else { return Vec::new() };
    let goal = registration.new_state(Arc::default());
    if old.1.deleted_with.is_some() && old.1.deleted_with != goal.deleted_with {
        ctx.state().release_deleted_with(old.0);
    }
    let reported = (old.0, with_secrets_of(&registration.goal_inputs, &old.1));
    vec![Step {
        carry_over: Some(CarryOver::UntilDeleted(Arc::new(goal))),
        source: registration.goal.source,
        ..Step::carry_over(reported, old.1.urn.clone())
    }]
}

/// Returns the steps for an entry out of scope; none if the steps of a resource that depends on it carry it over.
fn carry_over_untouched(ctx: &Context, registration: &Registration) -> Result<Vec<Step>, ErrorReported> {
    let Some(old) = &registration.old else { return Ok(Vec::new()) };
    let steps = {
        let mut state = ctx.state();
        if state.is_carried_over(&old.1.urn) {
            return Ok(Vec::new());
        }
        carry_over(&mut state, old, &old.1.urn)
    };
    steps.map_err(|ProviderReplaced { urn }| {
        let text = MessageText::new(format_args!(
            "{} is out of scope, and the provider that it was created with is replaced",
            urn.name()
        ));
        let mut message = Message::new(Severity::Error, text);
        message.hint = Some(MessageText::new(format_args!("add {}", option("--target", urn.as_str()))));
        ctx.report_fatal(&registration.urn, registration.goal.source, message)
    })
}
