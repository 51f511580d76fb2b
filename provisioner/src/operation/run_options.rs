//! Options of a run.

use std::sync::Arc;

use engine::DeploymentOptions;

use super::missing::MissingGuard;

/// Options of a run.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Options of its deployments.
    pub deployment: DeploymentOptions,
    /// Guard of the refreshes of the run; `None`: resources that are missing leave the state.
    pub missing: Option<Arc<MissingGuard>>,
    /// True if the run continues from a state that has lost its resources: see
    /// [`state::StackState::unexplained_empty`].
    pub allow_empty: bool,
}
