//! Start of the process of a package.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;

use tracing::debug;

use super::diagnosis::{diagnose, exec_format_error};
use super::sandbox::with_package;
use super::{LaunchError, LaunchSpec};
use crate::install::VerifiedPackage;
use crate::process::{Process, ProcessSpec, SandboxError, SpawnError};

/// Starts the process of a package with its arguments and then `further` ones.
///
/// # Errors
/// [`LaunchError`]; no process is left.
pub(super) fn start(spec: LaunchSpec<'_>, further: &[OsString]) -> Result<Arc<Process>, LaunchError> {
    let package = spec.package;
    let process_spec = ProcessSpec {
        program: package.program().to_owned(),
        arguments: [package.arguments(), further].concat(),
        sandbox: with_package(spec.sandbox, package, &spec.directory),
        directory: spec.directory,
        environment: spec.environment,
    };
    let failed = |error| exec_failed(package, &process_spec.directory, error);
    if let Some(error) = exec_format_error(&process_spec.program) {
        return Err(failed(error));
    }
    match spec.spawner.spawn(&process_spec, spec.sink) {
        Ok(process) => {
            debug!(pid = process.id(), "process started");
            Ok(Arc::new(process))
        }
        Err(SpawnError::Start { source, .. }) => Err(failed(source)),
        Err(error) => Err(error.into()),
    }
}

/// Returns the error of a program that the system does not execute, or whose sandbox was not applied.
pub(super) fn exec_failed(package: &VerifiedPackage, directory: &Path, source: io::Error) -> LaunchError {
    let source = match source.downcast::<SandboxError>() {
        Ok(error) => return LaunchError::Sandbox(error),
        Err(source) => source,
    };
    LaunchError::ExecFailed {
        diagnosis: diagnose(package, directory, &source),
        program: package.program_origin(),
        source,
    }
}
