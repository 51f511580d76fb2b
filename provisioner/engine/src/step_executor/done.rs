//! What a step leaves.

use std::sync::Arc;

use bridge::provider::ProviderError;
use state::ResourceState;

use crate::context::Context;
use crate::entry::Entry;

/// What a step leaves.
#[derive(Debug)]
pub(super) struct Done {
    /// The entry that it made or confirmed.
    pub(super) new: Option<Entry>,
    /// The resource exists but did not come up: it is recorded, and the step has failed all the same.
    pub(super) partial: Option<ProviderError>,
}

/// Numbers a new entry.
pub(super) fn new_entry(ctx: &Context, state: ResourceState) -> Entry {
    (ctx.state().ledger_mut().new_entry(), Arc::new(state))
}
