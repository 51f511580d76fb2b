//! Orchestration of operations, one file each: calls the other modules in order and has no rules of its own.
//!
//! [`Stacks::read`] loads stacks, [`Stacks::access`] opens their states, [`Stacks::run`] puts a run together ([`StackRun`]), and
//! an operation carries it out. Output: a [`Report`]; events during the run. One process can hold several runs: what the
//! system knows of the process and of the caller comes in as values ([`ProcessIdentity`], [`config::ProcessContext`]).
//! Excluded: decisions about resources, the grammar of files, terminals, the environment.

mod approval;
mod clouds;
mod core_packages;
mod deploy;
mod destroy;
mod import;
mod key_access;
mod key_stack;
mod locking;
mod migration;
mod missing;
mod missing_reports;
mod names;
mod plugin_events;
mod plugin_settings;
mod plugins;
mod preview;
mod provision;
mod refresh;
mod remote_store;
mod run_options;
mod secrets_access;
mod secrets_provider_change;
mod secrets_provider_error;
mod settings_file;
mod setup_error;
mod stack_config;
mod stack_run;
mod stacks;
mod standalone;
mod state_access;
mod store_access;
mod store_options;
mod validate;

use std::collections::BTreeSet;

use bridge::error::{Hint, chain};
use bridge::host::{HostError, PluginHost};
use bridge::message_text::MessageText;

use config::diagnostics::Diagnostic;
use engine::events::{Event, Message, Operation, Severity, Summary};
use engine::{BUILT_IN, ProviderReadings};
use state::{Snapshot, StackState, StateError, UnexplainedEmptyState};

use pulumi_proto::urn::{TypeToken, Urn};

use crate::registry::packages::CorePackage;

use self::core_packages::CorePackagesError;
use self::names::names;
use self::secrets_access::other_provider_text;

pub use approval::{Agreement, Approval};
pub use core_packages::{
    CorePackages, DownloadApproval, LocatedPackage, PackageDownload, PackageLocation, PackageRequest,
};
pub use destroy::destroy;
pub use import::import;
pub use key_stack::key_stack;
pub use missing::{MissingGuard, MissingLimit, MissingQuestion};
pub use plugin_settings::PluginSettings;
pub use plugins::{InstalledPlugin, digest_of_local_plugin};
pub use preview::{preview, preview_destroy, preview_refresh};
pub use provision::{ProvisionOptions, provision};
pub use refresh::{PendingCreateResolution, RefreshOptions, obsolete_text, recovery_text, refresh};
pub use run_options::RunOptions;
pub use secrets_access::{secrets_change_text, secrets_diagnostic};
pub use secrets_provider_error::SecretsProviderError;
pub use settings_file::{check_settings, move_settings, settings_file};
pub use setup_error::{SetupError, UnsupportedTarget, rename_hint};
pub use stack_run::{RunInputs, StackRun};
pub use stacks::{ProcessIdentity, Selection, Stacks, StacksRead, StacksRequest, check_owner};
pub use state_access::ResumedRename;
pub use validate::validate;

/// Result of an operation.
#[derive(Debug)]
pub struct Report {
    /// Outcome of the last phase, and the number of its steps by kind.
    pub summary: Summary,
    /// State after the operation; in a preview, the predicted state.
    pub snapshot: Snapshot,
    /// Errors in the files that are detected only while the program runs. They are not reported yet.
    pub diagnostics: Vec<Diagnostic>,
    /// Results of reading recorded resources, by provider.
    pub readings: Vec<ProviderReadings>,
    /// URNs of the resources that were deleted; in a preview, of those that would be.
    pub deleted: BTreeSet<Urn>,
    /// True if the refresh was refused because of missing resources, and nothing was recorded.
    pub is_refused: bool,
}

/// Error that prevents an operation. Failures of resources are reported as events instead.
#[derive(Debug, thiserror::Error)]
pub enum OperationError {
    /// A plugin could not be loaded.
    #[error("failed to load plugins: {}", MessageText::chain(.error))]
    Plugins {
        /// Failure of the plugin.
        error: HostError,
        /// Position of the plugin's declaration, if the plugin is one of a stack.
        found: Vec<Diagnostic>,
    },
    /// Several plugins could not be fetched. No plugin was started.
    #[error("failed to load {} plugins; nothing was changed", .0.len())]
    SeveralPlugins(Vec<Diagnostic>),
    /// Packages of core types could not be installed.
    #[error("packages of core types cannot be installed")]
    Packages(Vec<Diagnostic>),
    /// The user declined the download of these packages of core types.
    #[error("the download of packages of core types was declined: {}; nothing was changed", package_names(.0))]
    DownloadDeclined(Vec<CorePackage>),
    /// The state could not be loaded, locked or saved.
    #[error(transparent)]
    State(#[from] StateError),
    /// The user stopped the operation before it changed anything.
    #[error("stopped before any change was made")]
    Stopped,
    /// The user named a pending create that does not exist.
    #[error("there is no pending create of {name}")]
    NotPending {
        /// Name that the user gave.
        name: String,
        /// Names of the resources with pending creates.
        pending: Vec<String>,
    },
    /// The schema of a plugin could not be read. Nothing was changed.
    #[error("{}", chain(.0))]
    Schema(HostError),
    /// The schemas of the plugins lack types or properties of the stack's resources. Nothing was changed.
    #[error("the resources of the stack have {}; nothing was changed", count_errors(.0))]
    Types(Vec<Diagnostic>),
    /// No enabled plugin can read, update or delete some of the recorded resources.
    #[error("no enabled plugin serves the package {package:?} of recorded resources: {}", names(urns))]
    Unserved {
        /// Package that no enabled plugin serves.
        package: String,
        /// Recorded resources of the package.
        urns: Vec<Urn>,
    },
}

impl OperationError {
    /// Returns the errors in the files of the stack that are the reason; they are not reported yet.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Self::Plugins { found, .. } | Self::SeveralPlugins(found) | Self::Packages(found) | Self::Types(found) => {
                found
            }
            Self::DownloadDeclined(_)
            | Self::State(_)
            | Self::Stopped
            | Self::NotPending { .. }
            | Self::Schema(_)
            | Self::Unserved { .. } => &[],
        }
    }
}

impl Hint for OperationError {
    fn hint(&self) -> Option<MessageText> {
        match self {
            Self::Plugins { error, .. } | Self::Schema(error) => error.hint(),
            Self::State(error) => error.hint(),
            Self::Unserved { .. } => {
                Some("declare and enable the plugin in `plugins`: it is needed to delete these resources".into())
            }
            Self::DownloadDeclined(_) => {
                Some("declare plugins of these packages in `plugins`, or run `sc plugin install`".into())
            }
            Self::NotPending { pending, .. } => Some(match pending.as_slice() {
                [] => "there are no pending creates: omit --import-pending-creates".into(),
                pending => MessageText::new(format_args!("the pending creates are: {}", pending.join(", "))),
            }),
            // The diagnostics have their own.
            Self::Types(_) | Self::Packages(_) | Self::SeveralPlugins(_) | Self::Stopped => None,
        }
    }
}

impl From<CorePackagesError> for OperationError {
    fn from(error: CorePackagesError) -> Self {
        match error {
            CorePackagesError::NotInstalled(found) => Self::Packages(found),
            CorePackagesError::Declined(packages) => Self::DownloadDeclined(packages),
            CorePackagesError::Stopped => Self::Stopped,
        }
    }
}

fn count_errors(found: &[Diagnostic]) -> String {
    if found.len() == 1 { "1 error".to_owned() } else { format!("{} errors", found.len()) }
}

/// Returns the names and versions of packages.
fn package_names(packages: &[CorePackage]) -> String {
    let names: Vec<String> = packages.iter().map(|package| format!("{} {}", package.name, package.version)).collect();
    names.join(", ")
}

impl StackRun {
    /// Locks the stack, loads its state, and reports operations that were recovered from the journal of a crashed run.
    async fn open(&self, host: &PluginHost, operation: Operation) -> Result<StackState, OperationError> {
        let state = self.lock_and_load().await?;
        self.report_recovery(state.recovered(), true);
        self.report_obsolete(state.obsolete());
        self.report_secrets_change(&state);
        let emptied = state.unexplained_empty().cloned();
        self.report_unexplained_empty(emptied.as_ref().filter(|_| self.options.allow_empty));
        let checked = match emptied.filter(|_| !self.options.allow_empty) {
            Some(emptied) => Err(StateError::from(Box::new(emptied)).into()),
            None => self.check_recorded(host, operation, state.snapshot()).await,
        };
        match checked {
            Ok(()) => Ok(state),
            Err(error) => {
                state.release().await?;
                Err(error)
            }
        }
    }

    /// Loads the packages that only recorded resources need. Checks that each recorded resource is served, and the references
    /// to outputs.
    async fn check_recorded(
        &self,
        host: &PluginHost,
        operation: Operation,
        recorded: &Snapshot,
    ) -> Result<(), OperationError> {
        self.load_recorded_packages(host, recorded).await?;
        check_packages_are_served(host, recorded)?;
        self.check_outputs(host, operation, recorded).await
    }

    /// Emits that the state is encrypted anew with another secrets provider, and warns of two providers.
    fn report_secrets_change(&self, state: &StackState) {
        let change = state.secrets_change().map(|change| secrets_change_text(&self.access, change));
        let change = change.map(|text| Message::new(Severity::Info, text));
        let others = other_provider_text(&self.access).map(|text| Message::new(Severity::Warning, text));
        change.into_iter().chain(others).for_each(|message| self.events.emit(Event::Message(message)));
    }

    /// Warns of a state that has lost its resources.
    fn report_unexplained_empty(&self, emptied: Option<&UnexplainedEmptyState>) {
        if let Some(emptied) = emptied {
            self.events.emit(Event::Message(Message::new(Severity::Warning, MessageText::of(emptied))));
        }
    }
}

/// Returns the recorded resources whose packages no plugin of a run serves, each with its package.
fn unserved_resources<'s>(host: &PluginHost, snapshot: &'s Snapshot) -> impl Iterator<Item = (String, &'s Urn)> {
    snapshot.resources.iter().filter_map(move |resource| {
        let provider = TypeToken::new(resource.provider.as_ref()?.urn.type_token());
        let package = provider.provider_package()?;
        // A resource with `retainOnDelete` is removed from the state without a call to its provider.
        let is_unserved = !resource.retain_on_delete && package != BUILT_IN && !host.serves(package);
        is_unserved.then(|| (package.to_owned(), &resource.urn))
    })
}

/// Checks that an enabled plugin serves the package of each recorded resource.
fn check_packages_are_served(host: &PluginHost, snapshot: &Snapshot) -> Result<(), OperationError> {
    let mut found = unserved_resources(host, snapshot);
    let Some((package, first)) = found.next() else { return Ok(()) };
    let others = found.filter(|(other, _)| *other == package).map(|(_, urn)| urn);
    let urns = std::iter::once(first).chain(others).cloned().collect();
    Err(OperationError::Unserved { package, urns })
}
