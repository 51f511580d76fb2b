//! Renames a resource.

use std::sync::Arc;

use pulumi_proto::urn::{NameError, Urn};

use super::error::StateEditError;
use crate::snapshot::Snapshot;

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
    replace_urn(snapshot, from, &to);
    Ok(to)
}

/// Replaces a URN in all entries and references.
pub(super) fn replace_urn(snapshot: &mut Snapshot, from: &Urn, to: &Urn) {
    let pending = snapshot.pending_operations.iter_mut().map(|pending| &mut pending.resource);
    for state in snapshot.resources.iter_mut().chain(pending) {
        let has_provider = state.provider.as_ref().is_some_and(|provider| provider.urn == *from);
        let is_view = state.view_of.as_ref() == Some(from);
        if state.urn != *from && !has_provider && !is_view && !state.references().any(|urn| urn == from) {
            continue;
        }
        let state = Arc::make_mut(state);
        if state.urn == *from {
            state.urn = to.clone();
        }
        if let Some(provider) = state.provider.as_mut().filter(|provider| provider.urn == *from) {
            provider.urn = to.clone();
        }
        let references = (state.view_of.iter_mut())
            .chain(&mut state.parent)
            .chain(&mut state.dependencies)
            .chain(state.property_dependencies.values_mut().flatten())
            .chain(&mut state.deleted_with)
            .chain(&mut state.replace_with);
        for urn in references.filter(|urn| **urn == *from) {
            *urn = to.clone();
        }
    }
}
