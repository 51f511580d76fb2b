//! Resources that failed to initialize: they do not count as unchanged until a Create or an Update succeeds.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::events::{StepInfo, StepOp};
use state::{ResourceState, Snapshot};

use crate::fake_cloud::Call;

/// Returns the entries that lost their initialization errors without a Create or an Update that succeeded.
pub(crate) fn init_errors_without_update(base: &Snapshot, state: &Snapshot, calls: &[Call]) -> Vec<String> {
    let has_errors = |state: &&Arc<ResourceState>| !state.init_errors.is_empty() && !state.external && !state.delete;
    let errors: BTreeSet<&str> = base.resources.iter().filter(has_errors).map(|state| state.id_text()).collect();
    let changed = calls.iter().filter(|call| matches!(call.verb, "create" | "update") && call.succeeded);
    let changed: BTreeSet<&str> = changed.map(|call| &*call.id).collect();
    let live = state.resources.iter().filter(|state| state.custom && !state.delete && !state.external);
    live.filter(|state| state.init_errors.is_empty() && errors.contains(state.id_text()))
        .filter(|state| !changed.contains(state.id_text()))
        .map(|state| format!("{} lost its initialization errors without an update", state.id_text()))
        .collect()
}

/// Returns the live entries with initialization errors: after an update that succeeded there are none.
pub(crate) fn uninitialized_entries(state: &Snapshot) -> Vec<String> {
    let live = state.resources.iter().filter(|state| !state.delete && !state.external);
    live.filter(|state| !state.init_errors.is_empty())
        .map(|state| format!("{} counts as unchanged, but is not initialized", state.id_text()))
        .collect()
}

/// Returns the steps that leave a resource unchanged although it is not initialized.
pub(crate) fn unchanged_with_init_errors(steps: &[Arc<StepInfo>]) -> Vec<String> {
    let unchanged = steps.iter().filter(|step| step.op == StepOp::Same);
    let is_initialized = |old: &ResourceState| old.init_errors.is_empty() || old.external || old.pending_replacement;
    unchanged
        .filter(|step| step.old.as_ref().is_some_and(|old| !is_initialized(old)))
        .map(|step| format!("{} stays as it is, but is not initialized", step.urn))
        .collect()
}
