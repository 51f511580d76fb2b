//! Names that a shell completes: of profiles, stacks, plugins, resources and outputs.
//!
//! Reads files only: the profile, the stacks, the recorded state. Starts no plugin, takes no lock, needs no passphrase and
//! prints nothing, also if a file is invalid: it then has no candidates.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Command;
use clap_complete::{ArgValueCandidates, CompletionCandidate};
use provisioner::operation::Stacks;
use secrets_store::StoreFile;
use secrets_store::store::Store;
use state::StackView;

use super::args::{ColorArg, DirArgs, GlobalArgs, StackArgs};
use super::process::working_folder;
use super::stacks::{only, read_all, read_all_names, read_stack};
use super::ui::Ui;

/// Words of the command line that select what is completed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Selection {
    profile: Option<String>,
    cwd: Option<PathBuf>,
    dir: Option<PathBuf>,
    stack: Option<String>,
}

impl Selection {
    /// Reads the options from the words of a command line, which may be incomplete.
    fn of(words: &[OsString]) -> Self {
        let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
        let mut selection = Self::default();
        for (index, word) in words.iter().enumerate() {
            let (option, value) = match word.split_once('=') {
                Some((option, value)) => (option, Some(value)),
                None => (*word, words.get(index + 1).copied()),
            };
            let Some(value) = value.filter(|value| !value.is_empty()) else { continue };
            match option {
                "-p" | "--profile" => selection.profile = Some(value.to_owned()),
                "-C" | "--cwd" => selection.cwd = Some(value.into()),
                "-d" | "--dir" => selection.dir = Some(value.into()),
                "-s" | "--stack" | "--stacks" => selection.stack = Some(value.to_owned()),
                _ => {}
            }
        }
        selection
    }

    fn global(&self) -> GlobalArgs {
        let (profile, cwd) = (self.profile.clone(), self.cwd.clone());
        GlobalArgs { verbose: false, profile, cwd, color: ColorArg::Never, json: false }
    }

    fn dir(&self) -> DirArgs {
        DirArgs { dir: self.dir.clone() }
    }

    fn read_stack(&self) -> Option<Stacks> {
        let global = self.global();
        let stack = StackArgs { stack: self.stack.clone(), dir: self.dir() };
        read_stack(&Ui::silent(&global), &global, &stack).ok()
    }

    fn profiles(&self) -> Vec<String> {
        let folder = working_folder(self.cwd.as_deref()).ok();
        let root = folder.map(|folder| config::Repository::discover(&folder).root);
        let entries = root.and_then(|root| std::fs::read_dir(root.join(".sc")).ok()).into_iter().flatten();
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter_map(|name| Some(name.strip_prefix("cfg.")?.strip_suffix(".yaml")?.to_owned())).collect()
    }

    fn stacks(&self) -> Vec<String> {
        let global = self.global();
        read_all_names(&Ui::silent(&global), &global, &self.dir()).unwrap_or_default()
    }

    fn plugins(&self) -> Vec<String> {
        let global = self.global();
        let stacks = read_all(&Ui::silent(&global), &global, &self.dir());
        let declared = stacks.iter().flat_map(|stacks| stacks.requested()).flat_map(|stack| &stack.plugins);
        let enabled = declared.map(|declared| &declared.plugin).filter(|plugin| plugin.enabled);
        let names: BTreeSet<String> = enabled.map(|plugin| plugin.name.to_string()).collect();
        names.into_iter().collect()
    }

    fn outputs(&self) -> Vec<String> {
        let stacks = self.read_stack();
        let stack = stacks.as_ref().and_then(|stacks| only(stacks).ok());
        stack.into_iter().flat_map(|stack| stack.outputs.iter().map(|output| output.name.clone())).collect()
    }

    /// Returns the names of the secrets of the stack.
    fn secrets(&self) -> Vec<String> {
        let stacks = self.read_stack();
        let stack = stacks.as_ref().and_then(|stacks| only(stacks).ok());
        stack.into_iter().flat_map(|stack| stack.secrets.keys().cloned()).collect()
    }

    fn store(&self) -> Option<Store> {
        let folder = working_folder(self.cwd.as_deref()).ok()?;
        StoreFile::of(&config::Repository::discover(&folder).root).read().ok()
    }

    fn hidden_files(&self) -> Vec<String> {
        self.store().map(|store| store.files).unwrap_or_default()
    }

    fn allowed_keys(&self) -> Vec<String> {
        let store = self.store().unwrap_or_default();
        store.recipients().iter().map(|recipient| recipient.key.to_string()).collect()
    }

    /// Returns the names of recorded resources.
    fn recorded(&self) -> Vec<String> {
        let Some(stacks) = self.read_stack() else { return Vec::new() };
        let names = recorded_names(&stacks);
        names.into_iter().collect()
    }

    /// Returns the names of declared and recorded resources, and a pattern for each environment.
    fn resources(&self) -> Vec<String> {
        let Some(stacks) = self.read_stack() else { return Vec::new() };
        let mut names = recorded_names(&stacks);
        for (environment, resource) in only(&stacks).into_iter().flat_map(|stack| stack.resources()) {
            names.insert(format!("{}--{}", resource.key, environment.name));
            names.insert(format!("*--{}", environment.name));
        }
        names.into_iter().collect()
    }
}

/// Returns the names of the recorded resources of a stack.
fn recorded_names(stacks: &Stacks) -> BTreeSet<String> {
    let read = async {
        let access = stacks.open_access(only(stacks).ok()?).await.ok()?;
        StackView::open_without_secrets(&access).await.ok()?.snapshot
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let snapshot = runtime.ok().and_then(|runtime| runtime.block_on(read)).unwrap_or_default();
    snapshot.resources.iter().map(|state| state.urn.name().to_owned()).collect()
}

/// Adds the names to the arguments of a command and of its subcommands. `words` is the command line.
pub(crate) fn with_candidates(command: Command, words: &[OsString]) -> Command {
    add_candidates(command, &Arc::new(Selection::of(words)))
}

fn add_candidates(mut command: Command, selection: &Arc<Selection>) -> Command {
    let arguments: Vec<clap::Id> = command.get_arguments().map(|argument| argument.get_id().clone()).collect();
    for id in arguments {
        let names: fn(&Selection) -> Vec<String> = match (command.get_name(), id.as_str()) {
            (_, "profile") => Selection::profiles,
            ("init", "stack") => continue,
            (_, "stack" | "stacks") => Selection::stacks,
            (_, "target" | "exclude" | "replace" | "target_replace") => Selection::resources,
            (_, "resource" | "resources") | ("ls", "pattern") => Selection::recorded,
            ("outputs" | "output", "name") => Selection::outputs,
            ("secret-get", "name") => Selection::secrets,
            ("delete", "path") => Selection::hidden_files,
            ("disallow", "key") => Selection::allowed_keys,
            ("debug", "plugin") => Selection::plugins,
            _ => continue,
        };
        let selection = Arc::clone(selection);
        let candidates = move || names(&selection).into_iter().map(CompletionCandidate::new).collect();
        command = command.mut_arg(id, |argument| argument.add(ArgValueCandidates::new(candidates)));
    }
    let subcommands: Vec<String> = command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    for name in subcommands {
        command = command.mut_subcommand(name, |subcommand| add_candidates(subcommand, selection));
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_from_an_incomplete_command_line() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        let selection = Selection::of(&words("sc -- sc -p prod state show --stack=reef -C .. --dir"));
        let expected = Selection {
            profile: Some("prod".to_owned()),
            cwd: Some("..".into()),
            dir: None,
            stack: Some("reef".to_owned()),
        };
        assert_eq!(selection, expected);
        assert_eq!(Selection::of(&words("sc -- sc state show -s ")), Selection::default());
    }
}
