//! Measurement of Pulumi's command line with its file backend and the same resources, as a program of its YAML host.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use bridge::process::HostEnvironment;
use serde_json::{Value, json};
use tests::sdks::first_on_path;

use crate::command::{CommandUsage, run};
use crate::figures::{CommandFigures, Figures};
use crate::workload::{BenchResource, PARALLEL, PROJECT, STACK, TYPE, Workload};

/// Time at which Pulumi writes its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checkpoints {
    /// At every step, the default.
    Each,
    /// At the end of a run. A crash loses the state of the resources that the run created.
    Last,
}

/// Returns whether Pulumi and its YAML host are on PATH.
pub(crate) fn is_installed() -> bool {
    let environment = HostEnvironment::new(std::env::vars_os());
    ["pulumi", "pulumi-language-yaml"].iter().all(|program| environment.find_program(program).is_some())
}

/// Measures each command on a new stack in a new folder.
pub(crate) fn measure(workload: Workload, checkpoints: Checkpoints, scratch: &Path) -> anyhow::Result<Figures> {
    let folder = tempfile::tempdir_in(scratch)?;
    for part in ["home", "state"] {
        fs::create_dir_all(folder.path().join(part))?;
    }
    fs::write(folder.path().join("Pulumi.yaml"), program(workload).to_string())?;
    let providers = Path::new(crate::PROVIDER).parent().map(Path::to_owned).unwrap_or_default();
    let mut bench =
        Bench { folder: folder.path().to_owned(), path: first_on_path(&providers)?, checkpoints, memory: 0 };

    bench.run(&["stack", "init", STACK])?;
    bench.memory = 0;
    let parallel = format!("--parallel={PARALLEL}");
    let options = ["--yes", "--skip-preview", &parallel];
    let create = bench.run(&[&["up"], &options[..]].concat())?;
    let no_op = bench.run(&[&["up", "--expect-no-changes"], &options[..]].concat())?;
    let preview = bench.run(&["preview", "--expect-no-changes", &parallel])?;
    let refresh = bench.run(&[&["refresh"], &options[..]].concat())?;
    let combined = bench.run(&["up", "--yes", "--refresh", "--expect-no-changes", &parallel])?;
    let destroy = bench.run(&[&["destroy"], &options[..]].concat())?;
    let command = Some(CommandFigures { preview, refresh, combined, peak_memory: bench.memory });
    Ok(Figures { create, no_op, destroy, engine: None, command })
}

struct Bench {
    folder: PathBuf,
    path: OsString,
    checkpoints: Checkpoints,
    memory: u64,
}

impl Bench {
    /// Runs a command, which must succeed, and returns its duration in seconds.
    fn run(&mut self, arguments: &[&str]) -> anyhow::Result<f64> {
        let mut command = Command::new("pulumi");
        command.args(arguments).arg("--non-interactive").current_dir(&self.folder).env_clear();
        command.env("PATH", &self.path).env("HOME", self.folder.join("home"));
        command.env("PULUMI_BACKEND_URL", format!("file://{}", self.folder.join("state").display()));
        command.env("PULUMI_CONFIG_PASSPHRASE", "low tide").env("PULUMI_SKIP_UPDATE_CHECK", "true");
        command.env("PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION", "true");
        if self.checkpoints == Checkpoints::Last {
            command.env("PULUMI_EXPERIMENTAL", "true").env("PULUMI_SKIP_CHECKPOINTS", "true");
        }
        let CommandUsage { time, memory } = run(command, &self.folder.join("output"))?;
        self.memory = self.memory.max(memory);
        Ok(time)
    }
}

/// Returns the Pulumi program of a workload.
fn program(workload: Workload) -> Value {
    let resource = |resource: BenchResource| {
        let properties = resource.config(|index| format!("${{thing-{index:06}.v}}"));
        (resource.name, json!({"type": TYPE, "properties": properties}))
    };
    let resources: serde_json::Map<String, Value> = workload.resources().into_iter().map(resource).collect();
    json!({"name": PROJECT, "runtime": "yaml", "resources": resources})
}
