//! Update: changes an existing resource in place.

use std::sync::Arc;

use bridge::provider::{ProviderError, UpdateRequest};
use jiff::Timestamp;
use pulumi_proto::urn::ProviderReference;
use state::{OperationKind, ResourceState};

use super::failed_call::{self, BegunOperation, StepResult, new_entry};
use super::view_log::ViewLog;
use crate::context::Context;
use crate::deployment_state::DeploymentState;
use crate::goal::visible;
use crate::providers::Instance;
use crate::secretness::mark_secrets;
use crate::step::{Actor, Step, StepError};

pub(super) async fn execute(ctx: &Arc<Context>, step: &Step, views: &Arc<ViewLog>) -> Result<StepResult, StepError> {
    let (Some((old_id, old)), Some(new)) = (&step.old, &step.new) else {
        return Err(StepError::Failed("nothing to update".into()));
    };
    let mut new = (**new).clone();
    new.id.clone_from(&old.id);
    let planned = Arc::new(new.clone());
    let operation = match &step.actor {
        Actor::Engine | Actor::Missing(_) => None,
        Actor::Instance(_) | Actor::Unconfigured(_) => {
            Some(BegunOperation::begin(ctx, OperationKind::Updating, &planned).await?)
        }
    };
    let partial = match call_provider(ctx, step, old, &mut new, views).await {
        Ok(()) => None,
        Err(StepError::Provider(ProviderError::Partial { message, failure })) => {
            new.outputs = Arc::new(failure.outputs.clone());
            new.inputs = Arc::clone(&old.inputs);
            new.init_errors = failure.reasons.clone();
            new.refresh_before_update = failure.refresh_before_update;
            Some(ProviderError::Partial { message, failure })
        }
        Err(error) => {
            let of_views = |state: &DeploymentState| views.close_with_effects(state, &[], false);
            failed_call::record(ctx, operation, &error, of_views).await?;
            return Err(error);
        }
    };
    new.modified = Some(Timestamp::now());
    mark_secrets(&mut new, &step.goal_inputs, Some(old));
    let entry = new_entry(ctx, new);
    let operation = operation.map(|operation| operation.id());
    ctx.records.end(operation, |state| views.complete(state, state.update_effects(*old_id, &entry))).await?;
    Ok(StepResult { new: Some(entry), partial })
}

/// Calls Update, or configures a new instance of a provider resource; completes the entry.
async fn call_provider(
    ctx: &Arc<Context>,
    step: &Step,
    old: &ResourceState,
    new: &mut ResourceState,
    views: &Arc<ViewLog>,
) -> Result<(), StepError> {
    match &step.actor {
        // A component keeps its recorded outputs until it registers new ones.
        Actor::Engine => {
            new.outputs = Arc::clone(&old.outputs);
            Ok(())
        }
        Actor::Missing(error) => Err(StepError::Host(error.clone())),
        Actor::Unconfigured(provider) => {
            new.outputs = Arc::new(visible(&new.inputs));
            let reference = ProviderReference::new(new.urn.clone(), new.id.as_ref());
            let instance = Instance::configure(Arc::clone(provider), reference.clone(), &new.inputs, &ctx.jobs);
            if let Some(before) = ctx.providers.insert(reference, instance) {
                ctx.retire(before);
            }
            Ok(())
        }
        Actor::Instance(instance) => {
            let Some(provider) = instance.ready().await? else {
                new.outputs = Arc::default();
                return Ok(());
            };
            if ctx.is_preview() && !provider.capabilities().supports_preview {
                new.outputs = Arc::clone(&new.inputs);
                return Ok(());
            }
            let request = UpdateRequest {
                urn: new.urn.clone(),
                id: old.id.clone(),
                olds: Arc::clone(&old.outputs),
                old_inputs: Arc::clone(&old.inputs),
                news: Arc::clone(&new.inputs),
                timeout: new.custom_timeouts.durations().update,
                ignore_changes: new.ignore_changes.clone(),
                preview: ctx.is_preview(),
                views: views.views(),
            };
            let reply = provider.update(request).await?;
            new.outputs = Arc::new(reply.outputs);
            new.refresh_before_update = reply.refresh_before_update;
            Ok(())
        }
    }
}
