//! Request for a deployment, with the options of its user.

use std::sync::Arc;

use pulumi_proto::urn::Urn;
use tokio_util::sync::CancellationToken;

use crate::events::{Operation, RunMode};

use crate::decisions::scope::{Scope, UrnPattern};
use crate::deletion_limit::DeletionLimit;
use crate::goal::{ConfigEntry, ImportGoal, ProgramGoals};
use crate::masking::SecretMasker;
use crate::missing::MissingApproval;
use crate::plan_guard::{PlanGuard, RandomSeeds};

/// Number of concurrent operations on resources, unless the user sets another one.
pub const DEFAULT_PARALLEL: u16 = 16;

/// Options of a deployment that its user sets. The default is an operation on all resources that stops at the first
/// failure.
#[derive(Clone, Debug)]
pub struct DeploymentOptions {
    /// True if a refresh or a destroy runs the program (`--run-program`): it updates provider resources and components,
    /// and reads or deletes resources with the providers of the program. A refresh before an update or a destroy then
    /// reads each resource when the program registers it, also with the providers of the program.
    pub run_program: bool,
    /// Maximal number of concurrent operations on resources.
    pub parallel: usize,
    /// Resources that the run may change.
    pub scope: Scope,
    /// Resources to replace even if they have not changed.
    pub replace: Vec<UrnPattern>,
    /// Resources that an earlier refresh has removed from the state: patterns in the options may still name them.
    pub removed_by_refresh: Vec<Urn>,
    /// True if resources that do not depend on a failed one are still deployed.
    pub continue_on_error: bool,
    /// Resources that an import operation imports.
    pub imports: Vec<ImportGoal>,
    /// True if a destroy keeps protected resources and their dependencies instead of failing.
    pub exclude_protected: bool,
    /// Limit on the resources that the run deletes or replaces; `None`: there is none.
    pub deletion_limit: Option<DeletionLimit>,
    /// True if the creation of a resource that an earlier run may have created fails (a pending create without an id). A preview
    /// shows it all the same.
    pub refuses_pending_creates: bool,
}

impl Default for DeploymentOptions {
    fn default() -> Self {
        Self {
            run_program: false,
            parallel: DEFAULT_PARALLEL.into(),
            scope: Scope::default(),
            replace: Vec::new(),
            removed_by_refresh: Vec::new(),
            continue_on_error: false,
            imports: Vec::new(),
            exclude_protected: false,
            deletion_limit: None,
            refuses_pending_creates: false,
        }
    }
}

/// Request for a deployment: an operation on a stack, with its options.
#[derive(Clone, Debug)]
pub struct DeploymentRequest {
    /// Name of the stack.
    pub stack: String,
    /// Name of the project.
    pub project: String,
    /// Operation on the stack.
    pub operation: Operation,
    /// Options that the user sets.
    pub options: DeploymentOptions,
    /// True for a preview, which changes nothing.
    pub preview: bool,
    /// True if all resources in scope are refreshed before they are changed.
    pub refresh: bool,
    /// Approval of the removal of resources that a refresh did not find; `None`: they are removed.
    pub missing: Option<Arc<dyn MissingApproval>>,
    /// Configuration of the stack, for default providers.
    pub config: Vec<ConfigEntry>,
    /// Goals of the program, for a refresh that does not run it; `None`: only the recorded entries are known.
    pub program_goals: Option<Arc<dyn ProgramGoals>>,
    /// Secrets to mask in recorded texts of providers. The deployment adds those that it learns of.
    pub masker: Arc<SecretMasker>,
    /// Guard that gives the seeds of the registrations and may refuse steps. By default, the seeds are random, and nothing is refused.
    pub guard: Arc<dyn PlanGuard>,
}

impl DeploymentRequest {
    /// Creates the request for an operation on a stack, with the default options.
    pub fn new(stack: impl Into<String>, project: impl Into<String>, operation: Operation) -> Self {
        Self {
            stack: stack.into(),
            project: project.into(),
            operation,
            options: DeploymentOptions::default(),
            preview: false,
            refresh: false,
            missing: None,
            config: Vec::new(),
            program_goals: None,
            masker: Arc::default(),
            guard: Arc::new(RandomSeeds::draw()),
        }
    }

    /// Returns the mode of the run: preview or apply.
    pub(crate) fn mode(&self) -> RunMode {
        if self.preview { RunMode::Preview } else { RunMode::Apply }
    }

    /// Returns whether a program registers the resources.
    pub fn has_program(&self) -> bool {
        match self.operation {
            Operation::Update => true,
            Operation::Refresh | Operation::Destroy => self.options.run_program,
            Operation::Import => false,
        }
    }
}

/// Signals that end a run early.
#[derive(Clone, Debug, Default)]
pub struct StopSignals {
    /// Starts nothing new, cancels the calls of providers, and records their replies.
    pub stop: CancellationToken,
    /// Returns at once. Operations in progress stay recorded as pending.
    pub abort: CancellationToken,
}
