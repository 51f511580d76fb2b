//! Deletions that would delete the actual resource of another entry.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use state::{Entry, EntryId, ResourceState};

use crate::context::Context;
use crate::events::StepOp;
use crate::messages;
use crate::step_generator::{SharingEntry, others_of_same_resource};

/// Turns the deletion of an entry into its removal from the state if no Delete may be sent for it: another entry that
/// stays, or is retained, names the same resource. The user is told which entry keeps the resource. Of several entries
/// that are all deleted, only the first gets a Delete, unless they may name two resources. Returns the removed entries whose resource stays.
///
/// `loaded` are the entries in their order, `staying` those that are not deleted.
pub(super) async fn withhold_deletions(
    ctx: &Context,
    loaded: &[Entry],
    staying: &HashSet<EntryId>,
    deletions: &mut HashMap<EntryId, StepOp>,
) -> HashSet<EntryId> {
    let (mut kept, mut deleted) = (HashSet::new(), HashSet::new());
    let shared = ctx.state().entries_with_shared_id();
    for (id, _) in loaded.iter().filter(|(id, _)| shared.contains(id)) {
        let removal = match deletions.get(id) {
            Some(StepOp::Delete) => StepOp::Discard,
            Some(StepOp::DeleteReplaced) => StepOp::DiscardReplaced,
            _ => continue,
        };
        let entry = ctx.state().ledger().get(*id).cloned();
        let sends_delete =
            |entry: &ResourceState| !entry.retain_on_delete && is_removed(*id, entry, deletions, staying);
        let Some(entry) = entry.filter(|entry| sends_delete(entry)) else { continue };
        let others = others_of_same_resource(ctx, &(*id, Arc::clone(&entry))).await;
        let is_kept = |(id, other): &&Entry| !other.delete && !is_removed(*id, other, deletions, staying);
        let warn = |keeper: &SharingEntry| {
            let (other, stack) = (&keeper.entry.1, &ctx.request.stack);
            ctx.emit_message(&entry.urn, None, messages::shared_resource(&entry, other, keeper.is_certain, stack));
        };
        if let Some(keeper) = others.iter().find(|other| is_kept(&&other.entry)) {
            warn(keeper);
            kept.insert(*id);
        } else if let Some(retained) = others.iter().find(|other| other.entry.1.retain_on_delete) {
            if !retained.is_certain {
                warn(retained);
            }
            kept.insert(*id);
        } else if !others.iter().any(|other| other.is_certain && deleted.contains(&other.entry.0)) {
            deleted.insert(*id);
            continue;
        }
        deletions.insert(*id, removal);
    }
    kept
}

/// Returns whether this phase removes an entry from the state. A protected entry stays, and its step reports this.
pub(super) fn is_removed(
    id: EntryId,
    entry: &ResourceState,
    deletions: &HashMap<EntryId, StepOp>,
    staying: &HashSet<EntryId>,
) -> bool {
    deletions.contains_key(&id) && !staying.contains(&id) && (entry.delete || !entry.protect)
}
