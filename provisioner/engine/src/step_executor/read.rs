//! Read: a resource that the stack does not own.

use std::sync::Arc;
use std::time::Duration;

use bridge::provider::ProviderError;
use jiff::Timestamp;
use state::{OperationKind, ResourceState};
use tokio::time::Instant;

use super::failed_call::{StepResult, new_entry};
use super::provider_read::{Reading, read};
use super::view_log::ViewLog;
use crate::context::Context;
use crate::events::StepOp;
use crate::messages;
use crate::providers::Instance;
use crate::secretness::mark_secrets;
use crate::step::{Actor, Step, StepError};

/// Pause between two reads of a resource that does not exist yet: a provider reports no creation by others.
const PAUSE: Duration = Duration::from_secs(1);

/// Reads a resource, again and again while it does not exist and the step has patience.
async fn read_patiently(
    ctx: &Context,
    step: &Step,
    instance: &Instance,
    new: &ResourceState,
    views: &Arc<ViewLog>,
) -> Result<Option<Reading>, ProviderError> {
    let patience = if ctx.is_preview() { Duration::ZERO } else { step.patience };
    let end = Instant::now() + patience;
    loop {
        let known = Some(Arc::clone(&new.inputs));
        let reading = read(instance, &new.urn, new.id.as_ref(), known.clone(), known, None, views.views()).await?;
        let is_missing = reading.as_ref().is_some_and(|reading| reading.reply.outputs.is_none());
        if !is_missing || Instant::now() >= end || ctx.signals.stop.is_cancelled() {
            return Ok(reading);
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = ctx.signals.stop.cancelled() => {}
        }
    }
}

pub(super) async fn execute(ctx: &Context, step: &Step, views: &Arc<ViewLog>) -> Result<StepResult, StepError> {
    let planned = step.new.as_ref().ok_or_else(|| StepError::Failed("nothing to read".into()))?;
    let mut new = (**planned).clone();
    let mut partial = None;
    let (operation, receipt) = ctx.records.begin(OperationKind::Reading, planned).await?;
    ctx.records.confirm_begin(operation, receipt).await?;
    if let Actor::Instance(instance) = &step.actor
        && new.id.is_some()
    {
        match read_patiently(ctx, step, instance, &new, views).await {
            Ok(None) => {}
            Ok(Some(Reading { reply, failure })) => {
                let Some(outputs) = reply.outputs else {
                    ctx.records.end_without_effect(Some(operation)).await?;
                    return Err(StepError::Failed(messages::does_not_exist(&new.urn, new.id.as_ref())));
                };
                new.id = reply.id.or(new.id);
                new.outputs = Arc::new(outputs);
                if let Some((error, failure)) = failure {
                    new.init_errors = failure.reasons;
                    partial = Some(error);
                }
            }
            Err(error) => {
                ctx.records.end_without_effect(Some(operation)).await?;
                return Err(error.into());
            }
        }
    }
    mark_secrets(&mut new, &step.goal_inputs, step.old_state());
    // The stack may record the resource under another name, too.
    let entries: Vec<_> = ctx.state().entries_of_resource(&new).collect();
    for (_, entry) in entries {
        mark_secrets(&mut new, &step.goal_inputs, Some(&entry));
    }
    if let Some((_, old)) = &step.old {
        new.created = old.created;
        new.modified = if old.outputs == new.outputs { old.modified } else { Some(Timestamp::now()) };
    }
    let entry = new_entry(ctx, new);
    if let Some((_, old)) = &step.old
        && step.op == StepOp::Read
        && old.outputs != entry.1.outputs
    {
        ctx.state().count(StepOp::Read);
    }
    ctx.records
        .end(Some(operation), |state| {
            let effects = match &step.old {
                None => state.add_effects(&entry),
                Some((old, _)) if step.op == StepOp::ReadReplacement => state.replace_effects(*old, &entry, None),
                Some((old, _)) => state.update_effects(*old, &entry),
            };
            views.complete(state, effects)
        })
        .await?;
    Ok(StepResult { new: Some(entry), partial })
}
