//! Checks of references that a resource cannot have in this run.

use hashbrown::HashSet;
use pulumi_proto::urn::Urn;
use state::ResourceState;
use std::sync::Arc;

use crate::context::Context;
use crate::entry::Entry;
use crate::events::{Message, Severity, SourceRef};
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
    let text = format!("{} depends on {}, which is not among the targets", urn.name(), skipped.name());
    let mut message = Message::new(Severity::Error, text);
    message.hint = Some(format!("add --target '{skipped}'"));
    if ctx.is_preview() {
        ctx.report_error(urn, source, message, Failure::AtEnd);
        return Ok(());
    }
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
    let Some(urn) = resource.references().find(|urn| dependents.contains(*urn)) else { return Ok(()) };
    let (name, other) = (resource.urn.name(), urn.name());
    let text = format!("{name} depends on {other}, which is out of scope and still depends on {name}");
    let mut message = Message::new(Severity::Error, text);
    message.hint = Some("include both resources in the scope, or neither".to_owned());
    Err(ctx.report_fatal(&resource.urn, source, message))
}
