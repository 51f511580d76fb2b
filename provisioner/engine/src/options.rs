//! What a deployment is told to do.

use pulumi_proto::urn::Urn;
use tokio_util::sync::CancellationToken;

use crate::events::Operation;

use crate::config_entry::ConfigEntry;
use crate::decisions::scope::{Scope, UrnPattern};
use crate::goal::ImportGoal;
use crate::run_mode::RunMode;

/// What a deployment is told to do.
#[derive(Clone, Debug)]
pub struct DeploymentOptions {
    /// Name of the stack.
    pub stack: String,
    /// Name of the project.
    pub project: String,
    /// What is done.
    pub operation: Operation,
    /// Ask providers what they would do; change nothing.
    pub preview: bool,
    /// Read everything first.
    pub refresh: bool,
    /// A refresh and a destroy, too, run the program: provider resources and components are brought up to date, and what is
    /// read is read by the providers that the program describes. A reading before an update or a destroy then happens where
    /// the program registers the resource.
    pub run_program: bool,
    /// How many resources may be worked on at once.
    pub parallel: usize,
    /// Which resources may be touched.
    pub scope: Scope,
    /// Resources to replace whether or not anything changed.
    pub replace: Vec<UrnPattern>,
    /// What an earlier reading found gone: who names it makes no mistake.
    pub gone: Vec<Urn>,
    /// Go on with what does not hang on a failure.
    pub continue_on_error: bool,
    /// What an import takes in.
    pub imports: Vec<ImportGoal>,
    /// In a destroy, keep protected resources and what they need instead of failing.
    pub exclude_protected: bool,
    /// The stack's configuration, for default providers.
    pub config: Vec<ConfigEntry>,
}

impl DeploymentOptions {
    /// Everything of a stack, sixteen at a time, stopping at the first failure.
    pub fn new(stack: impl Into<String>, project: impl Into<String>, operation: Operation) -> Self {
        Self {
            stack: stack.into(),
            project: project.into(),
            operation,
            preview: false,
            refresh: false,
            run_program: false,
            parallel: 16,
            scope: Scope::default(),
            replace: Vec::new(),
            gone: Vec::new(),
            continue_on_error: false,
            imports: Vec::new(),
            exclude_protected: false,
            config: Vec::new(),
        }
    }

    /// Returns whether providers and state are changed.
    pub(crate) fn mode(&self) -> RunMode {
        if self.preview { RunMode::Preview } else { RunMode::Apply }
    }

    /// Whether a program drives the deployment.
    pub fn has_program(&self) -> bool {
        match self.operation {
            Operation::Update => true,
            Operation::Refresh | Operation::Destroy => self.run_program,
            Operation::Import => false,
        }
    }
}

/// The two ways to end a run early.
#[derive(Clone, Debug, Default)]
pub struct StopSignals {
    /// Start nothing new, ask providers to come to an end, record what they answer.
    pub stop: CancellationToken,
    /// Return at once; what is under way stays recorded as pending.
    pub abort: CancellationToken,
}
