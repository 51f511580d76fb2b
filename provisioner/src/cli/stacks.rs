//! Loading of the stacks that a command works on, from the repository. Errors in their files are printed.

use std::sync::Arc;

use anyhow::Context as _;
use config::diagnostics::{Diagnostic, SourceFiles, closest, excerpt, has_errors};
use config::{LoadedStacks, ProcessContext, Profile, Repository, Stack, Workspace};
use engine::masking::SecretMasker;
use provisioner::operation::add_stack_secrets;
use provisioner::program::Program;
use provisioner::registry::provision::ProvisionTable;
use provisioner::registry::types;
use pulumi_proto::property::path::PropertyPath;
use state::Unrecorded;
use state::store::StackReference;

use super::args::{DirArgs, GlobalArgs, StackArgs, StacksArgs};
use super::display::{Locate, Place};
use super::exit::CliError;
use super::process;
use super::ui::Ui;

/// Profile that is used if none is named.
const DEFAULT_PROFILE: &str = "default";

/// Stacks that a command works on, with the repository.
#[derive(Debug)]
pub(crate) struct Stacks {
    pub(crate) repository: Repository,
    pub(crate) process_context: ProcessContext,
    /// Texts of all files that were read, for messages with positions in them.
    pub(crate) sources: Arc<SourceFiles>,
    /// Loaded stacks, in an order in which each comes after those that it inherits from.
    pub(crate) stacks: Vec<Arc<Stack>>,
    /// Secrets to mask in texts.
    pub(crate) masker: Arc<SecretMasker>,
    /// Receives what runs on the stacks could not record.
    pub(crate) unrecorded: Unrecorded,
    /// Names of the requested stacks.
    requested: Vec<String>,
}

impl Stacks {
    /// Returns the requested stack of a command that takes one.
    ///
    /// # Errors
    /// The stack was not loaded, which is a bug.
    pub(crate) fn only(&self) -> anyhow::Result<&Arc<Stack>> {
        self.requested().next().context("no stack was read")
    }

    /// Returns the requested stacks, in an order in which each comes after those that it inherits from.
    pub(crate) fn requested(&self) -> impl Iterator<Item = &Arc<Stack>> {
        self.stacks.iter().filter(|stack| self.requested.contains(&stack.name))
    }

    /// Returns the programs of the requested stacks.
    pub(crate) fn programs(&self) -> Vec<Program> {
        self.requested().map(program).collect()
    }

    /// Checks that the plugins of the stacks serve the packages that their core types need.
    ///
    /// # Errors
    /// Some packages are not served; the reasons have been printed.
    pub(crate) fn check_packages(&self, ui: &Ui) -> anyhow::Result<()> {
        let found: Vec<Diagnostic> = self.programs().iter().flat_map(Program::check_packages).collect();
        if found.is_empty() { Ok(()) } else { Err(configuration_error(ui, &found, &self.sources)) }
    }
}

/// Result of reading stacks.
#[derive(Debug)]
pub(crate) enum StacksRead {
    /// The files have no errors. The diagnostics are warnings, which have not been printed.
    Stacks(Box<Stacks>, Vec<Diagnostic>),
    /// The files have errors, which have not been printed.
    Errors(Vec<Diagnostic>, SourceFiles),
}

/// Creates the program of a stack.
pub(crate) fn program(stack: &Arc<Stack>) -> Program {
    Program::new(Arc::clone(stack), ProvisionTable::built_in())
}

/// Returns the function that finds positions for messages about a program's registrations.
pub(crate) fn locate(sources: Arc<SourceFiles>, program: Program) -> Locate {
    Arc::new(move |source, property| {
        // A path that cannot be parsed leads to the position of the whole resource.
        let path: Option<PropertyPath> = property.and_then(|property| property.parse().ok());
        let span = program.source_of(source, path.as_ref())?;
        Some(Place { position: sources.position(span).to_string(), excerpt: excerpt(span, &sources) })
    })
}

/// Loads the named stacks, or all.
///
/// # Errors
/// Wrong usage; errors in the files, which have been printed.
pub(crate) fn read_stacks(ui: &Ui, global: &GlobalArgs, args: &StacksArgs) -> anyhow::Result<Stacks> {
    read(ui, global, &args.dir, |names| choose_stacks(names, &args.stacks))
}

/// Loads the named stacks, or all, without printing errors and warnings about the files.
///
/// # Errors
/// Wrong usage.
pub(crate) fn find_stacks(ui: &Ui, global: &GlobalArgs, args: &StacksArgs) -> anyhow::Result<StacksRead> {
    load(ui, global, &args.dir, |names| choose_stacks(names, &args.stacks))
}

/// Loads the named stack, or the only one.
///
/// # Errors
/// Wrong usage; errors in the files, which have been printed.
pub(crate) fn read_stack(ui: &Ui, global: &GlobalArgs, args: &StackArgs) -> anyhow::Result<Stacks> {
    read(ui, global, &args.dir, |names| Ok(vec![choose_stack(names, args.stack.as_deref())?]))
}

/// Loads all stacks of a folder.
///
/// # Errors
/// Errors in the files, which have been printed.
pub(crate) fn read_all(ui: &Ui, global: &GlobalArgs, dir: &DirArgs) -> anyhow::Result<Stacks> {
    read(ui, global, dir, |names| Ok(names.to_vec()))
}

/// Returns the names of all stacks, without loading them.
///
/// # Errors
/// The errors of the profile, and of the folder of the stacks.
pub(crate) fn read_all_names(ui: &Ui, global: &GlobalArgs, dir: &DirArgs) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    read(ui, global, dir, |existing| {
        names = existing.to_vec();
        Ok(Vec::new())
    })?;
    Ok(names)
}

fn read(
    ui: &Ui,
    global: &GlobalArgs,
    dir: &DirArgs,
    choose: impl FnOnce(&[String]) -> Result<Vec<String>, CliError>,
) -> anyhow::Result<Stacks> {
    match load(ui, global, dir, choose)? {
        StacksRead::Stacks(stacks, warnings) => {
            ui.print_diagnostics(&warnings, &stacks.sources);
            Ok(*stacks)
        }
        StacksRead::Errors(found, sources) => Err(configuration_error(ui, &found, &sources)),
    }
}

fn load(
    ui: &Ui,
    global: &GlobalArgs,
    dir: &DirArgs,
    choose: impl FnOnce(&[String]) -> Result<Vec<String>, CliError>,
) -> anyhow::Result<StacksRead> {
    let process_context = process::process_context();
    let repository = Repository::discover(&process::working_folder(global.cwd.as_deref())?);
    process::check_owner(&repository, &process_context.environment)?;
    let mut sources = SourceFiles::default();
    let name = global.profile.as_deref().filter(|name| !name.is_empty()).unwrap_or(DEFAULT_PROFILE);
    let profile = match Profile::read(name, &repository, &process_context, &mut sources) {
        Ok(profile) => profile,
        Err(found) => return Ok(StacksRead::Errors(found, sources)),
    };
    let types = types::built_in_types();
    let workspace = Workspace {
        repository: &repository,
        profile: &profile,
        stacks_dir: dir.dir.as_deref(),
        process_context: &process_context,
        types: &types,
    };
    let names = match workspace.stack_names() {
        Ok(names) => names,
        Err(found) => return Ok(StacksRead::Errors(vec![*found], sources)),
    };
    let chosen = choose(&names)?;
    let LoadedStacks { stacks, diagnostics, secrets } = workspace.load(&chosen, &mut sources);
    let of_profile = [&profile.private_key, &profile.private_key_password];
    secrets.iter().chain(of_profile.into_iter().flatten()).for_each(|secret| ui.masker().add_text(secret.expose()));
    stacks.iter().for_each(|stack| add_stack_secrets(ui.masker(), stack));
    if has_errors(&diagnostics) {
        return Ok(StacksRead::Errors(diagnostics, sources));
    }
    let stacks = stacks.into_iter().map(Arc::new).collect();
    let (sources, masker, unrecorded) = (Arc::new(sources), Arc::clone(ui.masker()), ui.unrecorded().clone());
    let stacks = Stacks { repository, process_context, sources, stacks, masker, unrecorded, requested: chosen };
    Ok(StacksRead::Stacks(Box::new(stacks), diagnostics))
}

/// Prints diagnostics, and returns an error with the number of errors among them.
pub(crate) fn configuration_error(ui: &Ui, found: &[Diagnostic], sources: &SourceFiles) -> anyhow::Error {
    ui.print_diagnostics(found, sources);
    match found.iter().filter(|diagnostic| has_errors(std::slice::from_ref(diagnostic))).count() {
        1 => anyhow::anyhow!("the configuration has an error; nothing was changed"),
        count => anyhow::anyhow!("the configuration has {count} errors; nothing was changed"),
    }
}

/// Returns the named stacks without duplicates; all stacks if none is named.
fn choose_stacks(existing: &[String], named: &[String]) -> Result<Vec<String>, CliError> {
    let mut chosen: Vec<String> = Vec::new();
    for name in named.iter().map(|name| name.trim()) {
        check_exists(existing, name)?;
        if !chosen.iter().any(|known| known == name) {
            chosen.push(name.to_owned());
        }
    }
    if chosen.is_empty() && existing.is_empty() {
        return Err(no_stacks());
    }
    Ok(if chosen.is_empty() { existing.to_vec() } else { chosen })
}

/// Returns the named stack, or the only one.
fn choose_stack(existing: &[String], named: Option<&str>) -> Result<String, CliError> {
    match (named.map(str::trim), existing) {
        (Some(name), _) => check_exists(existing, name).map(|()| name.to_owned()),
        (None, [only]) => Ok(only.clone()),
        (None, []) => Err(no_stacks()),
        (None, several) => {
            let message = format!("there are {} stacks: {}", several.len(), several.join(", "));
            Err(CliError::usage(message, "choose one with --stack"))
        }
    }
}

fn check_exists(existing: &[String], name: &str) -> Result<(), CliError> {
    if name.is_empty() {
        let hint = "an unset variable may have been passed; leave the option out for the default";
        return Err(CliError::usage("the name of a stack is empty", hint));
    }
    if existing.iter().any(|known| known == name) {
        return Ok(());
    }
    if existing.is_empty() {
        return Err(no_stacks());
    }
    let hint = match closest(name, existing.iter().map(String::as_str)) {
        Some(close) => format!("did you mean {close}?"),
        None => format!("the stacks are: {}", existing.join(", ")),
    };
    Err(CliError::usage(format!("there is no stack {name}"), hint))
}

fn no_stacks() -> CliError {
    CliError::usage("there are no stacks", "a stack is a folder with a server.yaml below `.sc/stacks`")
}

pub(crate) fn not_provisioned(stack: &StackReference) -> CliError {
    let hint = format!("provision it with `sc provision -s {}`", stack.stack());
    CliError::failed(format!("{} has not been provisioned yet", stack.stack()), hint)
}

#[cfg(test)]
mod tests {
    use super::super::exit::{error_lines, error_texts};
    use super::*;

    fn names<const N: usize>(names: [&str; N]) -> Vec<String> {
        names.map(str::to_owned).to_vec()
    }

    fn error_text<T: std::fmt::Debug>(result: Result<T, CliError>) -> String {
        let lines = error_lines(&error_texts(&result.unwrap_err().into(), &SecretMasker::default()));
        lines.iter().map(|line| line.render(false) + "\n").collect()
    }

    #[test]
    fn stacks_are_selected_by_name_without_duplicates_or_all() {
        let existing = names(["network", "reef", "shore"]);
        assert_eq!(choose_stacks(&existing, &[]).unwrap(), existing);
        assert_eq!(choose_stacks(&existing, &names(["shore", " reef", "shore"])).unwrap(), ["shore", "reef"]);
        insta::assert_snapshot!(error_text(choose_stacks(&existing, &names(["ref"]))), @"
        error: there is no stack ref
          hint: did you mean reef?
        ");
        for empty in [&[""][..], &["shore", ""], &[" "]] {
            let empty: Vec<String> = empty.iter().map(ToString::to_string).collect();
            insta::allow_duplicates!(insta::assert_snapshot!(error_text(choose_stacks(&existing, &empty)), @"
            error: the name of a stack is empty
              hint: an unset variable may have been passed; leave the option out for the default
            "));
        }
        insta::assert_snapshot!(error_text(choose_stacks(&[], &[])), @"
        error: there are no stacks
          hint: a stack is a folder with a server.yaml below `.sc/stacks`
        ");
    }

    #[test]
    fn single_stack_is_selected_by_name_or_is_the_only_one() {
        let existing = names(["reef", "shore"]);
        assert_eq!(choose_stack(&existing[..1], None).unwrap(), "reef");
        assert_eq!(choose_stack(&existing, Some("shore")).unwrap(), "shore");
        insta::assert_snapshot!(error_text(choose_stack(&existing, None)), @"
        error: there are 2 stacks: reef, shore
          hint: choose one with --stack
        ");
        assert!(error_text(choose_stack(&existing[..1], Some(""))).contains("the name of a stack is empty"));
        insta::assert_snapshot!(error_text(choose_stack(&existing, Some("mountains"))), @"
        error: there is no stack mountains
          hint: the stacks are: reef, shore
        ");
    }
}
