//! Measurement of the program `sc` from start to exit, with the provider of the other measurements.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use serde_json::{Value, json};
use tests::binaries;

use crate::figures::{CommandFigures, Figures, memory_of, seconds};
use crate::workload::{PARALLEL, TYPE, Workload};

/// Interval at which the memory of a run is sampled. The system keeps the peak, so the last sample suffices.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(2);

/// Entry of `state-storage` for a folder of the repository.
pub(crate) const FOLDER: &str = "{ type: fs, config: { path: 'file://state?create_dir=true' } }";

/// Measures each command on a new stack in a new repository.
pub(crate) fn measure(workload: Workload, scratch: &Path) -> anyhow::Result<Figures> {
    let mut repository = Repository::create(binaries::sc()?, workload, FOLDER, scratch)?;
    let create = repository.run(&CREATE)?;
    let no_op = repository.run(&NO_OP)?;
    let preview = repository.run(&["preview", "--expect-no-changes"])?;
    let refresh = repository.run(&["refresh", "--yes"])?;
    let combined = repository.run(&["provision", "--expect-no-changes"])?;
    let destroy = repository.run(&DESTROY)?;
    let command = Some(CommandFigures { preview, refresh, combined, peak_memory: repository.memory });
    Ok(Figures { create, no_op, destroy, engine: None, command })
}

/// Creation of all resources.
pub(crate) const CREATE: [&str; 3] = ["provision", "--skip-preview", "--skip-refresh"];
/// Run without changes.
pub(crate) const NO_OP: [&str; 4] = ["provision", "--skip-preview", "--skip-refresh", "--expect-no-changes"];
/// Deletion of all resources.
pub(crate) const DESTROY: [&str; 6] = ["destroy", "--yes", "--parent", "--stacks", "dev", "--skip-refresh"];

/// Repository with one stack, and the program that works on it.
pub(crate) struct Repository {
    folder: tempfile::TempDir,
    sc: PathBuf,
    environment: Vec<(String, String)>,
    /// Number of concurrent calls.
    parallel: usize,
    /// Peak memory of all commands, in bytes.
    memory: u64,
}

impl Repository {
    /// Creates a repository below a folder. `storage` is its entry of `state-storage`.
    pub(crate) fn create(sc: PathBuf, workload: Workload, storage: &str, scratch: &Path) -> anyhow::Result<Self> {
        Self::with_server(sc, &server_yaml(workload, storage), scratch)
    }

    /// Creates a repository below a folder with a server.yaml.
    pub(crate) fn with_server(sc: PathBuf, server: &str, scratch: &Path) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir_in(scratch)?;
        for name in [".git", ".sc/stacks/dev", "home"] {
            fs::create_dir_all(folder.path().join(name))?;
        }
        fs::write(folder.path().join(".sc/cfg.default.yaml"), "projectName: bench\n")?;
        fs::write(folder.path().join(".sc/stacks/dev/server.yaml"), server)?;
        Ok(Self { folder, sc, environment: Vec::new(), parallel: PARALLEL, memory: 0 })
    }

    /// Sets the number of concurrent calls.
    pub(crate) fn with_parallel(self, parallel: usize) -> Self {
        Self { parallel, ..self }
    }

    /// Adds variables of the environment.
    pub(crate) fn with_environment(mut self, variables: &[(&str, &str)]) -> Self {
        self.environment.extend(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        self
    }

    /// Runs a command, which must succeed, and returns its duration in seconds.
    pub(crate) fn run(&mut self, arguments: &[&str]) -> anyhow::Result<f64> {
        Ok(self.run_measured(arguments)?.time)
    }

    /// Runs a command, which must succeed, and returns what it used.
    pub(crate) fn run_measured(&mut self, arguments: &[&str]) -> anyhow::Result<CommandUsage> {
        let usage = run(self.command(arguments), &self.folder.path().join("output"))?;
        self.memory = self.memory.max(usage.memory);
        Ok(usage)
    }

    /// Returns a command that is not started.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.sc);
        command.args(arguments).args(["--parallel", &self.parallel.to_string()]);
        command.current_dir(self.folder.path()).env_clear().env("PATH", "/usr/bin:/bin");
        command.env("HOME", self.folder.path().join("home"));
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Times and memory of a command.
#[derive(Debug, Default)]
pub(crate) struct CommandUsage {
    /// From its start to its exit, in seconds.
    pub(crate) time: f64,
    /// Time on a processor, in clock ticks of the system, without that of other processes such as plugins. A tick is a
    /// hundredth of a second as a rule, so only sums of many runs are comparable.
    pub(crate) processor_ticks: u64,
    /// Most memory that was resident at once, in bytes.
    pub(crate) memory: u64,
}

/// Runs a command, which must succeed. Its output is written to a file.
pub(crate) fn run(mut command: Command, output_file: &Path) -> anyhow::Result<CommandUsage> {
    let output = fs::File::create(output_file)?;
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    let started = Instant::now();
    let mut child = command.spawn()?;
    let (done, stop) = channel();
    let watch = watch(&child, stop);
    let process = i32::try_from(child.id())?;
    // The system shows the times of a process until it is reaped.
    let exited = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(Pid::from_raw(process).context("a process has a number")?), exited)?;
    let time = seconds(started.elapsed());
    let processor_ticks = processor_ticks(process)?;
    let status = child.wait()?;
    drop(done);
    ensure!(status.success(), "{command:?}: {status}\n{}", fs::read_to_string(output_file)?);
    Ok(CommandUsage { time, processor_ticks, memory: watch.join().unwrap_or_default() })
}

/// Returns the time on a processor of a process alone, in clock ticks (proc_pid_stat(5), `utime` and `stime`).
fn processor_ticks(process: i32) -> anyhow::Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    let (_, fields) = stat.rsplit_once(')').context("the name of a process is in parentheses")?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
    Ok(ticks.sum::<Result<u64, _>>()?)
}

/// Samples the memory of a process until the channel is closed, and returns the peak.
fn watch(child: &Child, stop: Receiver<()>) -> thread::JoinHandle<u64> {
    let process = child.id().to_string();
    thread::spawn(move || {
        let mut most = 0;
        while stop.recv_timeout(SAMPLE_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            most = most.max(memory_of(&process));
        }
        most
    })
}

/// Returns the server.yaml of a workload.
fn server_yaml(workload: Workload, storage: &str) -> String {
    let plugins =
        format!("  - {{ name: rec, source: {{ type: local, path: {} }}, passEnv: [REC_DIR] }}\n", crate::PROVIDER);
    let resources = workload.resources().into_iter().map(|resource| {
        let inputs = resource.config(|index| format!("${{resource:thing-{index:06}.v}}"));
        (resource.name, json!({ "type": TYPE, "config": inputs }))
    });
    server_text(storage, &plugins, resources)
}

/// Returns a server.yaml with these resources, by name.
pub(crate) fn server_text(storage: &str, plugins: &str, resources: impl Iterator<Item = (String, Value)>) -> String {
    let mut text = format!(
        "schemaVersion: 1.0
provisioner:
  type: pulumi
  config:
    state-storage: {storage}
    secrets-provider: {{ type: passphrase, config: {{ passPhrase: low tide }} }}
plugins:
{plugins}resources:
  resources:
    dev:
      resources:
"
    );
    for (name, resource) in resources {
        writeln!(text, "        {name}: {resource}").unwrap_or_default();
    }
    text
}
