//! Environment in which plugins with a manifest are built and run.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use super::package_cache::{PackageCache, Verification};
use super::{FetchEvents, InstallError};
use crate::process::{HostEnvironment, OutputStream, Process, ProcessSpec, Spawner, describe_exit};

/// Time limit of a build. The first build of a plugin downloads its dependencies.
const BUILD_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// Environment in which a plugin is built and run.
#[derive(Clone, Copy)]
pub(super) struct RuntimeContext<'a> {
    pub(super) environment: &'a HostEnvironment,
    pub(super) spawner: &'a Spawner,
    /// Cache that contains the built programs.
    pub(super) cache: &'a PackageCache,
    /// Rule for which files of kept programs are read.
    pub(super) verification: Verification,
    /// Receiver of the event that a program is built.
    pub(super) events: &'a dyn FetchEvents,
}

impl RuntimeContext<'_> {
    /// Runs a command of a build, and waits for its end and that of its output.
    pub(super) async fn run(&self, spec: ProcessSpec) -> Result<Process, InstallError> {
        let process = self.spawner.spawn(&spec, Arc::new(()))?;
        let exited = tokio::time::timeout(BUILD_TIMEOUT, process.wait_for_exit()).await;
        process.wait_for_output_end().await;
        if exited.as_ref().is_ok_and(ExitStatus::success) {
            return Ok(process);
        }
        let status = match exited {
            Ok(status) => describe_exit(status),
            Err(_) => format!("not done within {} minutes", BUILD_TIMEOUT.as_secs() / 60),
        };
        let words = spec.arguments.iter().map(|argument| argument.to_string_lossy());
        let command = [spec.program.to_string_lossy()].into_iter().chain(words).collect::<Vec<_>>().join(" ");
        let output = process.last_lines(OutputStream::Stderr).join("\n");
        Err(InstallError::Build { command, status, output })
    }

    /// Returns the first of several programs that is on PATH. `advice` is what to do if none is.
    pub(super) fn interpreter(&self, names: &[&str], advice: &str) -> Result<PathBuf, InstallError> {
        let found = names.iter().find_map(|name| self.environment.find_program(name));
        let missing = || InstallError::Missing { item: names[0].to_owned(), command: advice.to_owned() };
        found.ok_or_else(missing)
    }
}
