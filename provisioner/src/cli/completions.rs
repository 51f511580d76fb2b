//! Names that a shell completes: of profiles, stacks, plugins, resources, outputs and branches.
//!
//! Reads files of the repository, without placeholders and secrets, and the names that commands have kept
//! ([`recorded_names`]). A repository that was only cloned gets nothing: no state is opened, no connection, no plugin and no
//! store of secrets is used, and a name is quoted for the shell. Prints no error: an invalid file has no candidates.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Command;
use clap::builder::Resettable;
use clap_complete::{ArgValueCandidates, CompletionCandidate};
use config::{DeclaredNames, Repository, StackFolders};
use provisioner::operation::check_owner;
use secrets_store::StoreFile;
use secrets_store::store::Store;

use super::process::{identity, process_context, working_folder};
use super::recorded_names::RecordedNames;
use super::stacks::DEFAULT_PROFILE;
use super::{recorded_names, shell_words};

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

    /// Returns the repository, if the user of this process may trust it.
    fn repository(&self) -> Option<Repository> {
        let repository = Repository::discover(&working_folder(self.cwd.as_deref()).ok()?);
        check_owner(&repository, &identity(&process_context().environment)).ok()?;
        Some(repository)
    }

    fn folders(&self) -> Option<StackFolders> {
        let profile = self.profile.as_deref().unwrap_or(DEFAULT_PROFILE);
        StackFolders::find(&self.repository()?, profile, self.dir.as_deref())
    }

    /// Returns the name of the selected stack, or of the only one.
    fn selected(&self, folders: &StackFolders) -> Option<String> {
        let names = folders.names();
        match (&self.stack, &names[..]) {
            (Some(stack), _) => names.iter().find(|name| *name == stack).cloned(),
            (None, [only]) => Some(only.clone()),
            (None, _) => None,
        }
    }

    fn declared(&self) -> DeclaredNames {
        let declared = self.folders().and_then(|folders| Some(folders.declared(&self.selected(&folders)?)));
        declared.unwrap_or_default()
    }

    fn profiles(&self) -> Vec<String> {
        let entries = self.repository().and_then(|repository| std::fs::read_dir(repository.root.join(".sc")).ok());
        let names = entries.into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter_map(|name| Some(name.strip_prefix("cfg.")?.strip_suffix(".yaml")?.to_owned())).collect()
    }

    fn stacks(&self) -> Vec<String> {
        self.folders().map(|folders| folders.names()).unwrap_or_default()
    }

    /// Returns the names of the branches and tags of the repository.
    fn revisions(&self) -> Vec<String> {
        self.repository().map(|repository| repository.revisions()).unwrap_or_default()
    }

    fn plugins(&self) -> Vec<String> {
        let Some(folders) = self.folders() else { return Vec::new() };
        let names: BTreeSet<String> =
            folders.names().iter().flat_map(|stack| folders.declared(stack).plugins).collect();
        names.into_iter().collect()
    }

    /// Returns the beginnings of `NAME=PATH` for declared plugins.
    fn overrides(&self) -> Vec<String> {
        self.plugins().into_iter().map(|name| format!("{name}=")).collect()
    }

    fn outputs(&self) -> Vec<String> {
        self.declared().outputs
    }

    /// Returns the names of the secrets in the file of the stack.
    fn secrets(&self) -> Vec<String> {
        self.declared().secrets
    }

    fn store(&self) -> Option<Store> {
        StoreFile::of(&self.repository()?.root).read().ok()
    }

    fn hidden_files(&self) -> Vec<String> {
        self.store().map(|store| store.files).unwrap_or_default()
    }

    fn allowed_keys(&self) -> Vec<String> {
        let store = self.store().unwrap_or_default();
        store.recipients().iter().map(|recipient| recipient.key.to_string()).collect()
    }

    /// Returns the names of resources that a command has recorded or shown.
    fn recorded(&self) -> Vec<String> {
        self.recorded_names().resources.into_iter().collect()
    }

    fn recorded_names(&self) -> RecordedNames {
        let stack = self.folders().and_then(|folders| self.selected(&folders));
        let (Some(repository), Some(stack)) = (self.repository(), stack) else { return RecordedNames::default() };
        recorded_names::find(&process_context().environment, &repository.root, &stack)
    }

    /// Returns the names of declared and recorded resources, and a pattern for each environment.
    fn resources(&self) -> Vec<String> {
        let mut names = self.recorded_names().resources;
        names.extend(self.declared_resources());
        names.extend(self.declared().environments.iter().map(|(environment, _)| format!("*--{environment}")));
        names.into_iter().collect()
    }

    /// Returns the names of declared resources.
    fn declared_resources(&self) -> Vec<String> {
        let environments = self.declared().environments;
        let names = environments
            .iter()
            .flat_map(|(environment, keys)| keys.iter().map(move |key| format!("{key}--{environment}")));
        names.collect()
    }

    /// Returns the names that a resource of the state may get: those of declared resources that are not recorded.
    fn new_names(&self) -> Vec<String> {
        let recorded = self.recorded_names().resources;
        self.declared_resources().into_iter().filter(|name| !recorded.contains(name)).collect()
    }

    /// Returns the beginnings of `RESOURCE=ID` for declared resources.
    fn imports(&self) -> Vec<String> {
        self.new_names().into_iter().map(|name| format!("{name}=")).collect()
    }

    /// Returns the beginnings of `RESOURCE=ID` for pending creates.
    fn pending_imports(&self) -> Vec<String> {
        self.recorded_names().pending.into_iter().map(|name| format!("{name}=")).collect()
    }

    fn copies(&self) -> Vec<String> {
        self.recorded_names().copies.into_iter().collect()
    }

    fn tags(&self) -> Vec<String> {
        self.recorded_names().tags.into_iter().collect()
    }
}

/// Adds the names to the arguments of a command and of its subcommands, as words of a shell. `words` is the command line.
pub(crate) fn with_candidates(command: Command, words: &[OsString], shell: &str) -> Command {
    add_candidates(command, &[], &Arc::new(Selection::of(words)), &Arc::from(shell))
}

/// Adds the names to the arguments of a command. `parents` are the names of the commands above it.
fn add_candidates(mut command: Command, parents: &[&str], selection: &Arc<Selection>, shell: &Arc<str>) -> Command {
    // The documented name alone is shown. The others are completed no less.
    let aliases: Vec<String> = command.get_all_aliases().map(str::to_owned).collect();
    command = command.visible_alias(Resettable::Reset).aliases(aliases);
    let arguments: Vec<clap::Id> = command.get_arguments().map(|argument| argument.get_id().clone()).collect();
    for id in arguments {
        let names: fn(&Selection) -> Vec<String> = match (command.get_name(), id.as_str()) {
            (_, "profile") => Selection::profiles,
            ("init", "stack") => continue,
            (_, "stack" | "stacks") => Selection::stacks,
            (_, "target" | "exclude" | "replace" | "target_replace") => Selection::resources,
            (_, "import_pending_creates") => Selection::pending_imports,
            ("import", "resources") => Selection::imports,
            ("rename", "name") if parents.last() == Some(&"state") => Selection::new_names,
            ("restore", "copy") => Selection::copies,
            ("get" | "set" | "rm", "name") if parents.last() == Some(&"tag") => Selection::tags,
            (_, "resource" | "resources") | ("ls", "pattern") => Selection::recorded,
            ("outputs" | "output", "name") => Selection::outputs,
            ("secret-get", "name") => Selection::secrets,
            ("delete" | "edit", "path") => Selection::hidden_files,
            ("disallow", "key") => Selection::allowed_keys,
            ("debug", "plugin") | ("schema", "name") => Selection::plugins,
            (_, "overrides") => Selection::overrides,
            (_, "changed_since") => Selection::revisions,
            _ => continue,
        };
        let (selection, shell) = (Arc::clone(selection), Arc::clone(shell));
        let candidates = move || {
            let words = names(&selection).into_iter().filter_map(|name| shell_words::word(&name, &shell));
            words.map(CompletionCandidate::new).collect()
        };
        command = command.mut_arg(id, |argument| argument.add(ArgValueCandidates::new(candidates)));
    }
    let subcommands: Vec<String> = command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    let own = command.get_name().to_owned();
    let path: Vec<&str> = parents.iter().copied().chain([own.as_str()]).collect();
    for name in subcommands {
        command = command.mut_subcommand(name, |subcommand| add_candidates(subcommand, &path, selection, shell));
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
