//! Checks of references that a resource cannot have in this run.

use hashbrown::HashSet;
use pulumi_proto::urn::Urn;
use state::{Entry, ResourceState};
use std::sync::Arc;

use bridge::message_text::MessageText;
use bridge::shell::option;

use crate::context::Context;
use crate::events::{Message, Operation, Severity, SourceRef};
use crate::reporter::{ErrorReported, Failure};

/// Refuses a resource that depends on one that was not created because of the targets
/// (docs/spec/engine-semantics.md#2.16). A preview reports the error and goes on.
///
/// # Errors
/// [`ErrorReported`] of the dependency; fatal.
pub(crate) fn refuse_skipped_dependencies<'r>(
    ctx: &Context,
    urn: &Urn,
    mut references: impl Iterator<Item = &'r Urn>,
    source: Option<SourceRef>,
) -> Result<(), ErrorReported> {
    let skipped = {
        let state = ctx.state();
        references.find(|urn| state.is_skipped(urn)).cloned()
    };
    let Some(skipped) = skipped else { return Ok(()) };
    let text =
        MessageText::new(format_args!("{} depends on {}, which is not among the targets", urn.name(), skipped.name()));
    let mut message = Message::new(Severity::Error, text);
    message.hint = Some(MessageText::new(format_args!("add {}", option("--target", skipped.as_str()))));
    if ctx.is_preview() {
        ctx.report_error(urn, source, message, Failure::AtEnd);
        return Ok(());
    }
    Err(ctx.report_fatal(urn, source, message))
}

/// Refuses a resource that refers to itself, or to a resource whose registration has not ended: its entry would come before an
/// entry that it refers to, and no later run could load the state. A resource that failed or was skipped has its own checks.
///
/// # Errors
/// [`ErrorReported`] of the reference; fatal.
pub(crate) fn refuse_unregistered_references<'r>(
    ctx: &Context,
    urn: &Urn,
    mut references: impl Iterator<Item = &'r Urn>,
    source: Option<SourceRef>,
) -> Result<(), ErrorReported> {
    let unregistered = {
        let state = ctx.state();
        let has_ended =
            |other: &Urn| state.registered(other).is_some() || state.is_skipped(other) || state.has_failed(other);
        // A refresh and a destroy create nothing: a resource that is not recorded has no entry then.
        let can_refer_to = |other: &Urn| match ctx.request.operation {
            Operation::Update | Operation::Import => has_ended(other),
            Operation::Refresh | Operation::Destroy => has_ended(other) || state.has_begun(other),
        };
        references.find(|other| *other == urn || !can_refer_to(other)).cloned()
    };
    let Some(other) = unregistered else { return Ok(()) };
    let name = urn.name();
    let text = if other == *urn {
        MessageText::new(format_args!("{name} refers to itself"))
    } else {
        MessageText::new(format_args!("{name} refers to {other}, which has not been registered before it"))
    };
    let mut message = Message::new(Severity::Error, text);
    message.hint = Some("register a resource after the resources that it refers to".into());
    Err(ctx.report_fatal(urn, source, message))
}

/// Refuses a resource that now depends on one that is out of scope and, as recorded, still depends on it.
///
/// # Errors
/// [`ErrorReported`] of the cycle; fatal.
pub(crate) fn refuse_cycle(
    ctx: &Context,
    old: Option<&Entry>,
    source: Option<SourceRef>,
    new: impl FnOnce() -> ResourceState,
) -> Result<(), ErrorReported> {
    let Some((old, _)) = old else { return Ok(()) };
    let dependents: HashSet<Urn> = {
        let state = ctx.state();
        let confirmed = state.confirmed_dependents(*old);
        confirmed.into_iter().filter_map(|id| Some(state.ledger().get(id)?.urn.clone())).collect()
    };
    if dependents.is_empty() {
        return Ok(());
    }
    // An entry that was carried over may have a new URN since the program received the old one.
    let resource = ctx.state().with_current_urns(&Arc::new(new()));
    let Some(urn) = resource.all_dependencies().find(|urn| dependents.contains(*urn)) else { return Ok(()) };
    let (name, other) = (resource.urn.name(), urn.name());
    let text =
        MessageText::new(format_args!("{name} depends on {other}, which is out of scope and still depends on {name}"));
    let mut message = Message::new(Severity::Error, text);
    message.hint = Some("include both resources in the scope, or neither".into());
    Err(ctx.report_fatal(&resource.urn, source, message))
}
