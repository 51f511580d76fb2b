//! Resources that are removed from the state although the owner that they are `deletedWith` stays.

use std::sync::Arc;

use hashbrown::HashMap;
use pulumi_proto::urn::Urn;
use state::{EntryId, ResourceState};

use crate::context::Context;
use crate::events::{Message, Severity, StepOp};

/// Reports resources that were removed from the state without a call because they were to be deleted with their owner,
/// which stays after all: the owner is protected, needed, or its own deletion failed. As in Pulumi, the resources are
/// not recorded any more.
pub(super) fn report_orphans(
    ctx: &Context,
    deletions: &HashMap<EntryId, StepOp>,
    entries: &HashMap<EntryId, Arc<ResourceState>>,
) {
    let orphans: Vec<(&Arc<ResourceState>, &Urn)> = {
        let state = ctx.state();
        // An owner with a successor in this run has been deleted, or will be.
        let stays =
            |urn: &Urn| !state.is_replaced(urn) && state.ledger().entries_of(urn).any(|(_, entry)| !entry.delete);
        let is_forgotten = |id: &EntryId| state.ledger().get(*id).is_none() && !state.is_released_from_owner(*id);
        let orphan = |id: &EntryId| {
            // A pending delete is deleted with the pending delete of its owner.
            let is_managed = |entry: &&Arc<ResourceState>| {
                entry.custom && !entry.external && !entry.retain_on_delete && !entry.delete
            };
            let entry = entries.get(id).filter(is_managed)?;
            let owner = entry.deleted_with.as_ref()?;
            (!entry.pending_replacement && state.is_deleted(owner) && stays(owner)).then_some((entry, owner))
        };
        deletions.keys().filter(|id| is_forgotten(id)).filter_map(orphan).collect()
    };
    for (entry, owner) in orphans {
        let owner = owner.name();
        let (text, hint) = if ctx.is_preview() {
            let text = format!("it would be deleted with {owner}, which stays, and would not be recorded any more");
            (text, "remove `deletedWith` from it, so that it is deleted on its own".to_owned())
        } else {
            let text = format!("it was to be deleted with {owner}, which stays, and is not recorded any more");
            (text, format!("check whether {:?} still exists, and delete it or import it", entry.id_text()))
        };
        ctx.emit_message(&entry.urn, None, Message { hint: Some(hint), ..Message::new(Severity::Warning, text) });
    }
}
