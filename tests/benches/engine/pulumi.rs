//! Measurement of Pulumi's command line with its file backend and the same resources, as a program of its YAML host.

use std::fs;
use std::path::Path;

use bridge::process::HostEnvironment;
use serde_json::{Value, json};
use tests::sdks::PulumiCli;

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

/// Returns whether `go` is on PATH, which builds Pulumi and its YAML host.
pub(crate) fn can_be_built() -> bool {
    HostEnvironment::new(std::env::vars_os()).find_program("go").is_some()
}

/// Measures each command on a new stack in a new folder.
pub(crate) fn measure(workload: Workload, checkpoints: Checkpoints, scratch: &Path) -> anyhow::Result<Figures> {
    let mut project = Project::create(workload, checkpoints, None, scratch)?;
    let create = project.run(&UP)?;
    let no_op = project.run(&[&UP[..], &["--expect-no-changes"]].concat())?;
    let preview = project.run(&["preview", "--expect-no-changes"])?;
    let refresh = project.run(&["refresh", "--yes", "--skip-preview"])?;
    let combined = project.run(&["up", "--yes", "--refresh", "--expect-no-changes"])?;
    let destroy = project.run(&["destroy", "--yes", "--skip-preview"])?;
    let command = Some(CommandFigures { preview, refresh, combined, peak_memory: project.memory });
    Ok(Figures { create, no_op, destroy, engine: None, command })
}

/// Update.
pub(crate) const UP: [&str; 3] = ["up", "--yes", "--skip-preview"];

/// Project with one stack, on which `pulumi` works.
pub(crate) struct Project {
    folder: tempfile::TempDir,
    cli: PulumiCli,
    checkpoints: Checkpoints,
    backend: String,
    environment: Vec<(String, String)>,
    /// Peak memory of all commands, in bytes.
    memory: u64,
}

/// Backend that is no folder.
pub(crate) struct RemoteBackend<'a> {
    /// URL of the backend.
    pub(crate) url: &'a str,
    /// Variables of the environment that it needs.
    pub(crate) environment: &'a [(&'a str, &'a str)],
}

impl Project {
    /// Creates a project with a stack below a folder. Without a backend, the state is in the same folder.
    pub(crate) fn create(
        workload: Workload,
        checkpoints: Checkpoints,
        backend: Option<RemoteBackend<'_>>,
        scratch: &Path,
    ) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir_in(scratch)?;
        for part in ["home", "state"] {
            fs::create_dir_all(folder.path().join(part))?;
        }
        fs::write(folder.path().join("Pulumi.yaml"), program(workload).to_string())?;
        let in_folder = format!("file://{}", folder.path().join("state").display());
        let (url, environment) = backend.map_or((&*in_folder, &[][..]), |backend| (backend.url, backend.environment));
        let (backend, cli) = (url.to_owned(), PulumiCli::install()?);
        let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let environment = environment.collect();
        let mut project = Self { folder, cli, checkpoints, backend, environment, memory: 0 };
        project.run_with(&["stack", "init", STACK])?;
        project.memory = 0;
        Ok(project)
    }

    /// Runs an operation, which must succeed, and returns its duration in seconds.
    pub(crate) fn run(&mut self, arguments: &[&str]) -> anyhow::Result<f64> {
        let parallel = format!("--parallel={PARALLEL}");
        self.run_with(&[arguments, &[&parallel]].concat())
    }

    fn run_with(&mut self, arguments: &[&str]) -> anyhow::Result<f64> {
        let providers = Path::new(crate::PROVIDER).parent().unwrap_or(Path::new(""));
        let mut command = self.cli.command(providers)?;
        command.args(arguments).arg("--non-interactive").current_dir(self.folder.path());
        command.env("HOME", self.folder.path().join("home"));
        command.env("PULUMI_BACKEND_URL", &self.backend).env("PULUMI_CONFIG_PASSPHRASE", "low tide");
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if self.checkpoints == Checkpoints::Last {
            command.env("PULUMI_EXPERIMENTAL", "true").env("PULUMI_SKIP_CHECKPOINTS", "true");
        }
        let CommandUsage { time, memory, .. } = run(command, &self.folder.path().join("output"))?;
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
