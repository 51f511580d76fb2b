//! Protects and taints entries.

use std::sync::Arc;

use pulumi_proto::urn::Urn;

use super::selection::Selection;
use crate::snapshot::Snapshot;

/// Flag of an entry that a state edit can set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryFlag {
    /// Protects the entry from deletion.
    Protect,
    /// Marks the entry for replacement by the next update.
    Taint,
}

/// Sets or clears a flag. Returns the URNs of the changed entries. Entries with a pending delete are not tainted.
pub fn set_flag(snapshot: &mut Snapshot, selected: Selection<'_>, flag: EntryFlag, value: bool) -> Vec<Urn> {
    let mut changed = Vec::new();
    for state in &mut snapshot.resources {
        let has = match flag {
            EntryFlag::Protect => state.protect,
            EntryFlag::Taint => state.taint,
        };
        if !selected(&state.urn) || has == value || (flag == EntryFlag::Taint && state.delete) {
            continue;
        }
        let state = Arc::make_mut(state);
        match flag {
            EntryFlag::Protect => state.protect = value,
            EntryFlag::Taint => state.taint = value,
        }
        changed.push(state.urn.clone());
    }
    changed
}
