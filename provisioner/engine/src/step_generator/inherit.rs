//! Options that a registration inherits from its parent (docs/spec/engine-semantics.md#2.1).

use bridge::message_text::MessageText;

use pulumi_proto::urn::{ProviderReference, TypeToken, Urn};

use crate::context::Context;
use crate::events::{Message, Severity, SourceRef};
use crate::goal::Goal;
use crate::reporter::ErrorReported;

/// Returns where the program wrote the component that registers a resource: the resource itself, or its parent. Stores
/// the place for the children of the resource.
pub(crate) fn source_of_component(ctx: &Context, urn: &Urn, parent: Option<&Urn>) -> Option<SourceRef> {
    let mut state = ctx.state();
    let source = state.source_of_component(urn, parent)?;
    state.set_source(urn, source);
    Some(source)
}

/// Completes a goal with the options of its parent that it does not set itself (docs/spec/engine-semantics.md#2.1).
///
/// # Errors
/// [`ErrorReported`] if the parent has not been registered in this run; fatal.
pub(crate) fn inherit(ctx: &Context, urn: &Urn, goal: &mut Goal) -> Result<(), ErrorReported> {
    let Some(parent) = &goal.parent else { return Ok(()) };
    let inherited = ctx.state().inheritance(parent).cloned();
    let Some(inherited) = inherited else {
        let text = MessageText::new(format_args!("its parent {parent} has not been registered in this run"));
        return Err(ctx.report_fatal(urn, goal.source, Message::new(Severity::Error, text)));
    };
    goal.protect = goal.protect.or(Some(inherited.protect));
    goal.retain_on_delete = goal.retain_on_delete.or(Some(inherited.retain_on_delete));
    goal.deleted_with = goal.deleted_with.take().or(inherited.deleted_with);
    let serves = |provider: &ProviderReference| {
        let package = TypeToken::new(provider.urn.type_token());
        let is_local_component = !goal.custom && !goal.remote;
        is_local_component || package.provider_package() == Some(goal.type_token.package())
    };
    if goal.provider.is_none() && !goal.type_token.is_provider() {
        goal.provider = inherited.provider.filter(serves);
    }
    if !goal.custom {
        for (package, reference) in inherited.providers {
            goal.providers.entry(package).or_insert(reference);
        }
    } else if goal.provider.is_none() {
        goal.provider = inherited.providers.get(goal.type_token.package()).cloned();
    }
    Ok(())
}
