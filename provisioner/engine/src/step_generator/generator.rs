//! Generator of the steps of registrations.

use std::sync::Arc;

use pulumi_proto::urn::Urn;
use tracing::{Instrument as _, debug, debug_span};

use super::early_end::EarlyEnd;
use super::identify::identify;
use super::registration::{GoalOrigin, Registration};
use super::{plan, queries};
use crate::context::Context;
use crate::decisions::change::Change;
use crate::decisions::decision::{Decision, Plan, ProviderChange, ProviderQuery, Situation, decide, replace_with_key};
use crate::deployment_state::DeploymentState;
use crate::goal::Goal;
use crate::messages;
use crate::registrar::Halted;
use crate::step::Step;

/// Generator of the steps of registrations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepGenerator<'c> {
    ctx: &'c Arc<Context>,
}

impl<'c> StepGenerator<'c> {
    /// Creates the step generator of a deployment.
    pub(crate) fn new(ctx: &'c Arc<Context>) -> Self {
        Self { ctx }
    }

    /// Finds the recorded entry of a goal, and checks whether the goal can be registered.
    ///
    /// # Errors
    /// [`EarlyEnd`] if the registration ends here.
    pub(crate) async fn identify(self, goal: Goal, urn: Urn, origin: GoalOrigin) -> Result<Registration, EarlyEnd> {
        identify(self.ctx, goal, urn, origin).await
    }

    /// Returns whether the provider of the goal cannot serve the recorded resource: it is another one than the recorded provider, and
    /// its DiffConfig says that the change replaces the resource.
    ///
    /// # Errors
    /// [`Halted`] if the call fails.
    pub(crate) async fn provider_change_replaces(self, registration: &mut Registration) -> Result<bool, Halted> {
        let change = {
            let state = self.ctx.state();
            provider_change(&state, registration)
        };
        if registration.old.is_none() || change != ProviderChange::Other {
            return Ok(false);
        }
        if registration.replies.provider_diff.is_none() {
            queries::call_provider(self.ctx, registration, ProviderQuery::DiffProvider).await?;
        }
        let reply = registration.replies.provider_diff.as_ref();
        Ok(reply.is_some_and(|reply| Change::from_provider_change(reply).replaces()))
    }

    /// Calls providers until the plan of a registration is decided.
    ///
    /// # Errors
    /// [`Halted`] if the registration is refused, a call fails, or nothing new may start.
    pub(crate) async fn plan(self, registration: &mut Registration) -> Result<Plan, Halted> {
        let span = debug_span!("plan", urn = %registration.urn);
        Box::pin(self.query_and_decide(registration)).instrument(span).await
    }

    async fn query_and_decide(self, registration: &mut Registration) -> Result<Plan, Halted> {
        loop {
            self.ctx.check_running()?;
            let decision = self.decide(registration);
            debug!(
                recorded = registration.old.is_some(),
                imported = registration.imported,
                in_scope = registration.in_scope,
                decision = decision.name(),
                "decided"
            );
            match decision {
                Decision::Query(query) => queries::call_provider(self.ctx, registration, query).await?,
                Decision::Proceed(plan) => return Ok(plan),
                Decision::InputsRejected(failures) => {
                    return Err(queries::report_rejected_inputs(self.ctx, registration, &failures));
                }
                Decision::Refuse(refusal) => {
                    let message = messages::refusal(&registration.urn, refusal);
                    return Err(self.ctx.report_fatal(&registration.urn, registration.goal.source, message).into());
                }
            }
        }
    }

    /// Returns the steps of a plan, and marks them as decided in the deployment state.
    ///
    /// # Errors
    /// [`EarlyEnd`] if the plan cannot be carried out.
    pub(crate) async fn steps(self, registration: &Registration, plan: Plan) -> Result<Vec<Step>, EarlyEnd> {
        plan::steps(self.ctx, registration, plan).await
    }

    fn decide(self, registration: &Registration) -> Decision {
        let request = &self.ctx.request;
        let state = self.ctx.state();
        let goal = &registration.goal;
        let old = registration.old_state();
        // An import has replaced the deleted entry already.
        let planned = state.planned_dependent_replacement(&registration.urn).filter(|_| !registration.imported);
        decide(
            &Situation {
                operation: request.operation,
                kind: registration.kind,
                preview: request.preview,
                goal,
                old,
                imported: registration.imported,
                in_scope: registration.in_scope,
                depends_on_skipped: goal.all_dependencies().any(|urn| state.is_skipped(urn)),
                dependent_replace_keys: planned.map(|planned| planned.keys.as_slice()),
                replace_requested: request.options.replace.iter().any(|pattern| pattern.matches(&registration.urn)),
                replace_with_key: replace_with_key(goal, |urn| state.is_marked_for_replacement(urn)),
                provider: provider_change(&state, registration),
                protect: goal.protect.unwrap_or_default(),
                delete_before_replace: goal.delete_before_replace,
            },
            &registration.replies,
        )
    }
}

/// Compares the provider of a goal with that of the recorded entry.
fn provider_change(state: &DeploymentState, registration: &Registration) -> ProviderChange {
    let new = registration.goal.provider.as_ref();
    let old = registration.old_state().and_then(|old| old.provider.as_ref());
    let renamed_from = new.and_then(|provider| state.recorded_urn(&provider.urn));
    ProviderChange::between(registration.kind, old, new, renamed_from)
}
