//! Scope of deletions: targets, excludes and protection (docs/spec/engine-semantics.md#2.16).

use std::sync::Arc;

use bridge::message_text::MessageText;
use bridge::shell::option;
use hashbrown::HashSet;
use pulumi_proto::urn::Urn;
use state::{Entry, EntryId, ResourceState};

use crate::context::Context;
use crate::decisions::scope::TargetedEntries;
use crate::events::{Message, Operation, Severity, StepOp};
use crate::messages;
use crate::reporter::{ErrorReported, Failure, report_all};
use crate::step_generator::{SkippedEntries, find_dependent_replacements};

/// Entries that may be deleted.
pub(super) enum Deletable {
    /// Entries that may all be deleted.
    All(HashSet<EntryId>),
    /// Entries that would be deleted, at least one of which is no target. The error has been reported, and only a
    /// preview goes on.
    Refused(HashSet<EntryId>),
}

/// Returns the candidates that may be deleted.
///
/// # Errors
/// [`ErrorReported`] if a provider cannot reply; fatal.
pub(super) async fn deletable(ctx: &Arc<Context>, candidates: &[(Entry, StepOp)]) -> Result<Deletable, ErrorReported> {
    let scope = &ctx.request.options.scope;
    let everything = || candidates.iter().map(|((id, _), _)| *id).collect::<HashSet<_>>();
    if scope.has_targets() {
        return deletable_with_targets(ctx, candidates).await;
    }
    if scope.is_unrestricted() && !ctx.request.options.exclude_protected {
        return Ok(Deletable::All(everything()));
    }
    let keep_protected = ctx.request.options.exclude_protected && ctx.request.operation == Operation::Destroy;
    let state = ctx.state();
    let mut staying_urns: HashSet<&Urn> = HashSet::new();
    let mut excluded: HashSet<&Urn> = HashSet::new();
    for (_, entry) in state.loaded_entries() {
        let depends = entry.all_dependencies().any(|urn| excluded.contains(urn));
        let is_excluded = scope.is_excluded(&entry.urn) || (scope.exclude_dependents && depends);
        if is_excluded {
            excluded.insert(&entry.urn);
        }
        if is_excluded || (keep_protected && entry.protect) {
            staying_urns.insert(&entry.urn);
        }
    }
    // Dependencies of an entry that stays must stay, too. They come earlier in the list.
    for (_, entry) in state.loaded_entries().iter().rev() {
        if staying_urns.contains(&entry.urn) {
            staying_urns.extend(entry.provider_and_dependencies());
        }
    }
    // A pending delete stays if its live entry stays; the others are deleted even if they are referenced. All
    // URNs are the loaded ones, because a parent may have been renamed meanwhile.
    let stays = |entry: &ResourceState| staying_urns.contains(&entry.urn) && state.was_live(&entry.urn);
    let staying: HashSet<EntryId> =
        state.loaded_entries().iter().filter(|(_, entry)| stays(entry)).map(|(id, _)| *id).collect();
    Ok(Deletable::All(everything().difference(&staying).copied().collect()))
}

/// Returns the entries that may be deleted with targets: the targets, their dependents, and the entries that a
/// replacement of a target would delete. Calls Diff for the latter, as Pulumi does.
async fn deletable_with_targets(
    ctx: &Arc<Context>,
    candidates: &[(Entry, StepOp)],
) -> Result<Deletable, ErrorReported> {
    let scope = &ctx.request.options.scope;
    let loaded = ctx.state().loaded_entries().to_vec();
    let TargetedEntries { mut allowed, roots } = scope.targeted_entries(&loaded);
    for entry in roots {
        let dependents = find_dependent_replacements(ctx, entry, SkippedEntries::DecidedByUrn)
            .await
            .map_err(|error| ctx.report_fatal(&entry.1.urn, None, messages::error_message(&error)))?;
        allowed.extend(dependents.into_iter().map(|dependent| dependent.entry.0));
    }
    let refused =
        candidates.iter().filter(|((id, entry), _)| allowed.contains(id) && scope.is_deletion_refused(&entry.urn));
    let report = |((_, entry), _): &(Entry, StepOp)| {
        let text = MessageText::new(format_args!(
            "{} would have to be deleted with a target that it depends on",
            entry.urn.name()
        ));
        let mut message = Message::new(Severity::Error, text);
        message.hint = Some(MessageText::new(format_args!(
            "add {} or --target-dependents",
            option("--target", entry.urn.as_str())
        )));
        ctx.report_error(&entry.urn, None, message, Failure::AtEnd)
    };
    Ok(match report_all(refused.map(report)) {
        None => Deletable::All(allowed),
        Some(_) => Deletable::Refused(allowed),
    })
}
