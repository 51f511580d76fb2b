//! Protects and taints entries.

use std::sync::Arc;

use pulumi_proto::urn::Urn;

use super::selection::Selection;
use crate::snapshot::Snapshot;

/// A mark that an entry can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It must not be deleted.
    Protect,
    /// The next update replaces it.
    Taint,
}

/// Sets or takes a mark, and returns the entries that did not have it, or had it. What awaits deletion is not replaced.
pub fn mark(snapshot: &mut Snapshot, selected: Selection<'_>, mark: Mark, value: bool) -> Vec<Urn> {
    let mut changed = Vec::new();
    for state in &mut snapshot.resources {
        let has = match mark {
            Mark::Protect => state.protect,
            Mark::Taint => state.taint,
        };
        if !selected(&state.urn) || has == value || (mark == Mark::Taint && state.delete) {
            continue;
        }
        let state = Arc::make_mut(state);
        match mark {
            Mark::Protect => state.protect = value,
            Mark::Taint => state.taint = value,
        }
        changed.push(state.urn.clone());
    }
    changed
}
