//! Entry of the recorded list, with its number.

use std::sync::Arc;

use state::{EntryId, ResourceState};

/// An entry and its state.
pub(crate) type Entry = (EntryId, Arc<ResourceState>);
