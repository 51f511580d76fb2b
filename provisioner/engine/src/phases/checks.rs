//! Checks of the options of a run, before the first step and once the program has ended.

use bridge::error::closest_resource;
use bridge::message_text::MessageText;
use pulumi_proto::urn::Urn;
use state::{PendingOperation, ResourceState};

use super::import::urn_of;
use crate::context::Context;
use crate::decisions::deletions::{DeletedWithTarget, DeletionKind, DeletionReason, Undeletable, deletion_kind};
use crate::decisions::scope::{Scope, UrnPattern};
use crate::events::{Event, Message, Operation, RunMode, Severity};
use crate::messages;
use crate::pending_messages::{PendingWithEntry, pending_operation_warnings};
use crate::reporter::{ErrorReported, Failure, report_all};

/// Checks the names in the options against the recorded resources, and the rules for physical names.
///
/// # Errors
/// [`ErrorReported`] if a name matches no resource, or the rules cannot be used; fatal.
pub(crate) fn check_names(ctx: &Context) -> Result<(), ErrorReported> {
    let scope = &ctx.request.options.scope;
    let must_exist: Vec<_> = if ctx.request.has_program() {
        ctx.request.options.replace.iter().collect()
    } else {
        scope.targets.iter().chain(&scope.excludes).collect()
    };
    let mut checked = Ok(());
    if let Err(error) = &ctx.autonaming {
        let mut message = Message::new(Severity::Error, format_args!("pulumi:autonaming cannot be used: {error}"));
        message.hint =
            Some(MessageText::new(format_args!("fix it in the stack file, Pulumi.{}.yaml", ctx.request.stack)));
        checked = Err(ctx.report_general_error(message, Failure::Fatal));
    }
    for pattern in must_exist.into_iter().filter(|pattern| !is_known(ctx, pattern)) {
        checked = Err(report_unknown_name(ctx, pattern.as_str(), Failure::Fatal));
    }
    checked
}

/// Returns whether a pattern is accepted: it matches a resource that was recorded, or registered in this run, or it
/// need not match one. A pattern with a star need not match, because it then selects nothing. An exclude must match,
/// because the run otherwise changes resources that the user meant to exclude.
fn is_known(ctx: &Context, pattern: &UrnPattern) -> bool {
    let is_exclude = ctx.request.options.scope.excludes.contains(pattern);
    (!pattern.is_literal() && !is_exclude)
        || ctx.state().has_match(pattern)
        || ctx.request.options.removed_by_refresh.iter().any(|urn| pattern.matches(urn))
}

fn report_unknown_name(ctx: &Context, name: &str, failure: Failure) -> ErrorReported {
    let mut message = Message::new(Severity::Error, format_args!("no resource of this stack is called {name}"));
    let similar = {
        let state = ctx.state();
        let names: Vec<&str> = state.known_urns().map(Urn::name).collect();
        closest_resource(name, &names).map(str::to_owned)
    };
    message.hint = Some(match similar {
        Some(similar) => MessageText::new(format_args!("did you mean {similar}?")),
        None => "give a name from `sc preview`, or a URN from `sc stack export`".into(),
    });
    ctx.report_general_error(message, failure)
}

/// Reports targets and excludes that match no resource, once the program has ended.
pub(crate) fn check_targets_found(ctx: &Context) {
    if !ctx.request.has_program() {
        return;
    }
    let failure = if ctx.request.operation == Operation::Destroy {
        // Deletions have not begun, and a misspelled name could delete resources that the user meant to exclude.
        Failure::Fatal
    } else {
        Failure::AtEnd
    };
    let Scope { targets, excludes, .. } = &ctx.request.options.scope;
    for pattern in targets.iter().chain(excludes).filter(|pattern| !is_known(ctx, pattern)) {
        report_unknown_name(ctx, pattern.as_str(), failure);
    }
}

/// Warns of recorded resources that `--replace` names and that the program does not register: they are not replaced.
pub(crate) fn report_unregistered_replacements(ctx: &Context) {
    if ctx.request.options.replace.is_empty() || !ctx.request.has_program() {
        return;
    }
    let unregistered: Vec<Urn> = {
        let state = ctx.state();
        let is_named = |urn: &Urn| ctx.request.options.replace.iter().any(|pattern| pattern.matches(urn));
        let entries = state.loaded_entries().iter().map(|(_, entry)| entry);
        let live = entries.filter(|entry| !entry.delete && is_named(&entry.urn) && !state.is_registered(&entry.urn));
        live.map(|entry| entry.urn.clone()).collect()
    };
    for urn in unregistered {
        ctx.emit_message(&urn, None, messages::unreplaced("the program does not have it", None));
    }
}

/// Refuses to destroy resources with hooks that run with their deletion: only the program that registered the hooks can
/// run them (docs/spec/engine-semantics.md#5.3).
///
/// # Errors
/// [`ErrorReported`] if a resource has such hooks; fatal.
pub(crate) fn check_hooks(ctx: &Context) -> Result<(), ErrorReported> {
    if ctx.request.operation != Operation::Destroy {
        return Ok(());
    }
    let with_hooks: Vec<Urn> = {
        let state = ctx.state();
        let has_hooks = |entry: &ResourceState| {
            // `Replaced` leaves protection out. An entry with `deletedWith` counts as deleted with that resource; if
            // the resource stays, the delete step of the entry checks the hooks.
            let deleted_with =
                if entry.deleted_with.is_some() { DeletedWithTarget::IsDeleted } else { DeletedWithTarget::Stays };
            let deletion = deletion_kind(entry, DeletionReason::Replaced, deleted_with, RunMode::Apply);
            deletion == DeletionKind::Refused(Undeletable::HasDeleteHooks)
        };
        let entries = state.loaded_entries().iter().filter(|(_, entry)| has_hooks(entry));
        entries.map(|(_, entry)| entry.urn.clone()).collect()
    };
    let report = |urn: &Urn| {
        let mut message = Message::new(Severity::Error, messages::undeletable_text("it", Undeletable::HasDeleteHooks));
        message.hint = Some(messages::undeletable_hint(urn, Undeletable::HasDeleteHooks));
        ctx.report_fatal(urn, None, message)
    };
    report_all(with_hooks.iter().map(report)).map_or(Ok(()), Err)
}

/// Reports the pending operations of earlier runs, except those of resources that this run imports. Reports none in a
/// preview: its caller reports the pending creates. In a refresh, reports only the pending creates that it reads; its
/// caller reports the others.
pub(crate) fn report_pending_operations(ctx: &Context) {
    if ctx.is_preview() {
        return;
    }
    let pending: Vec<PendingOperation> = {
        let state = ctx.state();
        let ledger = state.ledger();
        let unread = ledger.unread_creates().map(|(_, operation)| operation);
        let others = ledger.base().pending_operations.iter();
        others.filter(|_| ctx.request.operation != Operation::Refresh).chain(unread).cloned().collect()
    };
    let is_imported = |urn: &Urn| ctx.request.options.imports.iter().any(|goal| urn_of(ctx, goal) == *urn);
    let pending = pending.into_iter().filter(|it| !is_imported(&it.resource.urn));
    let with_entries: Vec<PendingWithEntry> = pending
        .map(|operation| {
            let recorded = ctx.state().old(&operation.resource.urn).map(|(_, recorded)| recorded);
            (operation, recorded)
        })
        .collect();
    for warning in pending_operation_warnings(&with_entries) {
        ctx.emit(Event::Message(warning));
    }
}
