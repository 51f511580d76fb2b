//! Deletes the entries that were not registered (docs/spec/engine-semantics.md#3).

use std::cell::LazyCell;
use std::sync::Arc;

use bridge::message_text::MessageText;
use futures_util::future::join_all;
use hashbrown::{HashMap, HashSet};
use pulumi_proto::urn::ProviderReference;
use state::{Entry, EntryId, ResourceState};

use super::deletion_scope::{Deletable, deletable};
use super::orphans::report_orphans;
use super::phase_end::PhaseEnd;
use super::shared_resources::{is_removed, withhold_deletions};
use crate::context::Context;
use crate::decisions::deletions::{deletion_batches, deletion_step, order_pending_deletes_first};
use crate::deployment_state::{DeploymentState, EmptyKeys, EntriesByUrn, by_urn, rename_view};
use crate::events::{Operation, StepInfo, StepOp};
use crate::reporter::Failure;
use crate::step_executor::StepExecutor;
use crate::step_generator::{carry_over, delete_step};

/// Deletes the entries in scope that were not registered, and pending deletes, dependents first. A destroy also deletes
/// registered entries.
pub(crate) async fn delete_unregistered(ctx: &Arc<Context>) -> PhaseEnd {
    if ctx.request.operation == Operation::Destroy && ctx.request.has_program() {
        // Entries that the program has just updated or created are deleted, too.
        ctx.state().reload_pending_deletes_first();
    }
    retain_pending_deletes(ctx).await;
    let candidates = unregistered(ctx);
    let Ok(deletable) = deletable(ctx, &candidates).await else { return PhaseEnd::Complete };
    let allowed = match &deletable {
        Deletable::All(allowed) | Deletable::Refused(allowed) => allowed,
    };
    if !ctx.request.options.scope.is_unrestricted() || ctx.request.options.exclude_protected {
        carry_over_staying(ctx, &candidates, allowed).await;
    }
    if matches!(deletable, Deletable::Refused(_)) && !ctx.is_preview() {
        return PhaseEnd::Complete;
    }
    let mut deletions: HashMap<EntryId, StepOp> =
        candidates.iter().filter(|((id, _), _)| allowed.contains(id)).map(|((id, _), op)| (*id, *op)).collect();
    if deletions.is_empty() {
        return PhaseEnd::Complete;
    }
    let (batches, entries, loaded) = {
        let state = ctx.state();
        let ids: HashSet<EntryId> = deletions.keys().copied().collect();
        // The order is that of the loaded entries: a new URN does not change the dependencies of an old entry. An entry may
        // still use a pending delete of its dependency.
        let ordered = order_pending_deletes_first(state.loaded_entries(), |_| false);
        let batches = deletion_batches(&ordered, &ids);
        let entries: HashMap<EntryId, Arc<ResourceState>> =
            ids.into_iter().filter_map(|id| Some((id, Arc::clone(state.ledger().get(id)?)))).collect();
        (batches, entries, state.loaded_entries().to_vec())
    };
    let loaded_by_urn = LazyCell::new(|| by_urn(&loaded));
    let has_staying_entries = ctx.state().ledger().entries().any(|(id, _)| !deletions.contains_key(&id));
    let mut staying =
        if has_staying_entries { needed_by_staying(ctx, &deletions, &loaded_by_urn) } else { HashSet::new() };
    for (id, resource) in loaded.iter().filter(|(id, _)| deletions.get(id) == Some(&StepOp::Delete)) {
        // A protected entry stays: its delete step reports this. The dependencies of the entry stay, too.
        if entries.get(id).is_some_and(|entry| entry.protect) {
            ctx.state().add_dependencies((*id, resource), &loaded_by_urn, &mut staying);
        }
    }
    let kept = withhold_deletions(ctx, &loaded, &staying, &mut deletions).await;
    if !claim(ctx, &entries, &deletions, &staying) || !approve(ctx, &entries, &deletions, &staying).await {
        return PhaseEnd::Complete;
    }
    {
        // No provider is called for entries that are `deletedWith` a marked one.
        let mut state = ctx.state();
        let deleted = entries.iter().filter(|(id, _)| !kept.contains(*id));
        deleted.for_each(|(_, entry)| state.mark_for_deletion(&entry.urn));
    }
    let mut has_undone_work = false;
    for batch in batches {
        let steps = batch.iter().filter(|id| !staying.contains(*id)).filter_map(|id| {
            let entry = (*id, Arc::clone(entries.get(id)?));
            Some(delete_one(ctx, entry, *deletions.get(id)?))
        });
        for undeleted in join_all(steps).await.into_iter().filter_map(Result::err) {
            match undeleted {
                Undeleted::NotBegun => has_undone_work = true,
                Undeleted::Failed(id) => {
                    let failed = loaded.iter().filter(|(other, _)| *other == id);
                    let state = ctx.state();
                    failed.for_each(|(id, resource)| {
                        state.add_dependencies((*id, resource), &loaded_by_urn, &mut staying)
                    });
                }
            }
        }
    }
    report_orphans(ctx, &deletions, &entries);
    PhaseEnd::of(ctx, has_undone_work)
}

/// Counts all entries that are deleted against the limit of the run. Returns false, and reports an error, if they are more than it
/// allows.
fn claim(
    ctx: &Context,
    entries: &HashMap<EntryId, Arc<ResourceState>>,
    deletions: &HashMap<EntryId, StepOp>,
    staying: &HashSet<EntryId>,
) -> bool {
    let is_deleted = |id: &EntryId, entry: &ResourceState| {
        let sends_delete = matches!(deletions.get(id), Some(StepOp::Delete | StepOp::DeleteReplaced));
        sends_delete && is_removed(*id, entry, deletions, staying)
    };
    let deleted: Vec<Entry> = entries
        .iter()
        .filter(|(id, entry)| is_deleted(id, entry))
        .map(|(id, entry)| (*id, Arc::clone(entry)))
        .collect();
    let text = || match &deleted[..] {
        [(_, entry)] => MessageText::new(format_args!("{} was not deleted", entry.urn.name())),
        deleted => MessageText::new(format_args!("{} resources were not deleted", deleted.len())),
    };
    let claimed = ctx.claim_deletions(text, deleted.iter());
    claimed.map_err(|message| ctx.report_general_error(*message, Failure::Fatal)).is_ok()
}

/// Asks the guard of the run about all deletions, before the first of them. Returns false, and reports an error, if it refuses one.
async fn approve(
    ctx: &Context,
    entries: &HashMap<EntryId, Arc<ResourceState>>,
    deletions: &HashMap<EntryId, StepOp>,
    staying: &HashSet<EntryId>,
) -> bool {
    if !ctx.request.guard.approves_steps() {
        return true;
    }
    let deleted = entries.iter().filter(|(id, entry)| is_removed(**id, entry, deletions, staying));
    let steps = deleted.filter_map(|(id, entry)| {
        let op = *deletions.get(id)?;
        Some(StepInfo::new(op, entry.urn.clone(), Some(Arc::clone(entry)), None))
    });
    let mut are_approved = true;
    for step in steps {
        are_approved &= ctx.approve_step(&step).await.is_ok();
    }
    are_approved
}

/// Reason that an entry was not deleted.
enum Undeleted {
    /// The deletion failed.
    Failed(EntryId),
    /// The deletion did not begin, because nothing new may start.
    NotBegun,
}

async fn delete_one(ctx: &Arc<Context>, entry: Entry, op: StepOp) -> Result<(), Undeleted> {
    let _slot = ctx.slot().await;
    if ctx.is_halted() {
        return Err(Undeleted::NotBegun);
    }
    let step = delete_step(ctx, &entry, op).await;
    let executor = StepExecutor::new(ctx);
    if !executor.can_begin(&step).await {
        return Err(Undeleted::NotBegun);
    }
    // Boxed: tens of thousands may wait for a slot, so each must be small.
    Box::pin(executor.execute(step)).await.map(drop).map_err(|_| Undeleted::Failed(entry.0))
}

/// Gives pending deletes the new URN of their live entry, so that the old URN is free. Entries that this run deletes
/// keep the old URN until then.
pub(crate) async fn rename_pending_deletes(ctx: &Context) {
    ctx.records
        .defer(|state| {
            let mut effects = Vec::new();
            if !state.has_new_urns() {
                return effects;
            }
            // A provider keeps its URN, because its resources refer to it by that URN.
            let is_pending_delete = |entry: &ResourceState| entry.delete && !entry.is_provider();
            for (id, entry) in state.ledger().entries().filter(|(_, entry)| is_pending_delete(entry)) {
                let successor = state.taken_over_by(&entry.urn);
                if let Some(urn) = successor.filter(|urn| state.ledger().entries_of(urn).any(|(_, new)| !new.delete)) {
                    effects.extend(state.rewrite_effects(id, |entry| entry.urn = urn.clone()));
                    for (view, _) in state.views_of(entry) {
                        effects.extend(state.rewrite_effects(view, |view| rename_view(view, urn)));
                    }
                }
            }
            // A renamed pending delete may have been the last entry of its old URN, because a refresh of this run has
            // removed the live entry. References to the old URN are removed then.
            effects.extend(if effects.is_empty() { Vec::new() } else { state.repairs(&effects, |_| EmptyKeys::Kept) });
            effects
        })
        .await;
}

/// Retains the pending deletes of resources that the program has registered with `retainOnDelete`: it may have added the
/// option after an earlier run has replaced the resource.
async fn retain_pending_deletes(ctx: &Context) {
    ctx.records
        .defer(|state| {
            let is_deleted = |entry: &ResourceState| entry.delete && !entry.retain_on_delete && entry.view_of.is_none();
            let pending_deletes = state.ledger().entries().filter(|(_, entry)| is_deleted(entry));
            let retained = pending_deletes.filter(|(_, entry)| state.is_registered_as_retained(&entry.urn));
            retained.flat_map(|(id, _)| state.rewrite_effects(id, |entry| entry.retain_on_delete = true)).collect()
        })
        .await;
}

/// Returns the entries that must stay because an entry that stays needs them. An entry that the program was not applied to
/// needs its recorded references, even if the program has changed its references. A provider stays as long as an entry
/// that stays refers to it.
fn needed_by_staying(
    ctx: &Context,
    deletions: &HashMap<EntryId, StepOp>,
    loaded: &EntriesByUrn<'_>,
) -> HashSet<EntryId> {
    let state = ctx.state();
    let mut staying = HashSet::new();
    // A view is deleted with its resource.
    let entries = || loaded.values().flatten().filter(|(_, entry)| entry.view_of.is_none());
    for (id, entry) in entries() {
        let needs_recorded_references = state.ledger().get(*id).is_some() && !state.is_applied(*id, entry);
        if needs_recorded_references && !deletions.contains_key(id) {
            state.add_dependencies((*id, entry), loaded, &mut staying);
        }
    }
    let undeleted =
        state.ledger().entries().filter(|(id, entry)| !deletions.contains_key(id) && entry.view_of.is_none());
    let providers: HashSet<&ProviderReference> = undeleted.filter_map(|(_, entry)| entry.provider.as_ref()).collect();
    let is_named = |entry: &&&Entry| entry.1.as_provider_reference().is_some_and(|name| providers.contains(&name));
    staying.extend(entries().filter(is_named).map(|(id, _)| *id));
    staying
}

/// Carries over the entries that stay and were not registered, one after the other.
async fn carry_over_staying(ctx: &Arc<Context>, candidates: &[(Entry, StepOp)], allowed: &HashSet<EntryId>) {
    for (entry, op) in candidates {
        let stays = matches!(op, StepOp::Delete | StepOp::Discard) && !allowed.contains(&entry.0);
        let steps = {
            let mut state = ctx.state();
            if !stays || state.is_decided_by_urn(&entry.1.urn) {
                continue;
            }
            carry_over(&mut state, entry, &entry.1.urn)
        };
        // Resources of a replaced provider refer to it until they are deleted or replaced, too.
        let Ok(steps) = steps else { continue };
        for step in steps {
            if StepExecutor::new(ctx).execute(step).await.is_err() {
                return;
            }
        }
    }
}

/// Returns whether the replacement of a pending delete is not finished: the new resource is not initialized, or was deleted
/// before a replacement that failed. The old resource may be the only one that works. Only a run that continues on errors
/// reaches its deletions with such a resource.
fn has_unfinished_successor(state: &DeploymentState, pending_delete: &ResourceState) -> bool {
    let urn = state.new_urn(&pending_delete.urn);
    let is_unfinished = |new: &ResourceState| !new.init_errors.is_empty() || new.pending_replacement;
    state.is_registered(urn) && state.ledger().entries_of(urn).any(|(_, new)| !new.delete && is_unfinished(new))
}

/// Returns the entries to delete, each with the kind of step that deletes it: those that were not registered, and
/// pending deletes; in a destroy, all entries. Views are deleted with their resource.
fn unregistered(ctx: &Context) -> Vec<(Entry, StepOp)> {
    let is_destroy = ctx.request.operation == Operation::Destroy;
    let state = ctx.state();
    let unknown = if is_destroy { HashSet::new() } else { state.within_not_constructed() };
    let loaded = state.loaded_entries().iter().filter(|(_, entry)| entry.view_of.is_none());
    let candidate = |(id, loaded): &Entry| {
        let now = state.ledger().get(*id)?;
        // If the deletion of the entry before a replacement failed or did not start, this run does not try it again.
        if unknown.contains(id) || state.is_deletion_unfinished(*id) {
            return None;
        }
        if !is_destroy && now.delete && has_unfinished_successor(&state, loaded) {
            return None;
        }
        // The parent may have been renamed meanwhile, and the entry been carried over under its new URN.
        let is_registered = !is_destroy && [&loaded.urn, &now.urn].into_iter().any(|urn| state.is_registered(urn));
        Some(((*id, Arc::clone(now)), deletion_step(now, is_registered)?))
    };
    loaded.filter_map(candidate).collect()
}
