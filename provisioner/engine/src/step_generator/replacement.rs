//! The steps of a replacement (docs/spec/engine-semantics.md#2.11 and #2.12).

use std::sync::Arc;

use hashbrown::HashSet;
use pulumi_proto::urn::Urn;
use state::ResourceState;

use super::delete_step::delete_step;
use super::dependent_replacements::{Passed, dependent_replacements};
use super::registration::{Origin, Registration};
use crate::context::Context;
use crate::decisions::deletions::{Deletion, DeletionReason, Owner, deletion};
use crate::decisions::dependent_replacements::DependentReplacement;
use crate::decisions::registration::{Refusal, ReplaceOrder, Replacement};
use crate::deployment_state::{Deleted, PendingReplacement, deletion_report};
use crate::entry::Entry;
use crate::events::{Message, Severity, StepOp};
use crate::messages;
use crate::reporter::{ErrorReported, Failure, report_all};
use crate::run_mode::RunMode;
use crate::step::Step;

/// Returns the steps of a replacement, and marks in the deployment state the entries that they replace and delete.
///
/// # Errors
/// [`ErrorReported`] if an entry cannot be deleted, or the provider of a dependent cannot reply; fatal.
pub(super) async fn steps(
    ctx: &Arc<Context>,
    registration: &Registration,
    replacement: Replacement,
) -> Result<Vec<Step>, ErrorReported> {
    let Replacement { inputs, change, order, refusal } = replacement;
    if let Some(refusal) = refusal {
        report_refusal(ctx, registration, refusal);
    }
    if let Some((_, old)) = &registration.old {
        refuse_undeletable(ctx, registration, old, &HashSet::new())?;
    }
    let mut steps = Vec::new();
    if let (ReplaceOrder::DeleteFirst, Some(old)) = (order, &registration.old) {
        steps = delete_steps(ctx, registration, old).await?;
    }
    ctx.state().mark_replaced(&registration.urn);
    let mut create = registration.step_to(StepOp::CreateReplacement, inputs);
    create.change = change.clone();
    create.delete_first = order != ReplaceOrder::CreateFirst;
    let mut replace = registration.step(StepOp::Replace);
    replace.old.clone_from(&registration.old);
    replace.change = change;
    match order {
        ReplaceOrder::CreateFirst | ReplaceOrder::Resume => steps.extend([create, replace]),
        ReplaceOrder::DeleteFirst | ReplaceOrder::Recreate => steps.extend([replace, create]),
    }
    Ok(steps)
}

/// Reports in a preview that the replacement will be refused.
fn report_refusal(ctx: &Context, registration: &Registration, refusal: Refusal) {
    let message = messages::refusal(&registration.urn, refusal);
    match refusal {
        Refusal::ImportMismatch => {
            ctx.emit_message(&registration.urn, None, Message { severity: Severity::Warning, ..message });
        }
        Refusal::Protected | Refusal::UnknownTrigger => {
            ctx.report_error(&registration.urn, registration.goal.source, message, Failure::AtEnd);
        }
    }
}

/// Returns the deletions that come before a replacement: dependent replacements in reverse, then the root itself.
async fn delete_steps(
    ctx: &Arc<Context>,
    registration: &Registration,
    root: &Entry,
) -> Result<Vec<Step>, ErrorReported> {
    let loaded = ctx.state().as_loaded(root);
    let mut dependents = dependent_replacements(ctx, &loaded, Passed::Decided).await.map_err(|error| {
        let message = messages::error_message(&error);
        ctx.report_fatal(&registration.urn, registration.goal.source, message)
    })?;
    dependents.reverse();
    let mut seen = HashSet::new();
    dependents.retain(|dependent| seen.insert(dependent.entry.0));
    let deleted = dependents.iter().map(|dependent| &dependent.entry.1.urn).chain([&loaded.1.urn]);
    let deleted: HashSet<Urn> = deleted.cloned().collect();
    let after = {
        let state = ctx.state();
        let after = state.deletions_of_dependents(&deleted);
        // Deletions by another replacement are only waited for.
        dependents.retain(|dependent| !state.is_deleted_first(dependent.entry.0));
        after
    };
    for dependent in &dependents {
        refuse_undeletable(ctx, registration, &dependent.entry.1, &deleted)?;
    }
    refuse_protected(ctx, registration, &dependents)?;
    let mut steps = Vec::new();
    for DependentReplacement { entry, keys } in dependents {
        let deleted = if entry.1.pending_replacement { Deleted::Done } else { Deleted::NotYet };
        let (report, deletion) = deletion_report(deleted);
        ctx.state().plan_dependent_replacement(&entry, PendingReplacement { keys, deletion });
        match deleted {
            // An entry that an interrupted run has deleted is not deleted again.
            Deleted::Done => {}
            Deleted::NotYet => {
                let mut step = delete_step(ctx, &entry, StepOp::DeleteReplaced).await;
                step.delete_first = true;
                step.deletion_report = Some(report);
                steps.push(step);
            }
        }
    }
    ctx.state().mark_entry_deleted(root);
    if !root.1.pending_replacement {
        let mut step = delete_step(ctx, root, StepOp::DeleteReplaced).await;
        step.delete_first = true;
        step.internal = registration.origin == Origin::Engine;
        let (report, deletion) = deletion_report(Deleted::NotYet);
        step.deletion_report = Some(report);
        ctx.state().plan_entry_deletion(root.0, deletion);
        steps.push(step);
    }
    if let Some(first) = steps.first_mut() {
        first.after = after;
    }
    Ok(steps)
}

/// Refuses to delete dependents that are protected.
fn refuse_protected(
    ctx: &Context,
    registration: &Registration,
    dependents: &[DependentReplacement],
) -> Result<(), ErrorReported> {
    let protected = dependents.iter().filter(|dependent| dependent.entry.1.protect && !dependent.entry.1.delete);
    let report = |dependent: &DependentReplacement| {
        let (root, name) = (registration.urn.name(), dependent.entry.1.urn.name());
        let text = format!("{root} must be deleted before it is replaced, together with {name}, which is protected");
        let mut message = Message::new(Severity::Error, text);
        message.hint = Some(format!("remove `protect` from {name}, or undo the change that replaces {root}"));
        ctx.report_fatal(&registration.urn, registration.goal.source, message)
    };
    report_all(protected.map(report)).map_or(Ok(()), Err)
}

/// Refuses a replacement that has to delete an entry that cannot be deleted. Protection is checked elsewhere.
/// `deleted`: URNs that are deleted together with the entry.
fn refuse_undeletable(
    ctx: &Context,
    registration: &Registration,
    old: &ResourceState,
    deleted: &HashSet<Urn>,
) -> Result<(), ErrorReported> {
    let is_deleted = |owner: &Urn| deleted.contains(owner) || ctx.state().is_deleted(owner);
    let owner = if old.deleted_with.as_ref().is_some_and(is_deleted) { Owner::IsDeleted } else { Owner::Stays };
    // A preview reports the refusal of a real run.
    let Deletion::Refused(reason) = deletion(old, DeletionReason::Replaced, owner, RunMode::Apply) else {
        return Ok(());
    };
    let name = if old.urn == registration.urn { "it" } else { old.urn.name() };
    let mut message = Message::new(Severity::Error, messages::undeletable_text(name, reason));
    message.hint = Some(messages::undeletable_hint(&old.urn, reason));
    Err(ctx.report_fatal(&registration.urn, registration.goal.source, message))
}
