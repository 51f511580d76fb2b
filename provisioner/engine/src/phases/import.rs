//! The import operation: takes existing resources into the state, without a program
//! (docs/spec/engine-semantics.md#5.6).
//!
//! All live entries are confirmed as they are, and a missing stack and missing providers are created. Then each
//! resource is read and recorded as it was read. Failures of its Check are only reported.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bridge::provider::{CheckRequest, Views};
use futures_util::future::join_all;
use pulumi_proto::property::PropertyMap;
use pulumi_proto::urn::{ProviderReference, ROOT_STACK_TYPE, TypeToken, Urn};
use state::{Entry, ResourceState};

use super::default_providers::{Package, default_name, default_provider};
use super::phase_end::PhaseEnd;
use super::program::register;
use crate::context::{Context, ProviderKey, host_error};
use crate::decisions::aliases;
use crate::decisions::imports::id_for_import;
use crate::deployment_state::Inheritance;
use crate::events::{Message, Severity, SourceRef, StepOp};
use crate::goal::{Goal, ImportGoal, ImportProvider};
use crate::messages;
use crate::providers::Instance;
use crate::registrar::{Halted, Registered};
use crate::reporter::{ErrorReported, Failure};
use crate::secretness::GoalInputs;
use crate::step::{Actor, Step};
use crate::step_executor::{Reading, StepExecutor, call_read};

/// Runs the import operation.
pub(crate) async fn import_all(ctx: &Arc<Context>) -> PhaseEnd {
    if confirm_recorded(ctx).await.is_err() || register_root(ctx).await.is_err() {
        // No resource was imported.
        return PhaseEnd::of(ctx, true);
    }
    // Parents come first: the qualified type of a child contains that of its parent.
    let mut levels: BTreeMap<usize, Vec<&ImportGoal>> = BTreeMap::new();
    let mut listed: BTreeSet<Urn> = BTreeSet::new();
    for goal in &ctx.request.options.imports {
        let urn = urn_of(ctx, goal);
        let depth = urn.qualified_type().split('$').count();
        if listed.insert(urn) {
            levels.entry(depth).or_default().push(goal);
        } else {
            refuse_import(ctx, goal, "it is listed twice, and can be imported only once");
        }
    }
    for level in levels.into_values() {
        let imports = level.into_iter().map(|goal| async {
            let _slot = ctx.slot().await;
            if !ctx.is_halted() {
                // An error has been reported.
                import_one(ctx, goal).await.ok();
            }
        });
        join_all(imports).await;
    }
    // A stop may have left imports undone.
    PhaseEnd::of(ctx, true)
}

pub(crate) fn urn_of(ctx: &Context, goal: &ImportGoal) -> Urn {
    let (stack, project) = (&ctx.request.stack, &ctx.request.project);
    let parent = goal.parent.clone().unwrap_or_else(|| Urn::root_stack(stack, project));
    Urn::new(stack, project, Some(&parent), goal.type_token.as_str(), &goal.name)
}

/// Confirms the recorded entries as they are, except pending deletes and views, and starts the recorded providers.
///
/// # Errors
/// [`Halted`] if the run ended early.
async fn confirm_recorded(ctx: &Arc<Context>) -> Result<(), Halted> {
    let loaded: Vec<Entry> = ctx.state().loaded_entries().to_vec();
    for entry in loaded.into_iter().filter(|(_, state)| !state.delete && state.view_of.is_none()) {
        ctx.check_running()?;
        let urn = entry.1.urn.clone();
        if let Some(reference) = entry.1.as_provider_reference() {
            // A provider that cannot be started fails only the resources that are imported with it.
            ctx.load_instance(&reference).await.ok();
        }
        let inheritance = Inheritance {
            protect: entry.1.protect,
            retain_on_delete: entry.1.retain_on_delete,
            deleted_with: entry.1.deleted_with.clone(),
            provider: entry.1.provider.clone(),
            providers: BTreeMap::new(),
        };
        // Each URN has one live entry, so none is registered twice.
        ctx.state().register(&urn, inheritance).ok();
        StepExecutor::new(ctx).execute(Step::carry_over(entry, urn)).await?;
    }
    Ok(())
}

async fn register_root(ctx: &Arc<Context>) -> Result<(), Halted> {
    let root = Urn::root_stack(&ctx.request.stack, &ctx.request.project);
    if ctx.state().old(&root).is_some() {
        return Ok(());
    }
    let goal = Goal::component(TypeToken::new(ROOT_STACK_TYPE), root.name(), PropertyMap::new());
    Box::pin(register(ctx, goal)).await.map(drop)
}

async fn import_one(ctx: &Arc<Context>, goal: &ImportGoal) -> Result<(), Halted> {
    let urn = urn_of(ctx, goal);
    let root = Urn::root_stack(&ctx.request.stack, &ctx.request.project);
    let parent = goal.parent.clone().unwrap_or(root);
    let (has_parent, old) = {
        let state = ctx.state();
        (state.old(&parent).is_some() || state.registered(&parent).is_some(), state.old(&urn))
    };
    if !has_parent {
        return Err(refuse_import(ctx, goal, &format!("its parent {parent} is not recorded")).into());
    }
    if let Some(name) = recorded_under_alias(ctx, goal, &urn, &parent) {
        let text = format!("it is recorded under its former name {name}: provision to rename it");
        return Err(refuse_import(ctx, goal, &text).into());
    }
    // The resource of a pending replacement is deleted, so the imported one takes its place, also with the same id.
    let recorded = old.as_ref().map(|(_, old)| old).filter(|old| !old.pending_replacement).cloned();
    if recorded.as_ref().is_some_and(|old| id_for_import(old) == Some(&goal.id)) {
        return Ok(());
    }
    let reference = import_provider(ctx, goal, &urn).await?;
    let instance = ctx
        .load_instance(&reference)
        .await
        .map_err(|error| ctx.report_error(&urn, goal.source, host_error(error), Failure::AtEnd))?;
    let mut new = ResourceState::new(urn.clone(), true);
    new.id = Some(goal.id.clone());
    new.custom_timeouts = old.as_ref().map(|(_, old)| old.custom_timeouts).unwrap_or_default();
    new.parent = Some(parent);
    new.provider = Some(reference);
    new.protect = goal.protect;
    new.additional_secret_outputs.clone_from(&goal.additional_secret_outputs);
    if let Some((_, old)) = &old
        && reads_recorded(ctx, &instance, &new, old).await
    {
        return Ok(());
    }
    let mut step = Step::new(StepOp::Import, urn.clone());
    // If the URN is recorded with another id, the step fails, and its events show the recorded state.
    step.new = Some(recorded.unwrap_or_else(|| Arc::new(new)));
    step.old = old;
    step.actor = Actor::Instance(Arc::clone(&instance));
    step.source = goal.source;
    step.goal_inputs = GoalInputs::new(Arc::clone(&goal.inputs));
    ctx.state().decide(&urn);
    let (entry, resource) = StepExecutor::new(ctx).execute(step).await?.ok_or_else(|| ctx.halted())?;
    ctx.state().store_registered(&urn, (entry, Arc::clone(&resource)));
    check_imported(ctx, &instance, &resource, goal.source).await;
    Ok(())
}

/// Returns whether the id of an import is another spelling of the id of the recorded entry: the provider reads the same
/// resource by both. If it cannot be read, the import fails as one of another resource.
async fn reads_recorded(ctx: &Context, instance: &Instance, planned: &ResourceState, recorded: &ResourceState) -> bool {
    let timeout = planned.custom_timeouts.durations().read;
    let reading = call_read(instance, &planned.urn, planned.id.as_ref(), None, None, timeout, Views::default()).await;
    let Ok(Some(Reading { reply, .. })) = reading else { return false };
    let exists = reply.outputs.is_some();
    let read = ResourceState { id: reply.id.or_else(|| planned.id.clone()), ..planned.clone() };
    // An alias may have found the entry under another type.
    let renamed = ResourceState { type_token: read.type_token.clone(), ..recorded.clone() };
    exists && !recorded.external && ctx.state().is_same_resource(&renamed, &read)
}

/// Returns the recorded name of the resource, if an alias of the goal is recorded and is not the URN of the goal.
fn recorded_under_alias(ctx: &Context, goal: &ImportGoal, urn: &Urn, parent: &Urn) -> Option<String> {
    let registration = Goal {
        parent: Some(parent.clone()),
        aliases: goal.aliases.clone(),
        ..Goal::custom(goal.type_token.clone(), goal.name.as_str(), PropertyMap::new())
    };
    let state = ctx.state();
    let candidates = aliases::candidate_urns(urn, &registration, |_| None);
    candidates.into_iter().find(|known| known != urn && state.old(known).is_some()).map(|old| old.name().to_owned())
}

async fn import_provider(ctx: &Arc<Context>, goal: &ImportGoal, urn: &Urn) -> Result<ProviderReference, Halted> {
    let (stack, project) = (&ctx.request.stack, &ctx.request.project);
    let recorded = |urn: &Urn| ctx.state().old(urn).and_then(|(_, state)| state.as_provider_reference());
    match &goal.provider {
        // The recorded provider may have been replaced since.
        ImportProvider::Recorded(reference) => Ok(recorded(&reference.urn).unwrap_or_else(|| reference.clone())),
        ImportProvider::Default(version) => {
            let version = version.as_deref();
            let package = goal.type_token.package();
            let type_token = TypeToken::provider(package);
            let known = Urn::new(stack, project, None, type_token.as_str(), &default_name(version, None));
            match recorded(&known) {
                Some(reference) => Ok(reference),
                None => {
                    let package = Package { name: package, version, download_url: None, subpackage: None };
                    default_provider(ctx, urn, package, goal.source).await
                }
            }
        }
        ImportProvider::Declared(provider) => {
            let type_token = provider.type_token.as_str();
            let known = Urn::new(stack, project, provider.parent.as_ref(), type_token, &provider.name);
            match recorded(&known) {
                Some(reference) => Ok(reference),
                None => registered_once(ctx, provider, known).await,
            }
        }
    }
}

/// Returns a declared provider. The first resource that needs it registers it.
async fn registered_once(ctx: &Arc<Context>, goal: &Goal, urn: Urn) -> Result<ProviderReference, Halted> {
    let cell = ctx.once_registered(ProviderKey::Declared(urn));
    let registered = cell.get_or_init(|| Box::pin(register(ctx, goal.clone()))).await;
    registered.as_ref().map(Registered::as_provider_reference).map_err(|halted| *halted)
}

/// Reports whether Check accepts the inputs that were read. The resource is recorded in any case.
async fn check_imported(ctx: &Context, instance: &Instance, state: &ResourceState, source: Option<SourceRef>) {
    let check = async {
        let Some(provider) = instance.ready().await? else { return Ok(Vec::new()) };
        let request = CheckRequest {
            urn: state.urn.clone(),
            olds: Arc::clone(&state.inputs),
            news: Arc::clone(&state.inputs),
            random_seed: ctx.request.guard.seed(&state.urn),
            autonaming: None,
            preview: ctx.is_preview(),
        };
        let reply = provider.check(request).await;
        reply.inspect(|reply| ctx.add_secrets(&reply.inputs)).map(|reply| reply.failures)
    };
    match check.await {
        Ok(failures) => {
            for failure in &failures {
                let message = messages::rejected_input(&state.urn, failure);
                ctx.emit_message(&state.urn, source, Message { severity: Severity::Warning, ..message });
            }
        }
        Err(error) => {
            let message = messages::error_message(&error);
            ctx.report_error(&state.urn, source, message, Failure::AtEnd);
        }
    }
}

fn refuse_import(ctx: &Context, goal: &ImportGoal, text: &str) -> ErrorReported {
    ctx.report_error(&urn_of(ctx, goal), goal.source, Message::new(Severity::Error, text), Failure::AtEnd)
}
