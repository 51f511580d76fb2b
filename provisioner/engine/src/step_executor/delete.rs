//! Delete: removes a resource and its entry, or the entry alone.

use std::sync::Arc;

use bridge::provider::{DeleteRequest, ProviderError, ViewOp, Views};
use state::{EntryId, OperationKind, ResourceState};

use super::failed_call::{self, BegunOperation, StepResult};
use super::view_log::ViewLog;
use crate::context::Context;
use crate::decisions::deletions::{DeletedWithTarget, DeletionKind, DeletionReason, deletion_kind};
use crate::deployment_state::DeploymentState;
use crate::events::StepOp;
use crate::messages;
use crate::providers::Instance;
use crate::step::{Actor, Step, StepError};

pub(super) async fn execute(ctx: &Arc<Context>, step: &Step, views: &Arc<ViewLog>) -> Result<StepResult, StepError> {
    let (old_id, old) = step.old.as_ref().ok_or_else(|| StepError::Failed("nothing to delete".into()))?;
    let reason = if step.op == StepOp::DeleteReplaced { DeletionReason::Replaced } else { DeletionReason::Removed };
    let deleted_with = {
        let state = ctx.state();
        let urn = old.deleted_with.as_ref().filter(|_| !state.is_deleted_with_released(*old_id));
        if urn.is_some_and(|urn| state.is_marked_for_deletion(urn)) {
            DeletedWithTarget::IsDeleted
        } else {
            DeletedWithTarget::Stays
        }
    };
    let calls_provider = match deletion_kind(old, reason, deleted_with, ctx.request.mode()) {
        DeletionKind::Refused(reason) => return Err(messages::not_deleted_error(&old.urn, reason)),
        DeletionKind::RemoveFromState => false,
        DeletionKind::CallProvider => true,
    };
    if ctx.is_preview() {
        views.log_recorded_views(ViewOp::Delete);
    }
    let operation = match &step.actor {
        Actor::Instance(instance) if calls_provider => {
            let recorded = with_recorded_values(&ctx.state(), *old_id, old);
            let operation = BegunOperation::begin(ctx, OperationKind::Deleting, &recorded).await?;
            let running = ctx.state().begin_delete(old);
            let called = call_provider(instance, old, views.views()).await;
            ctx.state().end_delete(&running);
            if let Err(error) = called {
                let error = StepError::from(error);
                let of_views = |state: &DeploymentState| views.close_with_effects(state, &[], false);
                failed_call::record(ctx, Some(operation), &error, of_views).await?;
                return Err(error);
            }
            Some(operation.id())
        }
        Actor::Missing(error) if calls_provider => return Err(StepError::Host(error.clone())),
        Actor::Engine | Actor::Unconfigured(_) | Actor::Instance(_) | Actor::Missing(_) => None,
    };
    if let Some(reference) = old.as_provider_reference().filter(|_| !ctx.is_preview())
        && let Some(instance) = ctx.providers.remove(&reference)
    {
        ctx.retire(instance);
    }
    let replacement_is_pending = step.delete_before_replace && !old.delete;
    ctx.records
        .end(operation, |state| {
            let mut effects = views.close_with_effects(state, &[], false);
            let also_deleted = step.also_deleted.iter().filter(|id| state.ledger().get(**id).is_some());
            effects.extend(also_deleted.flat_map(|id| state.delete_effects(*id)));
            effects.extend(if replacement_is_pending {
                state.pending_replacement_effects(*old_id, old)
            } else {
                state.delete_effects(*old_id)
            });
            effects
        })
        .await?;
    if let Some(report) = &step.deletion_report {
        report.done();
    }
    Ok(StepResult { new: None, partial: None })
}

/// Returns an entry with the values that are recorded for it: some may have become secret since the step was decided.
fn with_recorded_values(state: &DeploymentState, id: EntryId, old: &Arc<ResourceState>) -> Arc<ResourceState> {
    let is_other =
        |now: &&Arc<ResourceState>| !Arc::ptr_eq(&now.inputs, &old.inputs) || !Arc::ptr_eq(&now.outputs, &old.outputs);
    match state.ledger().get(id).filter(is_other) {
        Some(now) => {
            let (inputs, outputs) = (Arc::clone(&now.inputs), Arc::clone(&now.outputs));
            Arc::new(ResourceState { inputs, outputs, ..(**old).clone() })
        }
        None => Arc::clone(old),
    }
}

/// Calls Delete, unless the configuration of the provider is not known.
async fn call_provider(instance: &Instance, old: &ResourceState, views: Views) -> Result<(), ProviderError> {
    let Some(provider) = instance.ready().await? else { return Ok(()) };
    let request = DeleteRequest {
        urn: old.urn.clone(),
        id: old.id.clone(),
        outputs: Arc::clone(&old.outputs),
        old_inputs: Arc::clone(&old.inputs),
        timeout: old.custom_timeouts.durations().delete,
        views,
    };
    provider.delete(request).await
}
