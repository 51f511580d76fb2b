//! Measurement of the program `sc` from start to exit, with the provider of the other measurements.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;
use tests::binaries;

use crate::figures::{CommandFigures, Figures, memory_of, seconds};
use crate::workload::{PARALLEL, TYPE, Workload};

/// Interval at which the memory of a run is sampled. The system keeps the peak, so the last sample suffices.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(2);

/// Measures each command on a new stack in a new repository.
pub(crate) fn measure(workload: Workload, scratch: &Path) -> anyhow::Result<Figures> {
    let folder = tempfile::tempdir_in(scratch)?;
    let home = folder.path().join("home");
    fs::create_dir_all(&home)?;
    fs::create_dir_all(folder.path().join(".git"))?;
    fs::create_dir_all(folder.path().join(".sc/stacks/dev"))?;
    fs::write(folder.path().join(".sc/cfg.default.yaml"), "projectName: bench\n")?;
    fs::write(folder.path().join(".sc/stacks/dev/server.yaml"), server_yaml(workload))?;
    let mut bench = Bench { sc: binaries::sc()?, folder: folder.path(), home, memory: 0 };

    let create = bench.run(&["provision", "--skip-preview", "--skip-refresh"])?;
    let no_op = bench.run(&["provision", "--skip-preview", "--skip-refresh", "--expect-no-changes"])?;
    let preview = bench.run(&["preview", "--expect-no-changes"])?;
    let refresh = bench.run(&["refresh", "--yes"])?;
    let combined = bench.run(&["provision", "--expect-no-changes"])?;
    let destroy = bench.run(&["destroy", "--yes", "--parent", "--stacks", "dev", "--skip-refresh"])?;
    let command = Some(CommandFigures { preview, refresh, combined, peak_memory: bench.memory });
    Ok(Figures { create, no_op, destroy, engine: None, command })
}

struct Bench<'f> {
    sc: PathBuf,
    folder: &'f Path,
    home: PathBuf,
    memory: u64,
}

impl Bench<'_> {
    /// Runs a command, which must succeed, and returns its duration in seconds.
    fn run(&mut self, arguments: &[&str]) -> anyhow::Result<f64> {
        let mut command = Command::new(&self.sc);
        command.args(arguments).args(["--parallel", &PARALLEL.to_string()]);
        command.current_dir(self.folder).env_clear().env("HOME", &self.home).env("PATH", "/usr/bin:/bin");
        let CommandUsage { time, memory } = run(command, &self.folder.join("output"))?;
        self.memory = self.memory.max(memory);
        Ok(time)
    }
}

/// Time and memory of a command.
pub(crate) struct CommandUsage {
    /// From its start to its exit, in seconds.
    pub(crate) time: f64,
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
    let status = child.wait()?;
    let time = seconds(started.elapsed());
    drop(done);
    ensure!(status.success(), "{command:?}: {status}\n{}", fs::read_to_string(output_file)?);
    Ok(CommandUsage { time, memory: watch.join().unwrap_or_default() })
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
fn server_yaml(workload: Workload) -> String {
    let mut text = format!(
        "schemaVersion: 1.0
provisioner:
  type: pulumi
  config:
    state-storage: {{ type: fs, config: {{ path: 'file://state?create_dir=true' }} }}
    secrets-provider: {{ type: passphrase, config: {{ passPhrase: low tide }} }}
plugins:
  - {{ name: rec, source: {{ type: local, path: {} }} }}
resources:
  resources:
    dev:
      resources:
",
        crate::PROVIDER
    );
    for resource in workload.resources() {
        let inputs = resource.config(|index| format!("${{resource:thing-{index:06}.v}}"));
        writeln!(text, "        {}: {{ type: '{TYPE}', config: {inputs} }}", resource.name).unwrap_or_default();
    }
    text
}
