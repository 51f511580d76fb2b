//! git, as commands run it: those of the secrets store, and runs for their history.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use bridge::process::{FirstLine, HostEnvironment, OutputSink, OutputStream, ProcessSandbox, ProcessSpec, Spawner};

use super::process::process_context;

/// Maximum size of an output, in bytes: that of the largest store.
const MAX_OUTPUT_BYTES: usize = 64 * 1024 * 1024;

/// Variables of commands that only read: a clone without objects would fetch them.
const READ_ONLY: [(&str, &str); 2] = [("GIT_NO_LAZY_FETCH", "1"), ("GIT_OPTIONAL_LOCKS", "0")];

/// Variables that select another repository than that of the work tree. Hooks of git set them.
const REPOSITORY_VARIABLES: [&str; 9] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_PREFIX",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_SHALLOW_FILE",
];

/// The program git, in the work tree of a repository.
pub(crate) struct Git {
    program: PathBuf,
    root: PathBuf,
    environment: Vec<(OsString, OsString)>,
}

/// Output of a command of git.
pub(crate) struct Output {
    pub(crate) is_success: bool,
    pub(crate) stdout: String,
    /// False if the output was too large, so that some of it is missing.
    pub(crate) is_whole: bool,
    /// Last lines of standard error.
    pub(crate) errors: String,
}

impl Git {
    /// Finds git on PATH.
    pub(crate) fn find(root: &Path) -> Option<Self> {
        let environment: Vec<(OsString, OsString)> =
            process_context().environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        let program = HostEnvironment::new(environment.clone()).find_program("git")?;
        Some(Self { program, root: root.to_owned(), environment })
    }

    /// Asks the repository of the work tree, also where variables of the environment select another one.
    #[must_use]
    pub(crate) fn of_work_tree(mut self) -> Self {
        self.environment.retain(|(name, _)| !REPOSITORY_VARIABLES.iter().any(|variable| name == variable));
        self
    }

    /// Runs a command that only reads, to its end. Opens no connection and takes no lock.
    ///
    /// # Errors
    /// git cannot be started.
    pub(crate) async fn read(&self, arguments: &[&str]) -> anyhow::Result<Output> {
        self.run_with(&READ_ONLY, arguments).await
    }

    /// Runs a command to its end.
    ///
    /// # Errors
    /// git cannot be started.
    pub(crate) async fn run(&self, arguments: &[&str]) -> anyhow::Result<Output> {
        self.run_with(&[], arguments).await
    }

    /// Returns the text of a file in a commit; `None` if there is no such commit, or it has no such file. Opens no
    /// connection.
    ///
    /// # Errors
    /// git cannot be started.
    pub(crate) async fn file_of(&self, commit: &str, path: &str) -> anyhow::Result<Option<String>> {
        let output = self.run_with(&READ_ONLY, &["cat-file", "blob", &format!("{commit}:./{path}")]).await?;
        Ok(output.is_success.then_some(output.stdout))
    }

    /// Returns what a command that only reads prints; `None` if it fails. Opens no connection and takes no lock.
    pub(crate) async fn inspect(&self, arguments: &[&str]) -> Option<String> {
        let output = self.read(arguments).await.ok()?;
        output.is_success.then_some(output.stdout)
    }

    async fn run_with(&self, variables: &[(&str, &str)], arguments: &[&str]) -> anyhow::Result<Output> {
        let variables = variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let spec = ProcessSpec {
            program: self.program.clone(),
            arguments: arguments.iter().map(OsString::from).collect(),
            directory: self.root.clone(),
            environment: self.environment.iter().cloned().chain(variables).collect(),
            sandbox: ProcessSandbox::default(),
        };
        let stdout = Arc::new(Stdout::default());
        let process = Spawner::unsupervised().spawn(&spec, Arc::clone(&stdout) as Arc<dyn OutputSink>);
        let process = process.context("git cannot be started")?;
        let status = process.wait_for_exit().await;
        process.wait_for_output_end().await;
        let errors = process.last_lines(OutputStream::Stderr).join("\n");
        // The sink receives the lines behind the first one.
        let first = match process.first_line().await {
            FirstLine::Line(line) | FirstLine::Incomplete(line) => line,
            FirstLine::ExecFailed(error) => return Err(error).context("git cannot be started"),
        };
        let Lines { text, is_whole } = std::mem::take(&mut *stdout.0.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(Output { is_success: status.success(), stdout: format!("{first}\n{text}"), is_whole, errors })
    }
}

/// Lines of standard output.
#[derive(Default)]
struct Stdout(Mutex<Lines>);

struct Lines {
    text: String,
    is_whole: bool,
}

impl Default for Lines {
    fn default() -> Self {
        Self { text: String::new(), is_whole: true }
    }
}

impl OutputSink for Stdout {
    fn line(&self, stream: OutputStream, line: &str) {
        if stream != OutputStream::Stdout {
            return;
        }
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.text.len() + line.len() < MAX_OUTPUT_BYTES {
            lines.text.push_str(line);
            lines.text.push('\n');
        } else {
            lines.is_whole = false;
        }
    }
}
