//! Edits of the entries that a predicate selects, or of one: protection, taint, name.

use std::sync::Arc;

use pulumi_proto::urn::{NameError, Urn};

use super::error::StateEditError;
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

/// Renames a resource in its entries and in all references to it. Returns its new URN.
///
/// # Errors
/// [`StateEditError::NameTaken`], [`StateEditError::InvalidName`].
pub fn rename_resource(snapshot: &mut Snapshot, from: &Urn, name: &str) -> Result<Urn, StateEditError> {
    let invalid = |error| StateEditError::InvalidName(name.to_owned(), error);
    let prefix = from.as_str().strip_suffix(from.name()).unwrap_or_default();
    if name.is_empty() || name.starts_with("urn:") {
        return Err(invalid(NameError::Urn(prefix.to_owned())));
    }
    let to: Urn = format!("{prefix}{name}").parse().map_err(invalid)?;
    if snapshot.resources.iter().any(|state| state.urn == to) {
        return Err(StateEditError::NameTaken(to));
    }
    snapshot.replace_urn(from, &to);
    Ok(to)
}

/// Predicate that selects entries by their URNs.
pub type Selection<'a> = &'a dyn Fn(&Urn) -> bool;
