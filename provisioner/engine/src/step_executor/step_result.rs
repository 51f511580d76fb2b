//! Result of a step.

use std::sync::Arc;

use bridge::provider::ProviderError;
use state::ResourceState;

use crate::context::Context;
use crate::entry::Entry;

/// Result of a step.
#[derive(Debug)]
pub(super) struct StepResult {
    /// Entry that the step made or confirmed.
    pub(super) new: Option<Entry>,
    /// Error of a resource that exists but was not initialized: it is recorded, and the step has failed nevertheless.
    pub(super) partial: Option<ProviderError>,
}

/// Numbers a new entry.
pub(super) fn new_entry(ctx: &Context, state: ResourceState) -> Entry {
    (ctx.state().ledger_mut().new_entry(), Arc::new(state))
}
