//! Registration of a resource, from its goal to the reply (docs/spec/engine-semantics.md#2.1 to #2.11).

use std::sync::Arc;

use bridge::message_text::MessageText;
use bridge::shell::option;
use hashbrown::HashSet;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::Urn;
use state::{Entry, ResourceState};
use tracing::{Instrument as _, debug_span};

use super::phase_end::failed;
use super::recorded_provider::recorded_provider;
use super::refresh_registered::{refresh_registered, should_read_registrations};
use crate::context::Context;
use crate::decisions::decision::{Plan, ReplaceOrder, Replacement};
use crate::decisions::imports::should_import;
use crate::deployment_state::{DeletionWait, EntryStays};
use crate::events::{Event, StepOp};
use crate::goal::{Goal, INTERNAL_KEY, ResourceKind, VERSION_KEY};
use crate::messages;
use crate::plan_guard::DecidedRegistration;
use crate::providers::internal_inputs;
use crate::registrar::{Halted, Registered, RegistrationResult};
use crate::secretness::{mark, with_secrets_of};
use crate::step::Step;
use crate::step_executor::{Imported, StepExecutor};
use crate::step_generator::{
    EarlyEnd, GoalOrigin, Registration, StepGenerator, inherit, refuse_cycle, refuse_skipped_dependencies,
    refuse_unregistered_references, source_of_component, without_shared_resource,
};

/// Returns the URN of a goal, and completes the goal with inherited options.
///
/// # Errors
/// [`Halted`] if a resource that the goal refers to is not registered, or nothing new may start.
pub(super) fn prepare(ctx: &Context, goal: &mut Goal) -> Result<Urn, Halted> {
    ctx.check_running()?;
    let (stack, project) = (&ctx.request.stack, &ctx.request.project);
    let urn = Urn::new(stack, project, goal.parent.as_ref(), goal.type_token.as_str(), &goal.name);
    if goal.source.is_none() {
        goal.source = source_of_component(ctx, &urn, goal.parent.as_ref());
    }
    inherit(ctx, &urn, goal)?;
    if let Some(secrets) = ctx.state().constructed_secrets(&urn) {
        mark(Arc::make_mut(&mut goal.inputs), secrets);
    }
    let provider = goal.provider.iter().filter(|_| goal.custom).map(|provider| &provider.urn);
    refuse_unregistered_references(ctx, &urn, goal.all_dependencies().chain(provider), goal.source)?;
    if goal.remote && goal.provider.is_none() {
        goal.provider = goal.providers.get(goal.type_token.package()).cloned();
    }
    if goal.kind() == ResourceKind::Provider {
        complete_provider_inputs(goal);
    }
    Ok(urn)
}

/// Registers a goal that needs no default provider: a provider resource, a component, or a resource with a provider.
/// The caller holds its slot, and boxes the future: tens of thousands may wait for a slot, so each must be small.
///
/// # Errors
/// [`Halted`] if the registration fails, or the run is halted.
pub(super) async fn register_prepared(
    ctx: &Arc<Context>,
    goal: Goal,
    urn: Urn,
    origin: GoalOrigin,
) -> Result<Registered, Halted> {
    decide_and_execute(ctx, goal, urn, origin).await.or_else(EarlyEnd::into_reply)
}

/// Finds the recorded entry of a goal, refreshes or imports it if necessary, decides, and carries the steps out.
///
/// The order is that of Pulumi's engine, because each part uses the result of the one before:
/// - An alias or the URN finds the recorded entry (docs/spec/engine-semantics.md#2.3). All below compares the goal with it.
/// - A resource is read before it is compared, and with the provider that has served it until now: the provider of the program
///   may belong to another account, where the object is not found.
/// - An import takes the place of the recorded entry before the decision, so that the goal is compared with what exists.
/// - Secrets of the goal mark the recorded values before the plan is made. Later steps may keep the entry as it is, and a plain
///   copy of a value that has become secret would stay.
/// - A replacement that deletes first decides about other resources, its dependents. Other registrations decide at the same time,
///   so this one waits for them and then decides once more, alone. All others share the lock, and never wait for each other.
/// - The steps are carried out without the lock: only a decision must see all decisions before it.
async fn decide_and_execute(
    ctx: &Arc<Context>,
    goal: Goal,
    urn: Urn,
    origin: GoalOrigin,
) -> Result<Registered, EarlyEnd> {
    let deciding = ctx.deciding.read().instrument(debug_span!("wait", subject = "decision")).await;
    let undecided = Undecided::new(ctx, &urn);
    let generator = StepGenerator::new(ctx);
    let mut registration = generator.identify(goal, urn, origin).await?;
    let reads = registration.should_refresh && should_read_registrations(ctx);
    let recorded = recorded_provider(ctx, &mut registration, reads).await?;
    if reads {
        refresh_registered(ctx, &mut registration, recorded.as_ref()).await?;
    }
    let import_id = registration.goal.import_id.as_ref();
    if registration.in_scope
        && should_import(ctx.request.operation, registration.kind, import_id, registration.old_state())
    {
        import(ctx, &mut registration).await?;
    }
    mark_recorded(ctx, &registration).await;
    report_unreplaced(ctx, &registration);
    let plan = generator.plan(&mut registration).await?;
    let steps = if let Plan::Replace(Replacement { order: ReplaceOrder::DeleteBeforeReplace, .. }) = plan {
        // The walk over the dependents must see only decided registrations, so this one waits until no other
        // registration is being decided. The others may have changed the deployment state, so the plan is decided
        // again.
        drop(deciding);
        let _alone = ctx.deciding.write().instrument(debug_span!("wait", subject = "other decisions")).await;
        let plan = generator.plan(&mut registration).await?;
        generator.steps(&registration, plan).await?
    } else {
        let steps = generator.steps(&registration, plan).await?;
        drop(deciding);
        steps
    };
    drop(undecided);
    approve(ctx, &registration, &steps).await?;
    execute_steps(ctx, registration, steps).await
}

/// Asks the guard of the run whether the steps of a registration may begin.
///
/// # Errors
/// [`EarlyEnd`] if the guard refuses them, which is a fatal error.
async fn approve(ctx: &Context, registration: &Registration, steps: &[Step]) -> Result<(), EarlyEnd> {
    let guard = &ctx.request.guard;
    if !guard.approves_steps() {
        return Ok(());
    }
    let steps = steps.iter().map(|step| step.info(step.new.clone())).collect();
    let decided = DecidedRegistration { urn: &registration.urn, goal: &registration.goal, steps };
    let approved = guard.approve_registration(&decided).await;
    approved.map_err(|message| {
        let error = ctx.report_fatal(&registration.urn, registration.goal.source, *message);
        ctx.shared.finish(&registration.urn);
        error.into()
    })
}

/// Warns of a resource that `--replace` names and that is out of scope: it is not replaced.
fn report_unreplaced(ctx: &Context, registration: &Registration) {
    let urn = &registration.urn;
    let is_named = ctx.request.options.replace.iter().any(|pattern| pattern.matches(urn));
    if registration.in_scope || !is_named || ctx.state().planned_dependent_replacement(urn).is_some() {
        return;
    }
    let (scope, name) = (&ctx.request.options.scope, urn.name());
    let (reason, hint) = if scope.has_targets() {
        (
            "it is not among the targets",
            MessageText::new(format_args!("add `{}` to replace it", option("--target", name))),
        )
    } else if scope.is_excluded(urn) {
        ("it is excluded", MessageText::new(format_args!("drop the `--exclude` that matches {name} to replace it")))
    } else {
        (
            "it depends on an excluded resource",
            MessageText::new(format_args!("drop `--exclude-dependents` to replace {name}")),
        )
    };
    ctx.emit_message(urn, registration.goal.source, messages::unreplaced(reason, Some(hint)));
}

/// Marks the values of the recorded entry that are secret in the goal: whatever its steps are, no plain copy of a value
/// stays that has become secret. As in Pulumi, the provider receives the entry as it was recorded.
async fn mark_recorded(ctx: &Context, registration: &Registration) {
    let Some((id, old)) = registration.old.as_ref().filter(|_| registration.in_scope) else { return };
    let marked = with_secrets_of(&registration.goal_inputs, old);
    if Arc::ptr_eq(&marked, old) {
        return;
    }
    let properties = || (Arc::clone(&marked.inputs), Arc::clone(&marked.outputs));
    ctx.records.defer(|state| state.rewrite_effects(*id, |entry| (entry.inputs, entry.outputs) = properties())).await;
}

/// Registration that is being decided, for the display. It is decided, or has failed, once this is dropped.
struct Undecided<'a> {
    ctx: &'a Context,
    urn: Urn,
}

impl<'a> Undecided<'a> {
    fn new(ctx: &'a Context, urn: &Urn) -> Self {
        ctx.emit(Event::RegistrationStarted(urn.clone()));
        Self { ctx, urn: urn.clone() }
    }
}

impl Drop for Undecided<'_> {
    fn drop(&mut self) {
        self.ctx.emit(Event::RegistrationDecided(self.urn.clone()));
    }
}

/// Reads the resource that is to be imported, and records it; the registration goes on as with any recorded resource.
///
/// # Errors
/// [`EarlyEnd`] if the import fails.
async fn import(ctx: &Arc<Context>, registration: &mut Registration) -> Result<(), EarlyEnd> {
    // If the replacement of another resource deletes the entry, the import waits for the deletion, because the imported
    // entry takes the place of the deleted one.
    if wait_until_deleted(ctx, &registration.urn).await.is_err() {
        return Err(failed(ctx, &registration.urn));
    }
    let goal = &registration.goal;
    let mut new = registration.new_state(Arc::default());
    if !ctx.is_preview() {
        refuse_skipped_dependencies(ctx, &registration.urn, new.all_dependencies(), goal.source)?;
    }
    refuse_cycle(ctx, registration.old.as_ref(), goal.source, || new.clone())?;
    new.id.clone_from(&goal.import_id);
    let op = if registration.old.is_some() { StepOp::ImportReplacement } else { StepOp::Import };
    let mut step = registration.step(op);
    step.old.clone_from(&registration.old);
    step.new = Some(Arc::new(new));
    let replaces = step.old.is_some();
    ctx.approve_step(&step.info(step.new.clone())).await?;
    let executor = StepExecutor::new(ctx);
    let imported = if executor.can_begin(&step).await { executor.import(step).await.ok() } else { None };
    let entry = match imported {
        Some(Imported::New(entry)) => entry,
        // The steps that follow record the id of the import beside that of the entry.
        Some(Imported::Recorded) => return Ok(()),
        None => return Err(failed(ctx, &registration.urn)),
    };
    if replaces {
        ctx.state().mark_for_replacement(&registration.urn);
        // The step only marks the replacement for the display, so it cannot fail.
        executor.execute(registration.step(StepOp::Replace)).await.ok();
    }
    registration.old = entry;
    registration.imported = true;
    Ok(())
}

/// Carries the steps of a registration out, one after the other, and returns the reply.
async fn execute_steps(
    ctx: &Arc<Context>,
    registration: Registration,
    steps: Vec<Step>,
) -> Result<Registered, EarlyEnd> {
    let urn = registration.urn;
    let has_all_outputs = !ctx.is_preview() || steps.iter().all(|step| step.op == StepOp::Same);
    let mut result = None;
    if let ([], Some(old)) = (steps.as_slice(), registration.old) {
        ctx.wait_until_carried_over(&old.1.urn).await;
        result = Some(old);
    }
    if wait_until_deleted(ctx, &urn).await.is_err() {
        return Err(failed(ctx, &urn));
    }
    for step in steps {
        if ctx.is_halted() {
            ctx.shared.finish(&urn);
            return Err(ctx.halted().into());
        }
        match execute_step(ctx, step).await {
            Ok(Some(entry)) => result = Some(entry),
            Ok(None) => {}
            Err(NotExecuted) => return Err(failed(ctx, &urn)),
        }
    }
    let Some(entry) = result else {
        return Ok(Registered::without_outputs(urn, RegistrationResult::Skipped));
    };
    ctx.shared.finish(&urn);
    let resource = Arc::clone(&entry.1);
    let mut state = ctx.state();
    // The entry may stay under its recorded URN.
    state.register_recorded_urn(&urn, &resource.urn);
    let urn = resource.urn.clone();
    state.store_registered(&urn, entry);
    drop(state);
    Ok(Registered { has_all_outputs, ..Registered::as_recorded(urn, &resource) })
}

/// Error of a step that failed, or could not begin.
struct NotExecuted;

async fn execute_step(ctx: &Arc<Context>, mut step: Step) -> Result<Option<Entry>, NotExecuted> {
    wait_for_all(&step.waits_for).await.map_err(|EntryStays| NotExecuted)?;
    ctx.wait_until_finished(&step.waits_for_steps_of).await;
    if step.waits_for_steps_of.iter().any(|urn| ctx.state().has_failed(urn)) {
        return Err(NotExecuted);
    }
    let executor = StepExecutor::new(ctx);
    let deletes = matches!(step.op, StepOp::Delete | StepOp::DeleteReplaced);
    let Some(mut entry) = step.old.clone().filter(|_| deletes) else {
        return executor.execute(step).await.map_err(|_| NotExecuted);
    };
    if step.op == StepOp::DeleteReplaced && !step.delete_before_replace {
        // The entry was planned to become a pending delete, or to leave its resource alone.
        let now = ctx.state().ledger().get(entry.0).filter(|now| now.delete).cloned().ok_or(NotExecuted)?;
        let retain_on_delete = now.retain_on_delete || entry.1.retain_on_delete;
        entry.1 = Arc::new(ResourceState { retain_on_delete, ..(*now).clone() });
    }
    // A Create since the plan may have returned the id of the resource.
    (entry, step.also_deleted) = without_shared_resource(ctx, entry, &HashSet::new()).await;
    step.old = Some(entry.clone());
    ctx.shared.start_entry_deletion(&entry).await;
    let executed = if executor.can_begin(&step).await {
        executor.execute(step).await.map_err(|_| NotExecuted)
    } else {
        Err(NotExecuted)
    };
    ctx.shared.end_entry_deletion(&entry);
    executed
}

/// Waits until the entry of a resource is deleted, if the replacement of another resource deletes it.
pub(super) async fn wait_until_deleted(ctx: &Context, urn: &Urn) -> Result<(), EntryStays> {
    let deletion = ctx.state().planned_dependent_replacement(urn).map(|planned| planned.deletion.clone());
    wait_for_all(deletion.as_slice()).await
}

async fn wait_for_all(deletions: &[DeletionWait]) -> Result<(), EntryStays> {
    for deletion in deletions {
        deletion.wait().instrument(debug_span!("wait", subject = "deletion")).await?;
    }
    Ok(())
}

/// Completes the inputs of a provider resource with the version and the download URL of its package, and with what makes its
/// plugin serve the package, if that is not its own.
pub(super) fn complete_provider_inputs(goal: &mut Goal) {
    let inputs = Arc::make_mut(&mut goal.inputs);
    if let Some(subpackage) = &goal.subpackage {
        inputs.insert(VERSION_KEY.to_owned(), subpackage.version.as_str().into());
    } else if let Some(version) = &goal.version {
        inputs.entry(VERSION_KEY.to_owned()).or_insert_with(|| version.as_str().into());
    }
    if !inputs.contains_key(VERSION_KEY) && goal.plugin_download_url.is_none() {
        return;
    }
    let internal = inputs.entry(INTERNAL_KEY.to_owned()).or_insert_with(|| PropertyMap::new().into());
    if let PropertyValue::Map(internal) = internal {
        if let Some(url) = &goal.plugin_download_url {
            internal.insert("pluginDownloadURL".to_owned(), url.as_str().into());
        }
        if let Some(subpackage) = &goal.subpackage {
            internal.extend(internal_inputs(subpackage));
        }
    }
}
