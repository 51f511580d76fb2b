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
    /// Partial failure: the provider could not initialize the resource. `new` is recorded nevertheless, and the step
    /// fails with this error.
    pub(super) partial: Option<ProviderError>,
}

/// Numbers a new entry, and masks secrets in its errors of initialization.
pub(super) fn new_entry(ctx: &Context, mut state: ResourceState) -> Entry {
    ctx.mask_init_errors(&mut state);
    (ctx.state().ledger_mut().new_entry(), Arc::new(state))
}
