//! One file per operation: the staircase. Calls the rooms in order and owns no rule of its own.
//!
//! Enters: a stack that was read ([`StackRun`]), and what the user wants done. Leaves: a [`Report`]; events on the way.
//! Never here: decisions about resources, the grammar of files, terminals.

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

/// A stack, and everything that an operation on it works with.
#[derive(Clone)]
pub struct StackRun {
    /// What the files say.
    pub program: Program,
    /// The way to its state.
    pub access: StackAccess,
    /// Who asks for the lock.
    pub holder: LockHolder,
    /// How plugins are found and started.
    pub plugins: PluginRoom,
    /// Who listens.
    pub events: Arc<dyn EventSink>,
    /// The two ways to stop.
    pub signals: StopSignals,
    /// How the work is done.
    pub options: RunOptions,
    /// The stack's configuration: see [`open_config`].
    pub config: Vec<ConfigEntry>,
}

/// How plugins are found and started.
#[derive(Clone)]
pub struct PluginRoom {
    /// Their working directory: the root of the repository.
    pub directory: PathBuf,
    /// The environment that they get a part of.
    pub environment: HostEnvironment,
    /// What starts them.
    pub spawner: Spawner,
    /// Where they come from.
    pub sources: Sources,
    /// A folder to remember in what schemas say of types.
    pub type_facts: PathBuf,
    /// How long they may take.
    pub limits: Limits,
}

/// How the work is done.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// How many resources may be worked on at once.
    pub parallel: usize,
    /// Go on with what does not hang on a failure.
    pub continue_on_error: bool,
    /// What reads or deletes runs the program, too: see [`engine::DeploymentOptions::run_program`].
    pub run_program: bool,
    /// Which resources may be touched.
    pub scope: Scope,
    /// Resources to replace whether or not anything changed.
    pub replace: Vec<UrnPattern>,
    /// What an earlier reading found gone: who names it makes no mistake.
    pub gone: Vec<Urn>,
    /// What an import takes in.
    pub imports: Vec<ImportGoal>,
    /// In a destroy, keep protected resources and what they need instead of failing.
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

/// What an operation came to.
#[derive(Debug)]
pub struct Report {
    /// How its last phase ended, and what was done in it, or would be.
    pub summary: Summary,
    /// The state as it is now, or would be.
    pub snapshot: Snapshot,
    /// Mistakes in the files that showed only while they ran, and have not been told yet.
    pub diagnostics: Vec<Diagnostic>,
}

/// Why an operation could not be carried out. What went wrong with single resources is told as events instead.
#[derive(Debug, thiserror::Error)]
pub enum OperationError {
    /// A plugin could not be loaded.
    #[error("failed to load plugins: {}", chain(.0))]
    Plugins(HostError),
    /// The state could not be loaded, locked or saved.
    #[error(transparent)]
    State(#[from] StateError),
    /// The user stopped it before anything was done.
    #[error("stopped before anything was done")]
    Stopped,
    /// A creation was to be settled that is not pending.
    #[error("no creation of {name} is pending")]
    NotPending {
        /// What the user named.
        name: String,
        /// The names of those that are.
        pending: Vec<String>,
    },
    /// Nobody could read, change or delete some of what is recorded.
    #[error("no enabled plugin serves the package {package:?}, of which the state holds {}", names(urns))]
    Unserved {
        /// The package.
        package: String,
        /// Its resources.
        urns: Vec<Urn>,
    },
}

/// The names of resources, as many as can be taken in.
fn names(urns: &[Urn]) -> String {
    const MANY: usize = 10;
    let names: Vec<&str> = urns.iter().take(MANY).map(Urn::name).collect();
    let rest = if urns.len() > MANY { format!(" and {} more", urns.len() - MANY) } else { String::new() };
    names.join(", ") + &rest
}

impl StackRun {
    /// Locks the stack and loads its state, and tells what a run that died left.
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

/// Refuses a state of whose resources some could be neither read, changed nor deleted.
fn check_served(host: &PluginHost, snapshot: &Snapshot) -> Result<(), OperationError> {
    let unserved = |resource: &ResourceState| {
        let provider = TypeToken::new(resource.provider.as_ref()?.urn.type_token());
        let package = provider.provider_package()?;
        // What is kept when it leaves needs nobody.
        (!resource.retain_on_delete && package != BUILT_IN && !host.serves(package)).then(|| package.to_owned())
    };
    let mut found = snapshot.resources.iter().filter_map(|resource| Some((unserved(resource)?, resource.urn.clone())));
    let Some((package, first)) = found.next() else { return Ok(()) };
    let others = found.filter(|(other, _)| *other == package).map(|(_, urn)| urn);
    let urns = std::iter::once(first).chain(others).collect();
    Err(OperationError::Unserved { package, urns })
}
