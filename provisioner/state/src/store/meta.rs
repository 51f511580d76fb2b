//! Metadata of a store: the version of its layout (docs/spec/state-and-secrets.md#2).

use bridge::fs::utf8;
use bridge::yaml;

use super::error::{Damage, StoreError};
use super::layout::Layout;

/// Metadata of a store with projects.
pub(super) const TEXT: &str = "version: 1\n";

/// Returns the layout that the metadata at a location name.
pub(super) fn layout(metadata: Vec<u8>, location: &str) -> Result<Layout, StoreError> {
    let damaged = |source| StoreError::Damaged { location: location.to_owned(), source };
    let text = utf8(metadata).map_err(|error| damaged(Damage::Utf8(error)))?;
    let meta: serde_yaml::Value = yaml::from_str(&text).map_err(|error| damaged(Damage::Yaml(error)))?;
    match meta.get("version").and_then(serde_yaml::Value::as_u64) {
        Some(0) => Ok(Layout::Legacy),
        Some(1) => Ok(Layout::Projects),
        Some(version) => Err(StoreError::TooNew { location: location.to_owned(), version }),
        None => Err(damaged(Damage::NoVersion)),
    }
}
