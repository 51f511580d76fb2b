//! Renames a resource.

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
    snapshot.replace_urn(from, &to);
    Ok(to)
}
