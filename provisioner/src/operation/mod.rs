//! Orchestration of operations, one file each: calls the other modules in order.
//!
//! [`Stacks::read`] loads stacks, [`Stacks::access`] opens their states, [`Stacks::run`] puts a run together ([`StackRun`]), and
//! an operation carries it out. Output: a [`Report`]; events during the run. One process can hold several runs: what the
//! system knows of the process and of the caller comes in as values ([`ProcessIdentity`], [`config::ProcessContext`]).
//! Excluded: decisions about resources, the grammar of files, terminals, the environment.

mod approval;
mod changed_stacks;
mod clouds;
mod core_packages;
mod deciding_functions;
mod declared_plugin;
mod deploy;
mod doctor;
mod error;
mod import;
mod key_stack;
mod missing;
mod missing_reports;
mod moved_resources;
mod namesakes;
mod opening;
mod package_request;
mod pending_creates;
mod pending_resolution;
mod plan_error;
mod plan_opening;
mod plan_run;
mod plan_saving;
mod plugin_events;
mod plugin_install;
mod plugin_lock;
mod plugin_mirror;
mod plugin_overrides;
mod plugin_settings;
mod plugins;
mod preview;
mod provision;
mod refresh;
mod remote_store;
mod rename_hints;
mod resumed_move;
mod running_activity;
mod secrets_access;
mod secrets_provider_change;
mod selected_names;
mod settings_file;
mod setup_error;
mod stack_graph;
mod stack_loading;
mod stack_outputs;
mod stack_reader;
mod stack_reads;
mod stack_run;
mod stack_selection;
mod stacks;
mod standalone;
mod state_access;
mod store_options;
mod undecided_resources;
mod undeclared_plugin;
mod undeclared_plugins;
mod validate;

use std::collections::BTreeSet;

use config::diagnostics::Diagnostic;
use engine::ProviderReadings;
use engine::events::Summary;
use pulumi_proto::urn::Urn;
use state::Snapshot;

pub use approval::ProvisionOptions;
pub use approval::{Agreement, Approval};
pub use changed_stacks::{Changes, FileDifference, SelectionReason, changed_stacks};
pub use core_packages::{CorePackages, DownloadApproval, LocatedPackage, PackageDownload, PackageLocation};
pub use doctor::check_machine;
pub use error::OperationError;
pub use import::import;
pub use key_stack::key_stack;
pub use missing::{MissingGuard, MissingLimit, WarningQuestion};
pub use package_request::PackageRequest;
pub use pending_creates::{PendingCreateResolution, PendingCreates, PendingQuestion};
pub use plan_error::PlanError;
pub use plan_opening::{OpenedPlan, check_header, read_plan};
pub use plan_run::{PlannedProvision, provision_plan};
pub use plan_saving::{PlanSettings, UnsealedPlan, preview_for_plan};
pub use plugin_install::{InstallReport, InstalledPlugin};
pub use plugin_lock::{LockReport, LockRequest, LockedPlugin};
pub use plugin_mirror::{MirrorReport, MirroredPlugin};
pub use plugin_overrides::PluginOverride;
pub use plugin_settings::{PluginSettings, cache_folder};
pub use preview::{preview, preview_destroy, preview_refresh};
pub use provision::provision;
pub use refresh::destroy;
pub use refresh::{obsolete_text, recovery_text, refresh};
pub use resumed_move::ResumedMove;
pub use running_activity::RunningActivity;
pub use secrets_access::{secrets_change_text, secrets_diagnostic};
pub use settings_file::{check_settings, move_settings, settings_file};
pub use setup_error::{LockedPlace, SetupError, UnsupportedTarget, rename_hint};
pub use setup_error::{OtherStackError, SecretsProviderError};
pub use stack_graph::{EdgeReason, StackCycle, StackEdge, StackGraph};
pub use stack_outputs::MissingOutputs;
pub use stack_reads::StackReads;
pub use stack_run::{OriginCollection, RunOptions};
pub use stack_run::{RunInputs, StackRun};
pub use stack_selection::Selection;
pub use stacks::{FetchRules, ProcessIdentity, Stacks, StacksRead, StacksRequest, check_owner};
pub use state_access::{ResumedChanges, ResumedRename};
pub use undeclared_plugin::UndeclaredDownload;
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
    /// URNs of the resources that were created although they may exist, because an earlier run was interrupted while creating
    /// them; in a preview, of those that would be.
    pub may_exist: BTreeSet<Urn>,
    /// True if the refresh was refused because of missing resources, and nothing was recorded.
    pub is_refused: bool,
}
