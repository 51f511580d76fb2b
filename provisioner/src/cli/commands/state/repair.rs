//! `sc state repair`: repairs an invalid state, and records what a journal has that cannot be merged.

use bridge::shell::operand;
use pulumi_proto::resource_id::ResourceId;
use state::state_edit::{self, CreationTreatment, Repair};
use state::{ResourceState, Snapshot, UnmergedJournal};

use super::change::{Change, edit_error};
use crate::cli::exit::CliError;

/// Records the creations of journals, and repairs the snapshot. Saving the state removes the journals.
pub(super) fn edit(snapshot: &mut Snapshot, journals: &[UnmergedJournal]) -> Result<Vec<Change>, CliError> {
    let mut changes = Vec::new();
    for UnmergedJournal { path, creations } in journals {
        let treated = state_edit::record_creations(snapshot, creations);
        changes.extend(treated.iter().map(|(state, treatment)| creation_change(state, treatment)));
        changes.push(Change { verb: "remove", detail: format!("the journal {}", path.display()), ..Change::default() });
    }
    let repair = state_edit::repair_snapshot(snapshot).map_err(edit_error)?;
    changes.extend(repair_changes(&repair));
    Ok(changes)
}

/// Returns the change for a resource that a journal records as created.
fn creation_change(state: &ResourceState, treatment: &CreationTreatment) -> Change {
    let (name, id) = (state.urn.name(), state.id_text());
    let import = format!("{name}={id}");
    match treatment {
        CreationTreatment::Entry => Change::new("record", &state.urn).with_id(state),
        CreationTreatment::PendingCreate => {
            let known = state.id.as_ref().map(|id| format!(" with the id {:?}", id.as_str())).unwrap_or_default();
            let advice = match state.id {
                Some(_) => "the next run reads it once its provider and parent are recorded".to_owned(),
                None => "it may exist: `sc refresh` asks for its id, or clears the pending create".to_owned(),
            };
            let detail = format!("as a pending create{known}");
            Change { detail, advice, ..Change::new("record", &state.urn) }
        }
        CreationTreatment::OtherId(recorded) => {
            let recorded = ResourceId::text(Some(recorded));
            let advice = format!(
                "{recorded:?} is recorded. If the ids name two resources, find out which one is in use; to record {id:?} \
                 instead, run `sc state rm {}`, then `sc import {}`. Delete the other one only if both exist",
                operand(name),
                operand(&import)
            );
            Change { advice, ..Change::new("leave", &state.urn).with_id(state) }
        }
        CreationTreatment::OtherUrn(urn) => {
            let advice = format!(
                "{} is recorded with this id. If that is another resource, run `sc import {}`; otherwise nothing \
                 is missing, and nothing is to be deleted",
                urn.name(),
                operand(&import)
            );
            Change { advice, ..Change::new("leave", &state.urn).with_id(state) }
        }
    }
}

fn repair_changes(repair: &Repair) -> Vec<Change> {
    let moved = repair.moved.iter().map(|urn| Change::new("move", urn));
    let pruned = repair.pruned.iter().map(|(urn, relation, target)| Change {
        detail: format!("loses its {relation} {}", target.name()),
        ..Change::new("prune", urn)
    });
    let renamed = repair.renamed.iter().map(|(urn, to)| Change { detail: to.to_string(), ..Change::new("call", urn) });
    let checksum = repair.checksum.as_ref().map(|wrong| Change {
        verb: "replace",
        detail: format!("the checksum of its manifest, {wrong:?}"),
        ..Change::default()
    });
    moved.chain(pruned).chain(renamed).chain(checksum).collect()
}
