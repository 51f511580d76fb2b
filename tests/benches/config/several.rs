//! Measurement of several stacks in one command, against the longest of them.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::ensure;
use tests::binaries;

use crate::compare_in_turns;

/// Number of resources of each stack, each of which waits for the one before it.
const RESOURCES: usize = 5;

/// Compares the provision of several new stacks at the same time with that of one. The plugin waits for a time at each Create.
pub(crate) fn compare_with_one(stacks: usize, millis: u64, rounds: usize) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path();
    for name in [".git", "home", "rec"] {
        fs::create_dir_all(path.join(name))?;
    }
    fs::create_dir_all(path.join(".sc"))?;
    fs::write(path.join(".sc/cfg.default.yaml"), "projectName: bench\n")?;
    fs::write(path.join("rec/script.json"), serde_json::json!({ "provider": { "createDelay": millis } }).to_string())?;
    let mut resources = String::new();
    for number in 0..RESOURCES {
        let before = if number == 0 { "none".to_owned() } else { format!("${{resource:r{}.id}}", number - 1) };
        resources.push_str(&format!("        r{number}: {{ type: rec:index:Thing, config: {{ v: '{before}' }} }}\n"));
    }
    for stack in 0..stacks {
        let text = format!(
            "schemaVersion: 1.0
provisioner:
  type: pulumi
  config:
    state-storage: {{ type: fs, config: {{ path: 'file://state?create_dir=true' }} }}
    secrets-provider: {{ type: passphrase, config: {{ passPhrase: low tide }} }}
plugins:
  - {{ name: rec, source: {{ type: local, path: {} }}, passEnv: [REC_DIR] }}
resources:
  resources:
    dev:
      resources:
{resources}",
            env!("CARGO_BIN_EXE_pulumi-resource-rec")
        );
        let folder = path.join(format!(".sc/stacks/stack{stack}"));
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("server.yaml"), text)?;
    }
    let all = ["provision", "--skip-preview", "--parallel-stacks", "10"];
    let one = ["provision", "--skip-preview", "-s", "stack0"];
    let figure = format!(
        "`sc provision` of {stacks} new stacks at the same time, each with {RESOURCES} resources one after the other and {millis} ms for each Create, against one of them"
    );
    compare_in_turns(&figure, 1.3, rounds, || provision(path, &all), || provision(path, &one))
}

/// Runs `sc` with a new state.
fn provision(repository: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    fs::remove_dir_all(repository.join("state")).or_else(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })?;
    let mut sc = Command::new(binaries::sc()?);
    sc.args(arguments).current_dir(repository).env_clear().env("PATH", "/usr/bin:/bin");
    let output = sc.env("HOME", repository.join("home")).env("REC_DIR", repository.join("rec")).output()?;
    ensure!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
