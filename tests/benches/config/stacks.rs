//! Measurement of reading stacks with fifty resources each, which refer to each other and to secrets and variables.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use anyhow::ensure;
use config::diagnostics::{SourceFiles, has_errors};
use config::{ProcessContext, Profile, Repository, Workspace};
use provisioner::registry::types;

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
    let read = || {
        let process_context = ProcessContext {
            environment: BTreeMap::new(),
            now: jiff::Timestamp::now(),
            time_zone: None,
            account: None,
        };
        let (types, mut sources) = (types::built_in_types(), SourceFiles::default());
        let profile = Profile::read("default", &repository, &process_context, &mut sources);
        let profile = profile.map_err(|found| anyhow::anyhow!("{found:?}"))?;
        let (repository, process_context) = (&repository, &process_context);
        let workspace = Workspace { repository, profile: &profile, stacks_dir: None, process_context, types: &types };
        let names = workspace.stack_names().map_err(|found| anyhow::anyhow!("{found:?}"))?;
        let loaded = workspace.load(&names, &mut sources);
        ensure!(!has_errors(&loaded.diagnostics), "{:?}", loaded.diagnostics.first());
        ensure!(loaded.stacks.len() == stacks && loaded.stacks[0].environments[0].resources.len() == RESOURCES);
        Ok(())
    };
    let parse = || {
        for text in &texts {
            let value: serde_yaml::Value = serde_yaml::from_str(text)?;
            ensure!(value.is_mapping());
        }
        Ok(())
    };
    compare_in_turns(&format!("{stacks} stacks of {RESOURCES} resources, read and resolved"), 10.0, rounds, read, parse)
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
