//! Outputs of components and of the stack (docs/spec/engine-semantics.md#8.5).

use std::sync::Arc;

use bridge::message_text::MessageText;
use pulumi_proto::property::PropertyMap;
use pulumi_proto::urn::{ROOT_STACK_TYPE, Urn};
use state::{Entry, ResourceState};

use crate::context::Context;
use crate::events::{Event, Message, Severity};
use crate::messages;
use crate::registrar::Halted;
use crate::reporter::{ErrorReported, Failure};
use crate::secretness::{GoalInputs, mark_secrets};

/// Records the outputs of a registered component. Outputs of the stack are held back until the end of the run.
///
/// # Errors
/// [`Halted`] if the component was not registered, or the outputs cannot be recorded.
pub(crate) async fn register_outputs(ctx: &Context, urn: &Urn, outputs: PropertyMap) -> Result<(), Halted> {
    let (registered, is_incomplete) = {
        let state = ctx.state();
        (state.registered(urn).cloned(), state.has_failed(urn) || state.is_skipped(urn))
    };
    if registered.is_none() && is_incomplete {
        return Ok(());
    }
    let Some(entry) = registered else {
        let text = MessageText::new(format_args!("cannot register outputs of {urn}: the resource was not registered"));
        return Err(ctx.report_fatal(urn, None, Message::new(Severity::Error, text)).into());
    };
    if entry.1.type_token.as_str() == ROOT_STACK_TYPE {
        ctx.state().hold_stack_outputs(urn.clone(), outputs);
        return Ok(());
    }
    Ok(record(ctx, urn, entry, outputs).await?)
}

/// Records the outputs of the stack at the end of a run. After a failure, recorded outputs without a new value stay, so
/// that none is lost.
pub(crate) async fn record_stack_outputs(ctx: &Context) {
    let held_back = ctx.state().take_stack_outputs();
    let Some((urn, mut outputs)) = held_back else { return };
    let registered = ctx.state().registered(&urn).cloned();
    let Some(entry) = registered else { return };
    if ctx.reporter.has_failed(Failure::AtEnd) {
        for (key, value) in &*entry.1.outputs {
            outputs.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    // The error has been reported.
    record(ctx, &urn, entry, outputs).await.ok();
}

async fn record(ctx: &Context, urn: &Urn, (id, old): Entry, outputs: PropertyMap) -> Result<(), ErrorReported> {
    let mut new = ResourceState { outputs: Arc::new(outputs), ..(*old).clone() };
    // The program itself decides which outputs of the stack are secret.
    if old.type_token.as_str() != ROOT_STACK_TYPE {
        mark_secrets(&mut new, &GoalInputs::default(), Some(&old));
    }
    let new = Arc::new(new);
    let outputs = || Arc::clone(&new.outputs);
    if new.outputs != old.outputs
        && let Err(error) =
            ctx.records.change(|state| state.rewrite_effects(id, |resource| resource.outputs = outputs())).await
    {
        return Err(ctx.report_fatal(urn, None, messages::error_message(&error)));
    }
    ctx.state().store_registered(urn, (id, Arc::clone(&new)));
    ctx.emit(Event::OutputsRegistered(new));
    Ok(())
}
