//! Options of a run.

use std::sync::Arc;

use engine::{DeletionLimit, ImportGoal, Scope, UrnPattern};
use pulumi_proto::urn::Urn;

use super::missing::MissingGuard;

/// Options of a run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Maximum number of concurrent resource operations.
    pub parallel: usize,
    /// True if a failure stops only the resources that depend on the failed one.
    pub continue_on_error: bool,
    /// True if a refresh or a destroy runs the program, and a refresh before an update reads resources as the program
    /// registers them: see [`engine::DeploymentOptions::run_program`].
    pub run_program: bool,
    /// Targets and excludes of the run.
    pub scope: Scope,
    /// Resources to replace even if nothing changed.
    pub replace: Vec<UrnPattern>,
    /// Resources that an earlier refresh found deleted. A target pattern that matches only these is not an error.
    pub removed_by_refresh: Vec<Urn>,
    /// Resources that an import reads and records.
    pub imports: Vec<ImportGoal>,
    /// True if a destroy excludes protected resources and their dependencies instead of failing.
    pub exclude_protected: bool,
    /// Limit on the resources that the run deletes or replaces; `None`: there is none.
    pub deletion_limit: Option<DeletionLimit>,
    /// Guard of the refreshes of the run; `None`: resources that are missing leave the state.
    pub missing: Option<Arc<MissingGuard>>,
    /// True if the run continues from a state that has lost its resources: see
    /// [`state::StackState::unexplained_empty`].
    pub allow_empty: bool,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            parallel: 16,
            continue_on_error: false,
            run_program: false,
            scope: Scope::default(),
            replace: Vec::new(),
            removed_by_refresh: Vec::new(),
            imports: Vec::new(),
            exclude_protected: false,
            deletion_limit: None,
            missing: None,
            allow_empty: false,
        }
    }
}
