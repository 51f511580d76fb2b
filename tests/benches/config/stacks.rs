//! Measurements of reading and of validating stacks with fifty resources each, which refer to each other and to secrets and variables.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

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
    let repository = Repository { root: folder.path().to_owned(), git: None };
    let load = || -> anyhow::Result<Vec<Stack>> {
        let process_context = ProcessContext {
            environment: BTreeMap::new(),
            now: jiff::Timestamp::now(),
            time_zone: None,
            account: None,
        };
        let (types, mut sources) = (recipes::built_in_types(), SourceFiles::default());
        let profile = Profile::read("default", &repository, &process_context, &mut sources);
        let profile = profile.map_err(|found| anyhow::anyhow!("{found:?}"))?;
        let (repository, process_context) = (&repository, &process_context);
        let workspace = Workspace { repository, profile: &profile, stacks_dir: None, process_context, types: &types };
        let names = workspace.stack_names().map_err(|found| anyhow::anyhow!("{found:?}"))?.stacks;
        let loaded = workspace.load(&names, &mut sources);
        ensure!(!has_errors(&loaded.diagnostics), "{:?}", loaded.diagnostics.first());
        ensure!(loaded.stacks.len() == stacks && loaded.stacks[0].environments[0].resources.len() == RESOURCES);
        Ok(loaded.stacks)
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

/// Returns the types of the package of the stacks.
fn package_types() -> PackageTypes {
    let inputs = ["name", "size", "secret", "before", "tags"].map(|name| (name.to_owned(), InputInfo::default()));
    let info = TypeInfo { inputs: inputs.into(), outputs: [("size".to_owned(), None)].into(), ..TypeInfo::default() };
    [("reef:sea/tank:Tank".to_owned(), info)].into_iter().collect()
}

const SECRETS: &str = "schemaVersion: 1.0\nvalues:\n  word: hush\n  other: quiet\n";

fn server() -> String {
    let mut text = "schemaVersion: 1.0
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
"
    .to_owned();
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
