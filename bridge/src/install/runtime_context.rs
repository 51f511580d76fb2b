//! Environment in which plugins with a manifest are built and run.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::package_cache::{PackageCache, Verification};
use super::{FetchEvent, FetchEvents, InstallError};
use crate::error::chain;
use crate::plugin::PolicyRefusal;
use crate::process::{
    FirstLine, HostEnvironment, OutputSink, OutputStream, Process, ProcessSpec, Spawner, describe_exit,
};
use crate::shell::quoted;

/// Time limit of a command of a build. The first build of a plugin downloads its dependencies.
pub const BUILD_LIMIT: Duration = Duration::from_secs(15 * 60);

/// Environment in which a plugin is built and run.
#[derive(Clone, Copy)]
pub(super) struct RuntimeContext<'a> {
    pub(super) environment: &'a HostEnvironment,
    pub(super) spawner: &'a Spawner,
    /// Cache that contains the built programs.
    pub(super) cache: &'a PackageCache,
    /// Rule for which files of kept programs are read.
    pub(super) verification: Verification,
    /// Refusal of a build, if the policy allows none.
    pub(super) build_refusal: Option<&'a PolicyRefusal>,
    /// True if a build must not open a connection.
    pub(super) is_offline: bool,
    /// Time after which a command of a build is ended.
    pub(super) build_limit: Duration,
    /// Receiver of what happens during a build.
    pub(super) events: &'a dyn FetchEvents,
}

/// Lines of the output of a build, on their way to the receiver of events.
struct BuildLines(mpsc::UnboundedSender<String>);

impl OutputSink for BuildLines {
    fn line(&self, _: OutputStream, line: &str) {
        // The build was given up otherwise.
        self.0.send(line.to_owned()).ok();
    }
}

impl RuntimeContext<'_> {
    /// Runs a command, and waits for its end and that of its output. Emits its output if it is shown. After the time limit, the command is
    /// killed with what it has started.
    pub(super) async fn run(&self, spec: ProcessSpec, is_shown: bool) -> Result<Process, InstallError> {
        let (sender, mut lines) = mpsc::unbounded_channel();
        let sink: Arc<dyn OutputSink> = if is_shown { Arc::new(BuildLines(sender)) } else { Arc::new(()) };
        let words = spec.arguments.iter().map(|argument| quoted(&argument.to_string_lossy()).to_string());
        let command = [spec.program.display().to_string()].into_iter().chain(words).collect::<Vec<_>>().join(" ");
        let failed = |status: String, output: String| InstallError::Build { command: command.clone(), status, output };
        let process = self.spawner.spawn(&spec, sink)?;
        let (mut first_line, mut exited) = (pin!(process.first_line()), None);
        {
            let mut exit = pin!(tokio::time::timeout(self.build_limit, process.wait_for_exit()));
            let mut is_begun = false;
            while !matches!(exited, Some(Err(_))) && (exited.is_none() || !is_begun) {
                tokio::select! {
                    line = &mut first_line, if !is_begun => {
                        is_begun = true;
                        match line {
                            FirstLine::ExecFailed(error) => {
                                return Err(failed("it cannot be executed".to_owned(), chain(&error)));
                            }
                            FirstLine::Line(text) | FirstLine::Incomplete(text) => {
                                self.emit_output(Some(text).filter(|text| is_shown && !text.is_empty()));
                            }
                        }
                    }
                    Some(line) = lines.recv() => self.emit_output(Some(line)),
                    ended = &mut exit, if exited.is_none() => exited = Some(ended),
                }
            }
        }
        if let Some(Err(_)) = exited {
            process.kill();
            process.wait_for_group_end().await;
        }
        process.wait_for_output_end().await;
        while let Ok(line) = lines.try_recv() {
            self.emit_output(Some(line));
        }
        let status = match exited {
            Some(Ok(status)) if status.success() => return Ok(process),
            Some(Ok(status)) => describe_exit(status),
            Some(Err(_)) | None => match self.build_limit.as_secs() {
                seconds @ ..60 => format!("not done within {seconds} seconds"),
                seconds => format!("not done within {} minutes", seconds / 60),
            },
        };
        Err(failed(status, process.last_lines(OutputStream::Stderr).join("\n")))
    }

    fn emit_output(&self, line: Option<String>) {
        if let Some(line) = line {
            self.events.emit(FetchEvent::BuildOutput(line));
        }
    }

    /// Returns the first of several programs that is on PATH. `advice` is what to do if none is.
    pub(super) fn interpreter(&self, names: &[&str], advice: &str) -> Result<PathBuf, InstallError> {
        let found = names.iter().find_map(|name| self.environment.find_program(name));
        let missing = || InstallError::Missing { item: names[0].to_owned(), command: advice.to_owned() };
        found.ok_or_else(missing)
    }
}
