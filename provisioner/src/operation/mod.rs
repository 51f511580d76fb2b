//! Orchestration, one file per operation: calls the other modules in order and has no rules of its own.
//!
//! Enters: a loaded stack ([`StackRun`]), and the options of the operation. Leaves: a [`Report`]; events during the
//! run. Never here: decisions about resources, the grammar of files, terminals.

mod deploy;
mod destroy;
mod import;
mod plugins;
mod preview;
mod provision;
mod refresh;
mod stack_config;

use std::path::PathBuf;
use std::sync::Arc;

use bridge::error::chain;
use bridge::host::{HostError, PluginHost, Sources};
use bridge::process::{HostEnvironment, Spawner};
use bridge::provider::grpc::Limits;

use crate::program::Program;
use config::diagnostics::Diagnostic;
use engine::events::{EventSink, Summary};
use engine::{BUILT_IN, ConfigEntry, ImportGoal, Scope, StopSignals, UrnPattern};
use state::ResourceState;
use state::store::LockHolder;
use state::{Snapshot, StackAccess, StackState, StateError};

use pulumi_proto::urn::{TypeToken, Urn};

pub use destroy::destroy;
pub use import::import;
pub use plugins::Installed;
pub use preview::{preview, preview_destroy, preview_refresh};
pub use provision::{ProvisionOptions, provision};
pub use refresh::{Fate, RefreshOptions, recovery_text, refresh};
pub use stack_config::open_config;

/// Stack, with all that an operation on it needs.
#[derive(Clone)]
pub struct StackRun {
    /// Program that registers the resources of the stack's files.
    pub program: Program,
    /// Access to the recorded state of the stack.
    pub access: StackAccess,
    /// Holder that the lock of the stack is acquired for.
    pub holder: LockHolder,
    /// Settings for plugins: how they are found and started.
    pub plugins: PluginRoom,
    /// Sink that receives all events of the run.
    pub events: Arc<dyn EventSink>,
    /// Signals that stop or abort the run.
    pub signals: StopSignals,
    /// Options of the run.
    pub options: RunOptions,
    /// Configuration of the stack: see [`open_config`].
    pub config: Vec<ConfigEntry>,
}

/// Settings for plugins: how they are found and started.
#[derive(Clone)]
pub struct PluginRoom {
    /// Working directory of plugins: the root of the repository.
    pub directory: PathBuf,
    /// Environment of the host, of which plugins get a part.
    pub environment: HostEnvironment,
    /// Spawner of the plugins' processes.
    pub spawner: Spawner,
    /// Sources that packages are fetched from.
    pub sources: Sources,
    /// Folder that caches the facts about types which schemas state.
    pub type_facts: PathBuf,
    /// Time limits for quick calls to plugins.
    pub limits: Limits,
}

/// Options of a run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Maximum number of resources that are worked on at once.
    pub parallel: usize,
    /// True if a failure stops only the resources that depend on the failed one.
    pub continue_on_error: bool,
    /// True if a refresh or destroy also runs the program: see [`engine::DeploymentOptions::run_program`].
    pub run_program: bool,
    /// Resources that the run may touch.
    pub scope: Scope,
    /// Resources to replace even if nothing changed.
    pub replace: Vec<UrnPattern>,
    /// Resources that an earlier refresh found missing. A pattern that matches only these is no error.
    pub gone: Vec<Urn>,
    /// Resources that an import reads and records.
    pub imports: Vec<ImportGoal>,
    /// True if a destroy keeps protected resources and their dependencies instead of failing.
    pub exclude_protected: bool,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            parallel: 16,
            continue_on_error: false,
            run_program: false,
            scope: Scope::default(),
            replace: Vec::new(),
            gone: Vec::new(),
            imports: Vec::new(),
            exclude_protected: false,
        }
    }
}

/// Result of an operation.
#[derive(Debug)]
pub struct Report {
    /// Outcome of the last phase, and the number of steps by kind that it took, or would take.
    pub summary: Summary,
    /// State after the operation; in a preview, the state that the operation would leave.
    pub snapshot: Snapshot,
    /// Mistakes in the files that only running the program detects. They have not been reported yet.
    pub diagnostics: Vec<Diagnostic>,
}

/// Error that prevents an operation. Failures of single resources are reported as events instead.
#[derive(Debug, thiserror::Error)]
pub enum OperationError {
    /// A plugin could not be loaded.
    #[error("failed to load plugins: {}", chain(.0))]
    Plugins(HostError),
    /// The state could not be loaded, locked or saved.
    #[error(transparent)]
    State(#[from] StateError),
    /// The user stopped the operation before it changed anything.
    #[error("stopped before anything was done")]
    Stopped,
    /// The user settled a creation that is not pending.
    #[error("no creation of {name} is pending")]
    NotPending {
        /// Name that the user gave.
        name: String,
        /// Names of the pending creations.
        pending: Vec<String>,
    },
    /// No enabled plugin can read, update or delete some of the recorded resources.
    #[error("no enabled plugin serves the package {package:?}, of which the state holds {}", names(urns))]
    Unserved {
        /// Package that no enabled plugin serves.
        package: String,
        /// Recorded resources of the package.
        urns: Vec<Urn>,
    },
}

/// Returns the names of the first ten resources, and the number of the others.
fn names(urns: &[Urn]) -> String {
    const MANY: usize = 10;
    let names: Vec<&str> = urns.iter().take(MANY).map(Urn::name).collect();
    let rest = if urns.len() > MANY { format!(" and {} more", urns.len() - MANY) } else { String::new() };
    names.join(", ") + &rest
}

impl StackRun {
    /// Locks the stack, loads its state, and reports what was recovered from the journal of a crashed run.
    async fn open(&self, host: &PluginHost) -> Result<StackState, OperationError> {
        let state = StackState::open(self.access.clone(), &self.holder).await?;
        self.tell_recovery(state.recovered(), true);
        match check_served(host, state.snapshot()) {
            Ok(()) => Ok(state),
            Err(error) => {
                state.release().await?;
                Err(error)
            }
        }
    }
}

/// Refuses a state with resources of packages that no enabled plugin serves.
fn check_served(host: &PluginHost, snapshot: &Snapshot) -> Result<(), OperationError> {
    let unserved = |resource: &ResourceState| {
        let provider = TypeToken::new(resource.provider.as_ref()?.urn.type_token());
        let package = provider.provider_package()?;
        // A resource with `retainOnDelete` is removed from the state without a call to its provider.
        (!resource.retain_on_delete && package != BUILT_IN && !host.serves(package)).then(|| package.to_owned())
    };
    let mut found = snapshot.resources.iter().filter_map(|resource| Some((unserved(resource)?, resource.urn.clone())));
    let Some((package, first)) = found.next() else { return Ok(()) };
    let others = found.filter(|(other, _)| *other == package).map(|(_, urn)| urn);
    let urns = std::iter::once(first).chain(others).collect();
    Err(OperationError::Unserved { package, urns })
}
