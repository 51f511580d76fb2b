//! Measurements of reading and of validating stacks with fifty resources each, which refer to each other and to secrets and variables.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, ensure};
use bridge::host::{InputInfo, PackageTypes, TypeInfo};
use config::diagnostics::{SourceFiles, has_errors};
use config::{ProcessContext, Profile, Repository, Stack, Workspace};
use provisioner::program::{Program, SchemaFindings};
use provisioner::registry::recipes;

use crate::compare_in_turns;

const RESOURCES: usize = 50;

pub(crate) fn compare(stacks: usize, rounds: usize) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let mut texts = vec!["projectName: tank\n".to_owned()];
    fs::create_dir(folder.path().join(".sc"))?;
    fs::write(folder.path().join(".sc/cfg.default.yaml"), &texts[0])?;
    for stack in 0..stacks {
        let stack_folder = folder.path().join(format!(".sc/stacks/stack{stack}"));
        fs::create_dir_all(&stack_folder)?;
        for (name, text) in [("server.yaml", server()), ("secrets.yaml", SECRETS.to_owned())] {
            fs::write(stack_folder.join(name), &text)?;
            texts.push(text);
        }
    }
    let load = || -> anyhow::Result<Vec<Stack>> {
        let loaded = read_stacks(folder.path())?;
        ensure!(loaded.len() == stacks && loaded[0].environments[0].resources.len() == RESOURCES);
        Ok(loaded)
    };
    let read = || load().map(drop);
    let cached = package_types().to_lines().context("types have lines")?;
    let validate = || {
        let types = PackageTypes::from_lines(cached.clone()).context("lines are read")?;
        let types = BTreeMap::from([("reef".to_owned(), types)]);
        for stack in load()? {
            let program = Program::new(stack.into(), recipes::core_types());
            ensure!(program.check_core_types().is_empty() && program.check_outputs(&types, |_, _| None).is_empty());
            let SchemaFindings { errors, warnings } = program.check_types(&types);
            ensure!(errors.is_empty() && warnings.is_empty(), "{:?}", errors.first());
        }
        Ok(())
    };
    let parse = || {
        for text in &texts {
            let value: serde_yaml::Value = serde_yaml::from_str(text)?;
            ensure!(value.is_mapping());
        }
        Ok(())
    };
    compare_in_turns(
        &format!("{stacks} stacks of {RESOURCES} resources, read and resolved"),
        10.0,
        rounds,
        read,
        parse,
    )?;
    let figure = format!(
        "{stacks} stacks of {RESOURCES} resources, read and checked against cached types, against reading them"
    );
    compare_in_turns(&figure, 1.5, rounds, validate, read)
}

/// First argument of a process that reads one stack and prints its peak of memory.
pub(crate) const READ: &str = "read-once";

/// Compares one entry with `forEach` that stands for many resources with the same resources written out: the time to read the stack, and the
/// peak of memory of a process that reads it.
pub(crate) fn compare_for_each(resources: usize, rounds: usize) -> anyhow::Result<()> {
    let (repeated, written_out) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let mut entries = String::new();
    let mut all = String::new();
    for number in 0..resources {
        write!(entries, "e{number}: {{ size: {number} }}, ")?;
        let config = format!("{{ name: 'tank-e{number}', size: {number} }}");
        writeln!(all, "        tank-e{number}: {{ type: 'reef:sea/tank:Tank', config: {config} }}")?;
    }
    let entry = format!(
        "        tank: {{ type: 'reef:sea/tank:Tank', forEach: {{ {entries} }}, config: {{ name: 'tank-${{each:key}}', size: '${{each:value.size}}' }} }}\n"
    );
    for (folder, resources) in [(&repeated, &entry), (&written_out, &all)] {
        let stack = folder.path().join(".sc/stacks/stack0");
        fs::create_dir_all(&stack)?;
        fs::write(folder.path().join(".sc/cfg.default.yaml"), "projectName: tank\n")?;
        fs::write(stack.join("server.yaml"), format!("{HEAD}{resources}"))?;
        fs::write(stack.join("secrets.yaml"), SECRETS)?;
    }
    let read = |folder: &tempfile::TempDir| {
        let read = read_stacks(folder.path())?;
        ensure!(read[0].environments[0].resources.len() == resources);
        Ok(())
    };
    let figure =
        format!("{resources} resources from one entry with `forEach`, read, against the same resources written out");
    compare_in_turns(&figure, 1.0, rounds, || read(&repeated), || read(&written_out))?;
    let peak = |folder: &tempfile::TempDir| -> anyhow::Result<f64> {
        let mut child = std::process::Command::new(std::env::current_exe()?);
        let output = child.arg(READ).arg(folder.path()).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?.trim().parse::<f64>()? / 1024.0)
    };
    let (ours, bare) = (peak(&repeated)?, peak(&written_out)?);
    println!("| … peak of memory | {ours:.1} MiB | {bare:.1} MiB | {:.2} | 1 |", ours / bare);
    Ok(())
}

/// Reads the stacks of a repository, and prints the peak of memory of this process in KiB.
pub(crate) fn read_once(arguments: &[String]) -> anyhow::Result<()> {
    let [root] = arguments else { anyhow::bail!("{READ} ROOT") };
    let _read = read_stacks(root.as_ref())?;
    let status = fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    println!("{}", peak.context("the system tells no peak of memory")?);
    Ok(())
}

/// Returns the types of the package of the stacks.
fn package_types() -> PackageTypes {
    let inputs = ["name", "size", "secret", "before", "tags"].map(|name| (name.to_owned(), InputInfo::default()));
    let info = TypeInfo { inputs: inputs.into(), outputs: [("size".to_owned(), None)].into(), ..TypeInfo::default() };
    [("reef:sea/tank:Tank".to_owned(), info)].into_iter().collect()
}

/// Reads all stacks of a repository.
fn read_stacks(root: &Path) -> anyhow::Result<Vec<Stack>> {
    let repository = Repository { root: root.to_owned(), git: None };
    let process_context =
        ProcessContext { environment: BTreeMap::new(), now: jiff::Timestamp::now(), time_zone: None, account: None };
    let (types, mut sources) = (recipes::built_in_types(), SourceFiles::default());
    let profile = Profile::read("default", &repository, &process_context, &mut sources);
    let profile = profile.map_err(|found| anyhow::anyhow!("{found:?}"))?;
    let (repository, process_context) = (&repository, &process_context);
    let workspace = Workspace { repository, profile: &profile, stacks_dir: None, process_context, types: &types };
    let names = workspace.stack_names().map_err(|found| anyhow::anyhow!("{found:?}"))?.stacks;
    let loaded = workspace.load(&names, &mut sources);
    ensure!(!has_errors(&loaded.diagnostics), "{:?}", loaded.diagnostics.first());
    Ok(loaded.stacks)
}

const SECRETS: &str = "schemaVersion: 1.0\nvalues:\n  word: hush\n  other: quiet\n";

/// Sections before the resources.
const HEAD: &str = "schemaVersion: 1.0
provisioner:
  type: pulumi
  config:
    state-storage: { type: fs, config: { path: 'file:///srv/state' } }
    secrets-provider: { type: passphrase, config: { passPhrase: '${secret:word}' } }
variables:
  size: { type: string, value: large }
plugins:
  - name: reef
    source: { type: github-release, repository: acme/reef, version: v1.2.3 }
    config: { token: '${secret:other}' }
resources:
  resources:
    prod:
      resources:
";

fn server() -> String {
    let mut text = HEAD.to_owned();
    for resource in 0..RESOURCES {
        let before = if resource == 0 { "none".to_owned() } else { format!("${{resource:r{}.id}}", resource - 1) };
        write!(
            text,
            "        r{resource}:
          type: reef:sea/tank:Tank
          config:
            name: tank-{resource}
            size: '${{var:size}}'
            secret: '${{secret:other}}'
            before: '{before}'
            tags: {{ stack: '${{stack:name}}', number: {resource} }}
          options: {{ protect: true }}
"
        )
        .expect("writing to a string cannot fail");
    }
    text
}
