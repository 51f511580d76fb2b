//! Which entries targets, excludes and protection let be deleted (engine semantics, section 2.16).

use std::sync::Arc;

use hashbrown::HashSet;
use pulumi_proto::urn::Urn;
use state::{EntryId, ResourceState};

use crate::context::Context;
use crate::decisions::scope::Reach;
use crate::entry::Entry;
use crate::events::{Message, Operation, Severity, StepOp};
use crate::messages;
use crate::reporter::{ErrorReported, Failure, report_all};
use crate::step_generator::{Passed, dependent_replacements};

/// Which entries may be deleted.
pub(super) enum Deletable {
    /// These.
    All(HashSet<EntryId>),
    /// These could be, but one of them is nothing that the user named: that has been reported, and nothing may be deleted.
    Refused(HashSet<EntryId>),
}

/// Returns which of the candidates may be deleted.
///
/// # Errors
/// A provider could not be asked; fatal.
pub(super) async fn deletable(ctx: &Arc<Context>, candidates: &[(Entry, StepOp)]) -> Result<Deletable, ErrorReported> {
    let scope = &ctx.options.scope;
    let everything = || candidates.iter().map(|((id, _), _)| *id).collect::<HashSet<_>>();
    if scope.has_targets() {
        return deletable_with_targets(ctx, candidates).await;
    }
    if scope.is_everything() && !ctx.options.exclude_protected {
        return Ok(Deletable::All(everything()));
    }
    let keep_protected = ctx.options.exclude_protected && ctx.options.operation == Operation::Destroy;
    let state = ctx.state();
    let mut kept: HashSet<&Urn> = HashSet::new();
    let mut excluded: HashSet<&Urn> = HashSet::new();
    for (_, entry) in state.loaded_entries() {
        let depends = entry.references().any(|urn| excluded.contains(urn));
        let is_excluded = scope.excludes(&entry.urn) || (scope.exclude_dependents && depends);
        if is_excluded {
            excluded.insert(&entry.urn);
        }
        if is_excluded || (keep_protected && entry.protect) {
            kept.insert(&entry.urn);
        }
    }
    // What is kept needs what it refers to: dependencies come earlier in the list.
    for (_, entry) in state.loaded_entries().iter().rev() {
        if kept.contains(&entry.urn) {
            kept.extend(entry.provider_and_references());
        }
    }
    // Superseded entries are kept whose live entry is kept; the others are deleted even if they are referenced. All under the
    // names that were loaded: a parent may have given a new one meanwhile.
    let stays = |entry: &ResourceState| kept.contains(&entry.urn) && state.was_live(&entry.urn);
    let staying: HashSet<EntryId> =
        state.loaded_entries().iter().filter(|(_, entry)| stays(entry)).map(|(id, _)| *id).collect();
    Ok(Deletable::All(everything().difference(&staying).copied().collect()))
}

/// With targets: what was named, what depends on it, and what a replacement of it would delete, too. Pulumi asks the providers
/// for that, so this does.
async fn deletable_with_targets(
    ctx: &Arc<Context>,
    candidates: &[(Entry, StepOp)],
) -> Result<Deletable, ErrorReported> {
    let scope = &ctx.options.scope;
    let loaded = ctx.state().loaded_entries().to_vec();
    let Reach { mut allowed, roots } = scope.reach(&loaded);
    for entry in roots {
        let dependents = dependent_replacements(ctx, entry, Passed::DecidedByName)
            .await
            .map_err(|error| ctx.fatal(&entry.1.urn, None, messages::of_error(&error)))?;
        allowed.extend(dependents.into_iter().map(|dependent| dependent.entry.0));
    }
    let unnamed = candidates.iter().filter(|((id, entry), _)| allowed.contains(id) && scope.spares(&entry.urn));
    let report = |((_, entry), _): &(Entry, StepOp)| {
        let text = format!("{} would have to go with a target that it depends on", entry.urn.name());
        let mut message = Message::new(Severity::Error, text);
        message.hint = Some(format!("add --target '{}' or --target-dependents", entry.urn));
        ctx.error(&entry.urn, None, message, Failure::AtEnd)
    };
    Ok(match report_all(unnamed.map(report)) {
        None => Deletable::All(allowed),
        Some(_) => Deletable::Refused(allowed),
    })
}
