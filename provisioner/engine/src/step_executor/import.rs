//! Import: reads an existing resource and records it.

use std::sync::Arc;

use jiff::Timestamp;
use state::{OperationKind, ResourceState};

use super::failed_call::{self, BegunOperation, StepResult, new_entry};
use super::provider_read::{Reading, read};
use super::view_log::ViewLog;
use crate::context::Context;
use crate::decisions::imports::imported_state;
use crate::events::StepOp;
use crate::messages;
use crate::secretness::mark_secrets;
use crate::step::{Actor, Step, StepError};

/// Reads the resource that a step imports.
pub(super) async fn read_planned(
    step: &Step,
    planned: &ResourceState,
    views: &Arc<ViewLog>,
) -> Result<ResourceState, StepError> {
    let reading = match &step.actor {
        Actor::Instance(instance) => {
            let timeout = planned.custom_timeouts.durations().read;
            read(instance, &planned.urn, planned.id.as_ref(), None, None, timeout, views.views()).await?
        }
        Actor::Missing(error) => return Err(StepError::Host(error.clone())),
        Actor::Engine | Actor::Unconfigured(_) => None,
    };
    let Some(Reading { reply, failure }) = reading else { return Ok(planned.clone()) };
    let init_errors = failure.map(|(_, failure)| failure.reasons).unwrap_or_default();
    imported_state(planned, reply, init_errors)
        .map_err(|reason| StepError::Failed(messages::import_failure(planned, reason)))
}

/// Imports the resource. `reading` is the resource if it has been read already.
pub(super) async fn execute(
    ctx: &Context,
    step: &Step,
    views: &Arc<ViewLog>,
    reading: Option<Result<ResourceState, StepError>>,
) -> Result<StepResult, StepError> {
    let planned = step.new.as_ref().ok_or_else(|| StepError::Failed("nothing to import".into()))?;
    let recorded = step.old.as_ref().filter(|(_, old)| step.op == StepOp::Import && !old.pending_replacement);
    if let Some((_, old)) = recorded {
        return Err(StepError::Failed(messages::already_recorded(&old.urn, old.id.as_ref())));
    }
    let old = step.old.as_ref().map(|(entry, _)| *entry);
    let reserve = |resource: &ResourceState| {
        let reserved = ctx.state().reserve_import(resource, old);
        reserved.map_err(|owner| StepError::Failed(messages::owned_by_other(resource.id.as_ref(), &owner)))
    };
    reserve(planned)?;
    let operation = BegunOperation::begin(ctx, OperationKind::Importing, planned).await?;
    let reading = match reading {
        Some(reading) => reading,
        None => read_planned(step, planned, views).await,
    };
    let found = reading.and_then(|new| reserve(&new).map(|()| new));
    let mut new = match found {
        Ok(new) => new,
        Err(error) => {
            failed_call::record(ctx, Some(operation), &error, |_| Vec::new()).await?;
            return Err(error);
        }
    };
    new.created = Some(Timestamp::now());
    new.modified = new.created;
    mark_secrets(&mut new, &step.goal_inputs, step.old_state());
    let completed = step.old.as_ref().map(|(old, _)| *old).filter(|_| step.op == StepOp::Import);
    let entry = match completed {
        // The entries that refer to a pending replacement come after it, so the imported entry keeps its place.
        Some(old) => (old, Arc::new(new)),
        None => new_entry(ctx, new),
    };
    // The replaced entry becomes a pending delete under the URN of the imported one, even if an alias found it.
    ctx.records
        .end(Some(operation.id()), |state| {
            let effects = match &step.old {
                Some((old, _)) if completed.is_some() => state.rewrite_effects(*old, |old| (*entry.1).clone_into(old)),
                None => state.add_effects(&entry),
                Some((old, _)) => state.replace_effects(*old, &entry, Some(&entry.1.urn)),
            };
            views.complete(state, effects)
        })
        .await?;
    Ok(StepResult { new: Some(entry), partial: None })
}
