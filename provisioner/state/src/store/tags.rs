//! Tags of a stack, and their stored form (docs/spec/state-and-secrets.md#7).

use std::collections::BTreeMap;

use bridge::json;
use serde::{Deserialize, Serialize};

use super::error::{Damage, StoreError};

/// Tags of a stack, by name.
pub type Tags = BTreeMap<String, String>;

/// Supported version of the file of tags.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct StoredTags {
    version: u32,
    tags: Tags,
}

/// Returns the text of tags.
pub(super) fn write(tags: Tags) -> String {
    serde_json::to_string(&StoredTags { version: VERSION, tags }).expect("texts are always JSON")
}

/// Parses the tags at a location.
pub(super) fn read(content: &[u8], location: &str) -> Result<Tags, StoreError> {
    let damaged = |source| StoreError::Damaged { location: location.to_owned(), source };
    let stored: StoredTags = json::from_slice(content).map_err(|error| damaged(Damage::Tags(error)))?;
    match stored.version {
        VERSION => Ok(stored.tags),
        version => Err(damaged(Damage::TagsVersion(version))),
    }
}
