//! Reads of resources that the stack does not own (docs/spec/engine-semantics.md#2.14).

use std::collections::BTreeMap;
use std::sync::Arc;

use bridge::message_text::MessageText;
use pulumi_proto::property::PropertyMap;
use pulumi_proto::resource_id::ReferenceId;
use pulumi_proto::urn::{ProviderReference, Urn};
use state::{Entry, ResourceState};

use super::default_providers::{Package, default_provider};
use super::register::wait_until_deleted;
use crate::context::Context;
use crate::decisions::aliases;
use crate::decisions::deletions::Undeletable;
use crate::decisions::imports::read_op;
use crate::deployment_state::{DeploymentState, Incomplete, Inheritance};
use crate::events::{Message, Operation, Severity, SourceRef, StepOp};
use crate::goal::{Goal, ReadGoal};
use crate::messages;
use crate::registrar::{Halted, Registered, RegistrationResult};
use crate::reporter::{ErrorReported, Failure};
use crate::secretness::GoalInputs;
use crate::step::{Actor, Step};
use crate::step_executor::StepExecutor;
use crate::step_generator::{refuse_cycle, refuse_skipped_dependencies, refuse_unregistered_references};

/// Reads a resource and records it as external.
///
/// # Errors
/// [`Halted`] if the read fails, or the run is halted.
pub(crate) async fn read(ctx: &Arc<Context>, goal: ReadGoal) -> Result<Registered, Halted> {
    ctx.check_running()?;
    ctx.add_secrets(&goal.properties);
    let (stack, project) = (&ctx.request.stack, &ctx.request.project);
    let urn = Urn::new(stack, project, goal.parent.as_ref(), goal.type_token.as_str(), &goal.name);
    let references = goal.parent.iter().chain(&goal.dependencies);
    let provider = goal.provider.iter().map(|provider| &provider.urn);
    refuse_unregistered_references(ctx, &urn, references.chain(provider), goal.source)?;
    let reference = match &goal.provider {
        Some(reference) => reference.clone(),
        None => {
            let (version, download_url) = (goal.version.as_deref(), goal.plugin_download_url.as_deref());
            let package = Package::of(&goal.type_token, version, download_url, goal.subpackage.as_ref());
            default_provider(ctx, &urn, package, goal.source).await?
        }
    };
    let _slot = ctx.slot().await;
    ctx.check_running()?;
    let deciding = ctx.deciding.read().await;
    let instance = ctx.require_instance(&reference, &urn, goal.source).await?;
    let old = {
        let mut state = ctx.state();
        let registered = state.register(&urn, inheritance(&reference));
        state.decide(&urn);
        registered.map(|()| find_old(&mut state, &urn, &goal))
    };
    let Ok(old) = old else {
        let text = MessageText::new(format_args!("{urn} is registered twice"));
        return Err(ctx.report_fatal(&urn, goal.source, Message::new(Severity::Error, text)).into());
    };
    let (source, patience) = (goal.source, goal.patience);
    let (id, new) = new_state(goal, &urn, reference);
    let is_update = ctx.request.operation == Operation::Update;
    let incomplete = missing_dependency(&ctx.state(), &new, is_update);
    if let Some(incomplete) = incomplete {
        ctx.state().mark_incomplete(&urn, incomplete);
        ctx.shared.finish(&urn);
        return Ok(Registered::without_outputs(urn, RegistrationResult::Skipped));
    }
    if is_update {
        refuse_skipped_dependencies(ctx, &urn, new.all_dependencies(), source)?;
    }
    refuse_cycle(ctx, old.as_ref(), source, || new.clone())?;
    let op = read_op(old.as_ref().map(|(_, old)| &**old), &id);
    if let (StepOp::ReadReplacement, Some((_, old))) = (op, &old) {
        refuse_protected(ctx, old, source)?;
    }
    let mut step = Step::new(op, urn.clone());
    step.old = old;
    step.goal_inputs = GoalInputs::new(Arc::clone(&new.inputs));
    step.new = Some(Arc::new(new));
    step.actor = Actor::Instance(instance);
    step.source = source;
    step.patience = patience;
    let mut steps = vec![step];
    if op == StepOp::ReadReplacement {
        ctx.state().mark_for_replacement(&urn);
        steps.push(Step::new(StepOp::Replace, urn.clone()));
    }
    drop(deciding);
    // The replacement of another resource may be about to delete the one that is read.
    if op == StepOp::Read && wait_until_deleted(ctx, &urn).await.is_err() {
        return failed_read(ctx, urn, ctx.halted());
    }
    if let Some(read) = steps.first() {
        ctx.approve_step(&read.info(read.new.clone())).await?;
    }
    let mut found = None;
    for step in steps {
        match StepExecutor::new(ctx).execute(step).await {
            Ok(Some(entry)) => found = Some(entry),
            Ok(None) => {}
            Err(error) => return failed_read(ctx, urn, error.into()),
        }
    }
    let (entry, resource) = found.ok_or_else(|| ctx.halted())?;
    ctx.state().store_registered(&urn, (entry, Arc::clone(&resource)));
    Ok(Registered::as_recorded(urn, &resource))
}

/// Returns the reply to a read that failed: the error ends the run, unless it continues on errors.
fn failed_read(ctx: &Context, urn: Urn, error: Halted) -> Result<Registered, Halted> {
    if ctx.request.options.continue_on_error {
        Ok(Registered::without_outputs(urn, RegistrationResult::Failed))
    } else {
        Err(error)
    }
}

/// Refuses to replace a protected resource by a read of another one: the old resource would be deleted. A read has no
/// option `protect`, so the recorded one counts. A preview reports the error and goes on.
///
/// # Errors
/// [`ErrorReported`] of the protected resource; fatal.
fn refuse_protected(ctx: &Context, old: &ResourceState, source: Option<SourceRef>) -> Result<(), ErrorReported> {
    if !old.protect || old.pending_replacement {
        return Ok(());
    }
    let mut message = Message::new(Severity::Error, messages::protected_from_deletion(&old.urn));
    message.hint = Some(messages::undeletable_hint(&old.urn, Undeletable::Protected));
    if ctx.is_preview() {
        ctx.report_error(&old.urn, source, message, Failure::AtEnd);
        return Ok(());
    }
    Err(ctx.report_fatal(&old.urn, source, message))
}

/// Returns the options that children of a read resource inherit.
fn inheritance(provider: &ProviderReference) -> Inheritance {
    Inheritance {
        protect: false,
        retain_on_delete: false,
        deleted_with: None,
        provider: Some(provider.clone()),
        providers: BTreeMap::new(),
    }
}

fn new_state(goal: ReadGoal, urn: &Urn, provider: ProviderReference) -> (ReferenceId, ResourceState) {
    let mut new = ResourceState::new(urn.clone(), true);
    new.external = true;
    new.id = goal.id.known().cloned();
    new.inputs = Arc::new(goal.properties);
    new.parent = goal.parent;
    new.dependencies = goal.dependencies;
    new.provider = Some(provider);
    new.additional_secret_outputs = goal.additional_secret_outputs;
    (goal.id, new)
}

/// Returns the reason that a resource is not read: it depends on a failed resource or, unless the run is an update, on
/// a skipped one.
fn missing_dependency(state: &DeploymentState, new: &ResourceState, is_update: bool) -> Option<Incomplete> {
    if new.all_dependencies().any(|urn| state.has_failed(urn)) {
        Some(Incomplete::Failed)
    } else if !is_update && new.all_dependencies().any(|urn| state.is_skipped(urn)) {
        Some(Incomplete::Skipped)
    } else {
        None
    }
}

/// Finds the recorded entry of a read, under its URN or under one that it had because of the former URN of its parent.
/// Takes the latter over.
fn find_old(state: &mut DeploymentState, urn: &Urn, goal: &ReadGoal) -> Option<Entry> {
    let goal = Goal {
        parent: goal.parent.clone(),
        ..Goal::custom(goal.type_token.clone(), goal.name.clone(), PropertyMap::new())
    };
    let candidates = aliases::candidate_urns(urn, &goal, |urn| state.recorded_urn(urn));
    let (old, recorded) = candidates.into_iter().find_map(|candidate| Some((state.old(&candidate)?, candidate)))?;
    if recorded != *urn {
        if state.is_registered(&recorded) {
            return None;
        }
        state.take_over(recorded, urn.clone());
    }
    Some(old)
}
