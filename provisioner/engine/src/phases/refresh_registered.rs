//! Reads the recorded entry of a registration with its current provider: a refresh that runs the program
//! (`--run-program`, docs/spec/engine-semantics.md#5.2 and #5.4).

use std::collections::BTreeMap;
use std::sync::Arc;

use state::{Effect, Entry, ResourceState, StateError};

use super::phase_end::failed;
use super::reading::{EntryToRead, read_entry};
use crate::context::Context;
use crate::deployment_state::{EmptyKeys, Incomplete};
use crate::events::Operation;
use crate::goal::ResourceKind;
use crate::messages;
use crate::providers::Instance;
use crate::step_executor::ViewLog;
use crate::step_generator::{EarlyEnd, GoalOrigin, Registration};

/// Returns whether an entry is read when the program registers its resource.
pub(super) fn should_read_registrations(ctx: &Context) -> bool {
    ctx.request.has_program() && ctx.request.options.run_program && should_read_everything(ctx)
}

/// Returns whether all recorded entries in scope are read.
pub(super) fn should_read_everything(ctx: &Context) -> bool {
    ctx.request.refresh || ctx.request.operation == Operation::Refresh
}

/// Reads the recorded entry of a registration, and records the result at once; the registration goes on with it.
/// Components and provider resources are not read. `recorded` is the recorded provider if only that one can find the
/// resource.
///
/// # Errors
/// [`EarlyEnd`] if the read fails, or its result cannot be recorded.
pub(super) async fn refresh_registered(
    ctx: &Arc<Context>,
    registration: &mut Registration,
    recorded: Option<&Arc<Instance>>,
) -> Result<(), EarlyEnd> {
    let Some((id, old)) = registration.old.clone() else { return Ok(()) };
    if ctx.state().is_deleted_before_replace(id) {
        // The replacement of another resource deletes the entry, so its current state does not matter.
        return Ok(());
    }
    let is_custom = registration.kind == ResourceKind::Custom;
    let entry = EntryToRead {
        id,
        old: &old,
        urn: &registration.urn,
        instance: recorded.or(registration.instance.as_ref()),
        source: registration.goal.source,
        secret_outputs: &registration.goal.additional_secret_outputs,
        goal_inputs: &registration.goal_inputs,
        internal: registration.origin == GoalOrigin::Engine,
        // For other registrations, the steps that follow are counted instead.
        counts: ctx.request.operation == Operation::Refresh && is_custom,
    };
    let Ok(found) = read_entry(ctx, entry).await else {
        ctx.state().mark_incomplete(&registration.urn, Incomplete::Failed);
        return Err(failed(ctx, &registration.urn));
    };
    let recorded = match found.new {
        None => {
            registration.old = None;
            ctx.records
                .change(|state| {
                    let removal = state.remove_effects(id);
                    let repairs = state.repairs(&removal, |_| EmptyKeys::Kept);
                    removal.into_iter().chain(repairs).collect()
                })
                .await
        }
        Some(new) => record_reading(ctx, registration, (id, old), &new, &found.views).await,
    };
    recorded.map_err(|error| {
        let message = messages::error_message(&error);
        ctx.report_fatal(&registration.urn, registration.goal.source, message).into()
    })
}

/// Records the result of reading a registration whose resource still exists.
async fn record_reading(
    ctx: &Context,
    registration: &mut Registration,
    (id, old): Entry,
    new: &Arc<ResourceState>,
    views: &ViewLog,
) -> Result<(), StateError> {
    // A refresh has no later step that records the options of the goal, so they are recorded with the result, and the
    // entry is confirmed.
    let refreshes = ctx.request.operation == Operation::Refresh;
    let was_read = old.custom && !old.is_provider() && !old.pending_replacement;
    let ends_here = refreshes && registration.kind == ResourceKind::Custom && was_read;
    let goal = ends_here.then(|| {
        let goal = registration.new_state(Arc::default());
        let (dependencies, property_dependencies) = (Vec::new(), BTreeMap::new());
        Arc::new(ResourceState { dependencies, property_dependencies, ..goal })
    });
    let successor = ctx.state().ledger_mut().new_entry();
    let mut recorded_entry = (id, Arc::clone(&old));
    let recorded = ctx
        .records
        .change(|state| {
            // Resources that the entry refers to may have been removed or renamed since the read began.
            let now = state.ledger().get(id).unwrap_or(&old);
            let mut read = if Arc::ptr_eq(new, &old) { (**now).clone() } else { with_reading(now, new) };
            let goal = goal.map(|goal| state.with_current_urns(&goal)).filter(|goal| state.can_apply_goal(id, goal));
            let is_renamed = goal.as_ref().is_some_and(|goal| goal.urn != now.urn);
            let mut effects = if refreshes { state.confirm_effects(id) } else { Vec::new() };
            if let Some(goal) = &goal {
                read = with_goal(goal, read);
            }
            recorded_entry.1 = if read == **now { Arc::clone(now) } else { Arc::new(read) };
            if is_renamed {
                recorded_entry.0 = successor;
                effects.extend(state.update_effects(id, &recorded_entry));
            } else if recorded_entry.1 != *now {
                effects.push(Effect::Rewrite(id, Arc::clone(&recorded_entry.1)));
                // Resources that the entry refers to now may come after it.
                let moved = goal.iter().flat_map(|_| [id].into_iter().chain(state.confirmed_dependents(id)));
                effects.extend(moved.map(Effect::Keep));
            }
            let of_views = views.close_with_effects(state, &effects, is_renamed);
            effects.extend(of_views);
            effects
        })
        .await;
    registration.old = Some(recorded_entry);
    recorded
}

/// Returns an entry with the state that was read.
fn with_reading(now: &ResourceState, read: &ResourceState) -> ResourceState {
    ResourceState {
        id: read.id.clone(),
        inputs: Arc::clone(&read.inputs),
        outputs: Arc::clone(&read.outputs),
        init_errors: read.init_errors.clone(),
        refresh_before_update: read.refresh_before_update,
        modified: read.modified,
        ..now.clone()
    }
}

/// Returns the state that was read, with the options of the goal. Dependencies stay as recorded, because the inputs are
/// not those of the goal.
fn with_goal(goal: &ResourceState, read: ResourceState) -> ResourceState {
    ResourceState {
        id: read.id,
        inputs: read.inputs,
        dependencies: read.dependencies,
        property_dependencies: read.property_dependencies,
        outputs: read.outputs,
        init_errors: read.init_errors,
        refresh_before_update: read.refresh_before_update,
        created: read.created,
        modified: read.modified,
        // The entry was neither replaced nor imported.
        replacement_trigger: read.replacement_trigger,
        import_id: read.import_id,
        taint: read.taint,
        external: read.external,
        pending_replacement: read.pending_replacement,
        source_position: read.source_position,
        stack_trace: read.stack_trace,
        resource_hooks: read.resource_hooks,
        extension_ref: read.extension_ref,
        snippet_id: read.snippet_id,
        ..goal.clone()
    }
}
