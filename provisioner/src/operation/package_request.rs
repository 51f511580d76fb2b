//! Requests for packages of core types, and the error of one that is not provided.

use std::path::Path;

use bridge::error::{Hint as _, chain};
use bridge::install::InstallError;
use bridge::message_text::MessageText;
use bridge::plugin::{PluginValueError, PolicyRefusal};
use bridge::source::FetchError;
use config::diagnostics::{Code, Diagnostic, Span};

use crate::program::UndeclaredPackage;
use crate::registry::packages::CorePackage;

const PACKAGE: Code = Code("package");

/// Package that a run needs, and why.
#[derive(Clone, Debug)]
pub struct PackageRequest {
    /// The package.
    pub package: CorePackage,
    /// Name of the resource that needs it, in words: `the core type "s3-bucket" of media`.
    pub needed_by: String,
    /// Position of what needs it.
    pub span: Option<Span>,
}

impl From<UndeclaredPackage> for PackageRequest {
    fn from(undeclared: UndeclaredPackage) -> Self {
        let UndeclaredPackage { package, resource, type_name, span } = undeclared;
        Self { package, needed_by: format!("the core type {type_name:?} of {resource}"), span: Some(span) }
    }
}

/// Reason why a package cannot be located or installed.
#[derive(Debug, thiserror::Error)]
pub(super) enum PackageError {
    #[error(transparent)]
    Install(#[from] InstallError),
    #[error(transparent)]
    Name(#[from] PluginValueError),
    #[error(transparent)]
    Policy(#[from] Box<PolicyRefusal>),
}

/// Folders of this machine that a package can be copied to.
pub(super) struct PackageFolders<'f> {
    /// The cache of packages.
    pub(super) cache: &'f Path,
    /// Folder of plugins of the `pulumi` command line.
    pub(super) pulumi: Option<&'f Path>,
}

impl PackageRequest {
    /// Returns the error of the package that cannot be installed, with the ways to provide it.
    pub(super) fn diagnostic(&self, error: &PackageError, folders: &PackageFolders<'_>) -> Diagnostic {
        let Self { package: CorePackage { name, version, .. }, needed_by, span } = self;
        let summary = MessageText::new(format_args!(
            "{needed_by} needs version {version} of the package {name:?}, which cannot be installed: {}",
            chain(error)
        ));
        let declare = format!("declare a plugin of the package in `plugins`: `name: {name}`");
        let found = Diagnostic::error(PACKAGE, *span, summary);
        let error = match error {
            PackageError::Install(error) => error,
            PackageError::Name(_) => return found.help(declare),
            PackageError::Policy(refusal) => return refusal.hint().into_iter().fold(found, Diagnostic::help),
        };
        match error {
            InstallError::Fetch(FetchError::RateLimited { credential: None, .. }) => {
                found.help("set GITHUB_TOKEN: requests with a token have a higher rate limit")
            }
            InstallError::Fetch(fetch) if fetch.is_unreachable() => {
                let pulumi = folders.pulumi.unwrap_or(Path::new("~/.pulumi/plugins"));
                found
                    .help(format_args!(
                        "on a machine with network, run `sc plugin install` and copy {}, or run `pulumi plugin install \
                         resource {name} {version}` and copy {}",
                        folders.cache.display(),
                        pulumi.display()
                    ))
                    .help(format_args!("or {declare}, with a source that is available here"))
            }
            InstallError::NoAsset { .. } | InstallError::NoPlatform => {
                found.help(format_args!("{declare}, with a source that is built for this platform"))
            }
            InstallError::ChecksumMismatch { .. } | InstallError::PublishedMismatch { .. } => found
                .help("the download was deleted: it may have been changed on its way; run the command again")
                .help(format_args!(
                    "if the digest still differs, report it to the author, or {declare}, with another source"
                )),
            InstallError::NotUploaded { .. }
            | InstallError::Unusable { .. }
            | InstallError::NotExecutable { .. }
            | InstallError::NotInArchive { .. }
            | InstallError::Archive { .. } => found
                .help("nothing of it was kept: run the command again once its author has repaired the release")
                .help(format_args!("or {declare}, with another source")),
            InstallError::NoDigest { .. } => found.help(format_args!(
                "{declare}, with a `checksum`, or run `pulumi plugin install resource {name} {version}`"
            )),
            other => match other.hint() {
                Some(hint) => found.help(hint),
                None => found.help(declare),
            },
        }
    }
}
