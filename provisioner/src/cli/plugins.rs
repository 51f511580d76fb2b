//! Settings of the plugins of a command, from the stacks, the environment and the command line.

use std::sync::Arc;

use anyhow::Context as _;
use bridge::host::PluginPool;
use bridge::process::{Spawner, Supervision};
use provisioner::operation::{PluginOverride, PluginSettings, Stacks};

use super::args::{OverrideArgs, plugin_override};
use super::attached_plugins;
use super::exit::CliError;

/// Environment variable with local builds that take the place of declared plugins, `NAME=PATH` with commas between several.
const OVERRIDE: &str = "SC_PLUGIN_OVERRIDE";

/// Returns the settings for the plugins of all stacks. A supervisor starts the plugins, so that none outlives this
/// process.
pub(crate) fn plugin_settings(stacks: &Stacks) -> anyhow::Result<PluginSettings> {
    let program = std::env::current_exe().context("the path of the sc executable cannot be determined")?;
    let spawner = Spawner::supervised(Arc::new(Supervision::new(&program)?));
    let mut settings = PluginSettings::new(stacks, spawner, PluginPool::new())?;
    settings.attached = attached_plugins::read(&stacks.process_context.environment)?;
    Ok(settings)
}

/// Returns the settings for the plugins of all stacks, with local builds in place of some, for a command that starts plugins. For a
/// plugin that both name, the command line counts.
pub(crate) fn overridden_plugins(stacks: &Stacks, args: &OverrideArgs) -> anyhow::Result<PluginSettings> {
    let text = stacks.process_context.environment.get(OVERRIDE).map_or("", String::as_str);
    let mut overrides = read_variable(text)?;
    overrides.extend(args.overrides.iter().cloned());
    Ok(plugin_settings(stacks)?.with_overrides(stacks, &overrides)?)
}

fn read_variable(text: &str) -> Result<Vec<PluginOverride>, CliError> {
    let entries = text.split(',').map(str::trim).filter(|_| !text.trim().is_empty());
    let read = |(at, entry): (usize, &str)| {
        plugin_override(entry).map_err(|reason| {
            let message = format_args!("the variable {OVERRIDE} is invalid: entry {} is {entry:?}: {reason}", at + 1);
            CliError::usage(message, "its form is NAME=PATH, with commas between several")
        })
    };
    entries.enumerate().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_the_variable_are_read() {
        let read = |text: &str| {
            let read = read_variable(text).map_err(|error| error.to_string())?;
            let entry = |PluginOverride { name, path }| format!("{name} {}", path.display());
            Ok::<_, String>(read.into_iter().map(entry).collect::<Vec<_>>())
        };
        assert_eq!(read(""), Ok(vec![]));
        assert_eq!(read(" "), Ok(vec![]));
        assert_eq!(read("reef=bin/reef, lake=/a=b"), Ok(vec!["reef bin/reef".to_owned(), "lake /a=b".to_owned()]));
        for (text, expected) in [
            ("reef", "entry 1 is \"reef\": expected NAME=PATH"),
            ("reef=a,", "entry 2 is \"\": expected NAME=PATH"),
            ("reef=", "expected NAME=PATH"),
            ("=a", "invalid name \"\""),
            ("Reef=a", "invalid name \"Reef\""),
        ] {
            let error = read(text).unwrap_err();
            assert!(
                error.starts_with("the variable SC_PLUGIN_OVERRIDE is invalid: ") && error.contains(expected),
                "{error}"
            );
        }
    }
}
