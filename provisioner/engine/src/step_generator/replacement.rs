//! The steps of a replacement (docs/spec/engine-semantics.md#2.11 and #2.12).

use std::sync::Arc;

use bridge::message_text::MessageText;
use bridge::shell::operand;
use hashbrown::{HashMap, HashSet};
use pulumi_proto::urn::Urn;
use state::{Entry, EntryId, ResourceState};

use super::delete_step::{delete_step, retained};
use super::dependent_replacements::{SkippedEntries, find_dependent_replacements};
use super::early_end::EarlyEnd;
use super::registration::{GoalOrigin, Registration};
use super::shared_resources::{SharingEntry, others_of_same_resource};
use crate::context::Context;
use crate::decisions::decision::{Refusal, ReplaceOrder, Replacement};
use crate::decisions::deletions::{
    DeletedWithTarget, DeletionKind, DeletionReason, deletion_batches, deletion_kind, order_pending_deletes_first,
};
use crate::decisions::dependent_replacements::DependentReplacement;
use crate::deployment_state::{
    Deleted, FormerDependent, FormerDependentKind, PlannedDependentReplacement, deletion_channel,
};
use crate::events::{Message, RunMode, Severity, StepOp};
use crate::messages;
use crate::reporter::{ErrorReported, Failure, report_all};
use crate::step::Step;

/// Returns the steps of a replacement, and marks in the deployment state the entries that they replace and delete.
///
/// # Errors
/// [`EarlyEnd`] if an entry cannot be deleted, the provider of a dependent cannot reply, or the run would delete more than its limit
/// allows.
pub(super) async fn steps(
    ctx: &Arc<Context>,
    registration: &Registration,
    replacement: Replacement,
) -> Result<Vec<Step>, EarlyEnd> {
    let Replacement { inputs, change, order, refusal } = replacement;
    if let Some(refusal) = refusal {
        report_refusal(ctx, registration, refusal);
    }
    let is_retained = registration.goal.retain_on_delete.unwrap_or_default();
    let old = registration.old.clone().map(|old| if is_retained { retained(old) } else { old });
    if let Some((_, old)) = &old {
        refuse_undeletable(ctx, registration, old, &HashSet::new())?;
    }
    let mut steps = Vec::new();
    match (order, &old) {
        (ReplaceOrder::DeleteBeforeReplace, Some(old)) => steps = delete_steps(ctx, registration, old).await?,
        (ReplaceOrder::CreateBeforeDelete, Some(old)) => claim_deletions(ctx, registration, [old].into_iter())?,
        _ => {}
    }
    ctx.state().mark_for_replacement(&registration.urn);
    let mut create = registration.step_to(StepOp::CreateReplacement, inputs);
    create.change = change.clone();
    create.delete_before_replace = order != ReplaceOrder::CreateBeforeDelete;
    let mut replace = registration.step(StepOp::Replace);
    replace.old.clone_from(&registration.old);
    replace.change = change;
    // `Replace` only marks the replacement for the display. As in Pulumi, it follows the Create, except in a
    // delete-before-replace and for a dependent replacement (docs/spec/engine-semantics.md#2.8 and #2.11).
    match order {
        ReplaceOrder::CreateBeforeDelete | ReplaceOrder::Resume => steps.extend([create, replace]),
        ReplaceOrder::DeleteBeforeReplace | ReplaceOrder::Recreate => steps.extend([replace, create]),
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

/// Entry that is deleted before a root.
enum EarlierDeletion {
    /// Dependent that is replaced together with the root.
    Dependent(DependentReplacement),
    /// Former dependent.
    Former(FormerDependent),
}

impl EarlierDeletion {
    fn entry(&self) -> &Entry {
        match self {
            Self::Dependent(dependent) => &dependent.entry,
            Self::Former(former) => &former.entry,
        }
    }

    /// Returns the operation of the step that deletes the entry.
    fn op(&self) -> StepOp {
        match self {
            Self::Former(FormerDependent { kind: FormerDependentKind::Unregistered, .. }) => StepOp::Delete,
            Self::Dependent(_) | Self::Former(_) => StepOp::DeleteReplaced,
        }
    }
}

/// Returns the deletions that come before a replacement: dependent replacements in reverse and former dependents, then the
/// root itself.
async fn delete_steps(ctx: &Arc<Context>, registration: &Registration, root: &Entry) -> Result<Vec<Step>, EarlyEnd> {
    let loaded = ctx.state().as_in_base(root);
    let mut dependents = find_dependent_replacements(ctx, &loaded, SkippedEntries::Decided).await.map_err(|error| {
        let message = messages::error_message(&error);
        ctx.report_fatal(&registration.urn, registration.goal.source, message)
    })?;
    dependents.reverse();
    let mut seen = HashSet::from([root.0]);
    dependents.retain(|dependent| seen.insert(dependent.entry.0));
    let deleted_urns = dependents.iter().map(|dependent| &dependent.entry.1.urn).chain([&loaded.1.urn]);
    let deleted_urns: HashSet<Urn> = deleted_urns.cloned().collect();
    let (waits_for, former) = {
        let state = ctx.state();
        for dependent in &mut dependents {
            if state.will_be_retained(&dependent.entry.1) {
                dependent.entry = retained(dependent.entry.clone());
            }
        }
        // What uses a retained entry can stay.
        let deleted = dependents.iter().map(|dependent| &dependent.entry.1).chain([&root.1]);
        let deleted = deleted.filter(|entry| !entry.retain_on_delete);
        let deleted = deleted.map(|entry| if entry.urn == root.1.urn { &loaded.1.urn } else { &entry.urn }).cloned();
        let former = state.former_dependents(&deleted.collect(), &seen, |entry| is_in_scope(ctx, entry));
        let former_urns = former.deletable.iter().map(|former| former.entry.1.urn.clone());
        let waits_for = state.deletions_of_dependents(&deleted_urns.iter().cloned().chain(former_urns).collect());
        // Deletions by another replacement are only waited for.
        dependents.retain(|dependent| !state.is_deleted_before_replace(dependent.entry.0));
        (waits_for, former)
    };
    refuse_protected(ctx, registration, &dependents)?;
    let mut deletions: Vec<_> = dependents.into_iter().map(EarlierDeletion::Dependent).collect();
    if !former.deletable.is_empty() {
        deletions.extend(former.deletable.into_iter().map(EarlierDeletion::Former));
        order(ctx, &mut deletions);
    }
    for deletion in &deletions {
        refuse_undeletable(ctx, registration, &deletion.entry().1, &deleted_urns)?;
    }
    claim_deletions(ctx, registration, deletions.iter().map(EarlierDeletion::entry).chain([root]))?;
    let mut steps = Vec::new();
    for deletion in deletions {
        let entry = deletion.entry().clone();
        let deleted = if entry.1.pending_replacement { Deleted::Done } else { Deleted::NotYet };
        let (report, wait) = deletion_channel(deleted);
        let op = deletion.op();
        let is_dependent = match deletion {
            EarlierDeletion::Dependent(DependentReplacement { keys, .. }) => {
                let planned = PlannedDependentReplacement { keys, deletion: wait };
                ctx.state().plan_dependent_replacement(&entry, planned);
                true
            }
            EarlierDeletion::Former(FormerDependent { kind, .. }) => {
                let mut state = ctx.state();
                state.plan_entry_deletion(entry.0, wait);
                if kind == FormerDependentKind::Unregistered {
                    state.mark_entry_for_deletion(&entry);
                }
                false
            }
        };
        match deleted {
            // An entry that an interrupted run has deleted is not deleted again.
            Deleted::Done => {}
            Deleted::NotYet => {
                let mut step = delete_step_of_resource(ctx, entry, op, &deleted_urns).await;
                step.delete_before_replace = is_dependent;
                step.deletion_report = Some(report);
                steps.push(step);
            }
        }
    }
    ctx.state().mark_entry_for_deletion(root);
    if !root.1.pending_replacement {
        let mut step = delete_step_of_resource(ctx, root.clone(), StepOp::DeleteReplaced, &deleted_urns).await;
        step.delete_before_replace = true;
        step.internal = registration.origin == GoalOrigin::Engine;
        step.goal_inputs = registration.goal_inputs.clone();
        let (report, deletion) = deletion_channel(Deleted::NotYet);
        step.deletion_report = Some(report);
        ctx.state().plan_entry_deletion(root.0, deletion);
        steps.push(step);
    }
    if let Some(first) = steps.first_mut() {
        first.waits_for = waits_for;
        first.waits_for_steps_of = former.changing;
    }
    Ok(steps)
}

/// Counts the entries that a replacement deletes against the limit of the run. If they are refused, the run goes on, and fails at its
/// end: it creates what it has deleted before a replacement.
fn claim_deletions<'e>(
    ctx: &Context,
    registration: &Registration,
    deleted: impl Iterator<Item = &'e Entry>,
) -> Result<(), EarlyEnd> {
    let replaced = || MessageText::new(format_args!("{} would be replaced", registration.urn.name()));
    let claimed = ctx.claim_deletions(replaced, deleted);
    claimed.map_err(|message| {
        ctx.report_error(&registration.urn, registration.goal.source, *message, Failure::AtEnd);
        EarlyEnd::failed(ctx, &registration.urn)
    })
}

/// Returns whether a former dependent may be deleted. A resource out of scope keeps all its versions. With targets, a live entry
/// must be one of them.
fn is_in_scope(ctx: &Context, entry: &ResourceState) -> bool {
    let scope = &ctx.request.options.scope;
    if entry.delete {
        return !scope.is_deletion_refused(&entry.urn) && !scope.is_excluded(&entry.urn);
    }
    scope.is_unrestricted() || scope.is_target(&entry.urn)
}

/// Orders deletions so that each entry is deleted before the entries that it uses.
fn order(ctx: &Context, deletions: &mut [EarlierDeletion]) {
    let loaded = order_pending_deletes_first(ctx.state().loaded_entries(), |_| false);
    let ids = deletions.iter().map(|deletion| deletion.entry().0).collect();
    let batches = deletion_batches(&loaded, &ids);
    let places: HashMap<EntryId, usize> =
        batches.iter().enumerate().flat_map(|(place, batch)| batch.iter().map(move |id| (*id, place))).collect();
    deletions.sort_by_key(|deletion| places.get(&deletion.entry().0).copied());
}

/// Returns the step that deletes an entry before a replacement. `deleted_urns` are the URNs that are deleted together.
async fn delete_step_of_resource(ctx: &Context, entry: Entry, op: StepOp, deleted_urns: &HashSet<Urn>) -> Step {
    let (entry, also_deleted) = without_shared_resource(ctx, entry, deleted_urns).await;
    Step { also_deleted, ..delete_step(ctx, &entry, op).await }
}

/// Returns an entry that is deleted before a replacement, as if it had `retainOnDelete` if another entry that this run has not
/// planned to delete names its resource, or a pending delete that retains it; with the pending deletes that name it. The user is
/// told so, unless the other one is deleted next: `deleted_urns` are the URNs that are deleted together.
pub(crate) async fn without_shared_resource(
    ctx: &Context,
    entry: Entry,
    deleted_urns: &HashSet<Urn>,
) -> (Entry, Vec<EntryId>) {
    if entry.1.retain_on_delete {
        return (entry, Vec::new());
    }
    let others = others_of_same_resource(ctx, &entry).await;
    let (mut pending_deletes, mut live) = (Vec::new(), Vec::new());
    let is_retained = others.iter().any(|other| other.entry.1.delete && other.entry.1.retain_on_delete);
    for SharingEntry { entry: (id, other), is_certain } in others {
        if other.delete {
            // Otherwise it gets a Delete of its own.
            pending_deletes.extend(is_certain.then_some(id));
        } else if !ctx.state().is_deleted_before_replace(id) {
            live.push((other, is_certain));
        }
    }
    let entry = if is_retained { retained(entry) } else { entry };
    let Some((keeper, is_certain)) = live.first() else { return (entry, pending_deletes) };
    if !live.iter().any(|(other, _)| deleted_urns.contains(&other.urn)) {
        let warning = messages::shared_resource(&entry.1, keeper, *is_certain, &ctx.request.stack);
        ctx.emit_message(&entry.1.urn, None, warning);
    }
    (retained(entry), Vec::new())
}

/// Refuses to delete dependents that are protected, as recorded or by the program, which registers them later.
fn refuse_protected(
    ctx: &Context,
    registration: &Registration,
    dependents: &[DependentReplacement],
) -> Result<(), ErrorReported> {
    let protected: Vec<&DependentReplacement> = {
        let state = ctx.state();
        let is_protected = |entry: &ResourceState| entry.protect || state.will_be_protected(entry);
        let can_be_lost = |entry: &ResourceState| !entry.delete && !entry.pending_replacement;
        let protected = |entry: &ResourceState| is_protected(entry) && can_be_lost(entry);
        dependents.iter().filter(|dependent| protected(&dependent.entry.1)).collect()
    };
    let report = |dependent: &&DependentReplacement| {
        let (root, name) = (registration.urn.name(), dependent.entry.1.urn.name());
        let text = MessageText::new(format_args!(
            "{root} must be deleted before it is replaced, together with {name}, which is protected"
        ));
        let mut message = Message::new(Severity::Error, text);
        message.hint = Some(if dependent.entry.1.protect {
            // A change of `protect` in server.yaml is recorded only after the replacement.
            MessageText::new(format_args!(
                "run `sc state unprotect {}`, or undo the change that replaces {root}",
                operand(name)
            ))
        } else {
            MessageText::new(format_args!("remove `protect` from {name}, or undo the change that replaces {root}"))
        });
        ctx.report_fatal(&registration.urn, registration.goal.source, message)
    };
    report_all(protected.iter().map(report)).map_or(Ok(()), Err)
}

/// Reports a fatal error if a replacement has to delete an entry that has delete hooks or no provider. The decision
/// about the registration and [`refuse_protected`] check protection. `deleted_urns` are the URNs that are deleted
/// together with the entry.
fn refuse_undeletable(
    ctx: &Context,
    registration: &Registration,
    old: &ResourceState,
    deleted_urns: &HashSet<Urn>,
) -> Result<(), ErrorReported> {
    let is_deleted = |urn: &Urn| deleted_urns.contains(urn) || ctx.state().is_marked_for_deletion(urn);
    let deleted_with = if old.deleted_with.as_ref().is_some_and(is_deleted) {
        DeletedWithTarget::IsDeleted
    } else {
        DeletedWithTarget::Stays
    };
    // A preview reports the refusal of a real run.
    let DeletionKind::Refused(reason) = deletion_kind(old, DeletionReason::Replaced, deleted_with, RunMode::Apply)
    else {
        return Ok(());
    };
    let name = if old.urn == registration.urn { "it" } else { old.urn.name() };
    let mut message = Message::new(Severity::Error, messages::undeletable_text(name, reason));
    message.hint = Some(messages::undeletable_hint(&old.urn, reason));
    Err(ctx.report_fatal(&registration.urn, registration.goal.source, message))
}
