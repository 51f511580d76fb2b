//! Same: confirms an entry, with the options of the goal.

use std::sync::Arc;

use bridge::provider::{Provider, ViewOp};
use pulumi_proto::urn::ProviderReference;
use state::ResourceState;

use super::failed_call::{StepResult, new_entry};
use super::view_log::ViewLog;
use crate::context::Context;
use crate::providers::Instance;
use crate::secretness::mark_secrets;
use crate::step::{Actor, CarryOver, Step, StepError};

pub(super) async fn execute(ctx: &Arc<Context>, step: &Step, views: &Arc<ViewLog>) -> Result<StepResult, StepError> {
    let (Some((old_id, old)), Some(new)) = (&step.old, &step.new) else {
        return Ok(StepResult { new: None, partial: None });
    };
    if let Some(carry_over) = &step.carry_over {
        ctx.state().keep_as_recorded(*old_id);
        // References of the entry may have got new URNs since the step was planned, so the effects are those of
        // its current state.
        ctx.records
            .defer(|state| {
                let mut effects = state.confirm_effects(*old_id);
                match carry_over {
                    CarryOver::AsRecorded => {}
                    CarryOver::UntilDeleted(goal) => effects.extend(state.prepare_deletion_effects(*old_id, goal)),
                }
                effects
            })
            .await;
        let new = ctx.state().ledger().get(*old_id).map(|state| (*old_id, Arc::clone(state)));
        return Ok(StepResult { new, partial: None });
    }
    views.log_recorded_views(ViewOp::Same);
    let mut new = (**new).clone();
    new.id.clone_from(&old.id);
    new.outputs = Arc::clone(&old.outputs);
    mark_secrets(&mut new, &step.goal_inputs, Some(old));
    if let Actor::Unconfigured(provider) = &step.actor {
        keep_provider(ctx, provider, old, &new).await;
    }
    if **old == new {
        let entry = (*old_id, Arc::clone(old));
        ctx.records.defer(|state| views.complete(state, state.confirm_effects(*old_id))).await;
        return Ok(StepResult { new: Some(entry), partial: None });
    }
    let entry = new_entry(ctx, new);
    ctx.records.change(|state| views.complete(state, state.update_effects(*old_id, &entry))).await?;
    Ok(StepResult { new: Some(entry), partial: None })
}

/// Configures an unchanged provider resource with its recorded inputs, unless an instance of it is known already.
async fn keep_provider(ctx: &Arc<Context>, unconfigured: &Arc<dyn Provider>, old: &ResourceState, new: &ResourceState) {
    let Some(reference) = new.as_provider_reference() else { return };
    let old_reference = ProviderReference::new(old.urn.clone(), old.id.as_ref());
    let make = || Instance::configure(Arc::clone(unconfigured), reference.clone(), &old.inputs, &ctx.jobs);
    let instance = ctx.providers.get_or_insert_with(&old_reference, make).await;
    if !Arc::ptr_eq(instance.provider(), unconfigured) {
        ctx.start_closing(Arc::clone(unconfigured));
    }
    if reference != old_reference {
        ctx.providers.insert(reference, instance);
    }
}
