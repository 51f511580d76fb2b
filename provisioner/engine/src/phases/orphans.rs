//! Resources that are removed from the state although the resource that their `deletedWith` names stays.

use std::sync::Arc;

use bridge::message_text::MessageText;
use hashbrown::HashMap;
use pulumi_proto::urn::Urn;
use state::{EntryId, ResourceState};

use crate::context::Context;
use crate::events::{Message, Severity, StepOp};

/// Reports resources that were removed from the state without a call because the resource that their `deletedWith`
/// names was to be deleted, and stays after all: it is protected or needed, or its deletion failed. As in Pulumi, the
/// orphans are not recorded any more.
pub(super) fn report_orphans(
    ctx: &Context,
    deletions: &HashMap<EntryId, StepOp>,
    entries: &HashMap<EntryId, Arc<ResourceState>>,
) {
    let orphans: Vec<(&Arc<ResourceState>, &Urn)> = {
        let state = ctx.state();
        // A resource that this run replaces has been deleted, or will be.
        let stays = |urn: &Urn| {
            !state.is_marked_for_replacement(urn) && state.ledger().entries_of(urn).any(|(_, entry)| !entry.delete)
        };
        let was_removed = |id: &EntryId| state.ledger().get(*id).is_none() && !state.is_deleted_with_released(*id);
        let orphan = |id: &EntryId| {
            // A pending delete is deleted with the pending delete that its `deletedWith` names.
            let is_managed = |entry: &&Arc<ResourceState>| {
                entry.custom && !entry.external && !entry.retain_on_delete && !entry.delete
            };
            let entry = entries.get(id).filter(is_managed)?;
            let deleted_with = entry.deleted_with.as_ref()?;
            let is_orphan =
                !entry.pending_replacement && state.is_marked_for_deletion(deleted_with) && stays(deleted_with);
            is_orphan.then_some((entry, deleted_with))
        };
        deletions.keys().filter(|id| was_removed(id)).filter_map(orphan).collect()
    };
    for (entry, deleted_with) in orphans {
        let deleted_with = deleted_with.name();
        let (text, hint) = if ctx.is_preview() {
            let text = MessageText::new(format_args!(
                "it would be deleted with {deleted_with}, which stays, and would not be recorded any more"
            ));
            (text, "remove `deletedWith` from it, so that it is deleted on its own".into())
        } else {
            let text = MessageText::new(format_args!(
                "it was to be deleted with {deleted_with}, which stays, and is not recorded any more"
            ));
            (
                text,
                MessageText::new(format_args!(
                    "check whether {:?} still exists, and delete it or import it",
                    entry.id_text()
                )),
            )
        };
        ctx.emit_message(&entry.urn, None, Message { hint: Some(hint), ..Message::new(Severity::Warning, text) });
    }
}
