//! Create: a new resource, alone or as the replacement of another one.

use std::sync::Arc;

use bridge::message_text::MessageText;
use bridge::provider::{CreateRequest, Provider, ProviderError, ReadRequest, Views};
use jiff::Timestamp;
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::ProviderReference;
use state::{OperationKind, ResourceState};

use super::failed_call::{self, BegunOperation, StepResult, new_entry};
use super::view_log::ViewLog;
use crate::context::Context;
use crate::goal::visible;
use crate::providers::Instance;
use crate::secretness::mark_secrets;
use crate::step::{Actor, Step, StepError};

pub(super) async fn execute(ctx: &Arc<Context>, step: &Step, views: &Arc<ViewLog>) -> Result<StepResult, StepError> {
    let planned = step.new.as_ref().ok_or_else(|| StepError::Failed("nothing to create".into()))?;
    let mut new = (**planned).clone();
    let operation = match &step.actor {
        Actor::Engine | Actor::Missing(_) => None,
        Actor::Instance(_) | Actor::Unconfigured(_) => {
            Some(BegunOperation::begin(ctx, OperationKind::Creating, planned).await?)
        }
    };
    let outcome = call_provider(ctx, step, &mut new, views).await;
    let partial = match outcome {
        Ok(()) => None,
        Err(StepError::Provider(ProviderError::Partial { message, failure }))
            if failure.id.is_some() || ctx.is_preview() =>
        {
            new.id = failure.id.clone();
            new.outputs = Arc::new(failure.outputs.clone());
            new.init_errors = failure.reasons.clone();
            new.refresh_before_update = failure.refresh_before_update;
            Some(ProviderError::Partial { message, failure })
        }
        Err(error) => {
            failed_call::record(ctx, operation, &error, |_| Vec::new()).await?;
            return Err(error);
        }
    };
    new.created = Some(Timestamp::now());
    new.modified = new.created;
    mark_secrets(&mut new, &step.goal_inputs, step.old_state());
    let entry = new_entry(ctx, new);
    // After a deletion, the new entry takes the place of the old one; otherwise the old entry awaits its own deletion.
    ctx.records
        .end(operation.map(|operation| operation.id()), |state| {
            let effects = match &step.old {
                None => state.add_effects(&entry),
                Some((old, _)) if step.delete_before_replace => state.complete_replacement_effects(*old, &entry),
                Some((old, _)) => state.replace_effects(*old, &entry, None),
            };
            views.complete(state, effects)
        })
        .await?;
    Ok(StepResult { new: Some(entry), partial })
}

/// Calls Create, or configures the instance of a new provider resource; completes the entry.
async fn call_provider(
    ctx: &Context,
    step: &Step,
    new: &mut ResourceState,
    views: &Arc<ViewLog>,
) -> Result<(), StepError> {
    match &step.actor {
        Actor::Engine => Ok(()),
        Actor::Missing(error) => Err(StepError::Host(error.clone())),
        Actor::Unconfigured(provider) => {
            new.id = if ctx.is_preview() { None } else { ResourceId::new(uuid::Uuid::new_v4().to_string()) };
            new.outputs = Arc::new(visible(&new.inputs));
            let reference = ProviderReference::new(new.urn.clone(), new.id.as_ref());
            let instance = Instance::configure(Arc::clone(provider), reference.clone(), &new.inputs, &ctx.jobs);
            ctx.providers.insert(reference, instance);
            Ok(())
        }
        Actor::Instance(instance) => {
            let Some(provider) = instance.ready().await? else { return Ok(()) };
            if ctx.is_preview() && !provider.capabilities().supports_preview {
                new.outputs = Arc::clone(&new.inputs);
                return Ok(());
            }
            let request = CreateRequest {
                urn: new.urn.clone(),
                inputs: Arc::clone(&new.inputs),
                timeout: new.custom_timeouts.durations().create,
                preview: ctx.is_preview(),
                views: views.views(),
            };
            let ended_deletes = ctx.state().ended_deletes();
            let reply = provider.create(request).await?;
            if reply.id.is_none() && !ctx.is_preview() {
                return Err(ProviderError::created_without_id().into());
            }
            new.id = reply.id;
            new.outputs = Arc::new(reply.outputs);
            new.refresh_before_update = reply.refresh_before_update;
            refuse_deleted(ctx, &**provider, new, ended_deletes).await
        }
    }
}

/// Fails if the resource that Create has returned was deleted meanwhile: the provider has taken a resource over that another
/// entry named, for which a Delete was sent before the engine knew of that. The next run creates it again.
async fn refuse_deleted(
    ctx: &Context,
    provider: &dyn Provider,
    new: &ResourceState,
    ended_deletes: u64,
) -> Result<(), StepError> {
    let overlapping = ctx.state().overlapping_delete(new, ended_deletes).filter(|_| !ctx.is_preview());
    let Some(mut delete) = overlapping else { return Ok(()) };
    delete.wait().await;
    let timeout = new.custom_timeouts.durations().read;
    let (urn, id) = (new.urn.clone(), new.id.clone());
    let (outputs, inputs) = (Some(Arc::clone(&new.outputs)), Some(Arc::clone(&new.inputs)));
    let request = ReadRequest { urn, id, outputs, inputs, timeout, views: Views::default() };
    // If it cannot be read, it is recorded, so that it is not forgotten.
    if provider.read(request).await.is_ok_and(|reply| reply.outputs.is_none()) {
        return Err(StepError::Failed(MessageText::new(format_args!(
            "the provider returned the existing {:?}, which was deleted at the same time as the resource of {}; run the command again \
             to create it",
            new.id_text(),
            delete.entry.urn.name()
        ))));
    }
    Ok(())
}
