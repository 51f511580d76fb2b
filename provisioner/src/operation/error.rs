//! Errors that prevent an operation.

use bridge::error::{Hint, chain, closest_resource};
use bridge::host::HostError;
use bridge::install::InstallError;
use bridge::message_text::MessageText;
use config::diagnostics::Diagnostic;
use pulumi_proto::urn::Urn;
use state::StateError;

use super::core_packages::CorePackagesError;
use super::plan_error::PlanError;
use crate::registry::packages::CorePackage;

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
    /// The user selected resources by a key that several have.
    #[error("{} resources match {key}: {}", names.len(), first_names(names))]
    SeveralNames {
        /// Key that the user gave.
        key: String,
        /// Names of the resources.
        names: Vec<String>,
    },
    /// The user named a pending create that does not exist.
    #[error("there is no pending create of {name}")]
    NotPending {
        /// Name that the user gave.
        name: String,
        /// Names of the resources with pending creates.
        pending: Vec<String>,
    },
    /// The run would create these resources, although an earlier run that was interrupted may have created them. None was created.
    #[error("{}", may_exist_text(.0))]
    MayExist(Vec<Urn>),
    /// The stack does not exist, and one with equal resources does, below another project of the store.
    #[error("{warning}; nothing was changed")]
    Namesake {
        /// Both stacks, and the resources.
        warning: MessageText,
        /// Ways to continue.
        hint: MessageText,
    },
    /// The user does not want the new stack.
    #[error("the new stack was declined; nothing was changed")]
    NamesakeDeclined {
        /// Ways to continue.
        hint: MessageText,
    },
    /// The schema of a plugin could not be read. Nothing was changed.
    #[error("{}", chain(.0))]
    Schema(HostError),
    /// The schemas of the plugins lack types or properties of the stack's resources. Nothing was changed.
    #[error("the resources of the stack have {}; nothing was changed", count_errors(.0))]
    Types(Vec<Diagnostic>),
    /// Outputs of other stacks could not be read. Nothing was changed.
    #[error("outputs of other stacks cannot be read; nothing was changed")]
    Outputs(Vec<Diagnostic>),
    /// Functions that decide about the stack have failed, or do not say what it consists of. Nothing was changed.
    #[error("functions do not say what the stack consists of; nothing was changed")]
    Functions(Vec<Diagnostic>),
    /// The lock file could not be read or written.
    #[error("{}", MessageText::chain(.0))]
    Lock(InstallError),
    /// A plan is not saved, or cannot be used.
    #[error(transparent)]
    Plan(#[from] PlanError),
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
            Self::Plugins { found, .. }
            | Self::SeveralPlugins(found)
            | Self::Packages(found)
            | Self::Types(found)
            | Self::Outputs(found)
            | Self::Functions(found) => found,
            Self::DownloadDeclined(_)
            | Self::State(_)
            | Self::Stopped
            | Self::SeveralNames { .. }
            | Self::NotPending { .. }
            | Self::MayExist(_)
            | Self::Namesake { .. }
            | Self::NamesakeDeclined { .. }
            | Self::Schema(_)
            | Self::Lock(_)
            | Self::Plan(_)
            | Self::Unserved { .. } => &[],
        }
    }
}

impl Hint for OperationError {
    fn hint(&self) -> Option<MessageText> {
        match self {
            Self::Plugins { error, .. } | Self::Schema(error) => error.hint(),
            Self::State(error) => error.hint(),
            Self::Lock(error) => error.hint(),
            Self::Plan(error) => error.hint(),
            Self::Unserved { .. } => {
                Some("declare and enable the plugin in `plugins`: it is needed to delete these resources".into())
            }
            Self::DownloadDeclined(_) => {
                Some("declare plugins of these packages in `plugins`, or run `sc plugin install`".into())
            }
            Self::SeveralNames { .. } => Some("give the name of one of them".into()),
            Self::NotPending { name, pending } => {
                let names: Vec<&str> = pending.iter().map(String::as_str).collect();
                Some(match (pending.as_slice(), closest_resource(name, &names)) {
                    ([], _) => "there are no pending creates: omit --import-pending-creates".into(),
                    (_, Some(similar)) => MessageText::new(format_args!("did you mean {similar}?")),
                    (pending, None) => MessageText::new(format_args!("the pending creates are: {}", pending.join(", "))),
                })
            }
            Self::Namesake { hint, .. } | Self::NamesakeDeclined { hint } => Some(hint.clone()),
            Self::MayExist(_) => Some(
                "find out which exist: give the id of each with --import-pending-creates NAME=ID, or --clear-pending-creates if none \
                 does;\n`pendingCreates: recreate` in `provisioner.config` creates them again without a question"
                    .into(),
            ),
            // The diagnostics have their own.
            Self::Types(_) | Self::Outputs(_) | Self::Functions(_) | Self::Packages(_) | Self::SeveralPlugins(_) | Self::Stopped => None,
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

fn may_exist_text(urns: &[Urn]) -> String {
    let (which, they) = match urns {
        [_] => ("a resource that may exist", "an earlier run was interrupted while creating it"),
        _ => ("resources that may exist", "an earlier run was interrupted while creating them"),
    };
    format!("this run would create {which}: {}; {they}, so nothing was created", names(urns))
}

fn count_errors(found: &[Diagnostic]) -> String {
    if found.len() == 1 { "1 error".to_owned() } else { format!("{} errors", found.len()) }
}

/// Returns the names and versions of packages.
fn package_names(packages: &[CorePackage]) -> String {
    let names: Vec<String> = packages.iter().map(|package| format!("{} {}", package.name, package.version)).collect();
    names.join(", ")
}

/// Returns the names of the first ten resources, and the number of further resources.
pub(super) fn names(urns: &[Urn]) -> String {
    first_names(&urns.iter().map(Urn::name).collect::<Vec<_>>())
}

/// Returns the first ten names, and the number of further ones.
fn first_names(names: &[impl AsRef<str>]) -> String {
    const MAX_NAMES: usize = 10;
    let shown: Vec<&str> = names.iter().take(MAX_NAMES).map(AsRef::as_ref).collect();
    let rest = if names.len() > MAX_NAMES { format!(" and {} more", names.len() - MAX_NAMES) } else { String::new() };
    shown.join(", ") + &rest
}
