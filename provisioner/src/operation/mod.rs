//! One file per operation: the staircase. Calls the rooms in order and owns no rule of its own.
//!
//! Enters: a stack that was read ([`StackRun`]), and what the user wants done. Leaves: a [`Report`]; events on the way.
//! Never here: decisions about resources, the grammar of files, terminals.

mod deploy;
mod destroy;
mod plugins;
mod preview;
mod provision;
mod refresh;

use std::path::PathBuf;
use std::sync::Arc;

use bridge::host::{HostError, Sources};
use bridge::process::Spawner;
use bridge::provider::grpc::Limits;
use bridge::source::HostEnvironment;

use crate::config::diagnostics::Diagnostic;
use crate::deployment::{Scope, StopSignals, UrnPattern};
use crate::events::{EventSink, Summary};
use crate::program::Program;
use crate::state::store::LockHolder;
use crate::state::{Snapshot, StackAccess, StateError};

pub use destroy::destroy;
pub use preview::{preview, preview_destroy, preview_refresh};
pub use provision::{ProvisionOptions, provision};
pub use refresh::refresh;

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
    /// Which resources may be touched.
    pub scope: Scope,
    /// Resources to replace whether or not anything changed.
    pub replace: Vec<UrnPattern>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self { parallel: 16, continue_on_error: false, scope: Scope::default(), replace: Vec::new() }
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
    #[error("failed to load plugins: {}", .0.message)]
    Plugins(HostError),
    /// The state could not be loaded, locked or saved.
    #[error(transparent)]
    State(#[from] StateError),
}
