//! Loading of the stacks that a command works on, from the repository. Errors in their files are printed.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use bridge::message_text::MessageText;
use bridge::shell::option;
use config::diagnostics::{Diagnostic, SourceFiles, excerpt, has_errors};
use config::{ProcessContext, Reading, Stack};
use jiff::Timestamp;
use provisioner::operation::{FetchRules, Selection, Stacks, StacksRead, StacksRequest};
use provisioner::program::Program;
use pulumi_proto::property::path::PropertyPath;
use secrets_store::STORE_PATH;
use state::store::StackReference;

use super::args::{ChangedSinceArgs, DirArgs, GlobalArgs, NamedStacksArgs, StackArgs, StacksArgs};
use super::display::{FilePosition, Locate};
use super::exit::CliError;
use super::output::Output;
use super::plaintext;
use super::process;
use super::ui::Ui;

/// Profile that is used if none is named.
pub(crate) const DEFAULT_PROFILE: &str = "default";

/// Returns the name of the profile to use.
pub(crate) fn profile_name(global: &GlobalArgs) -> &str {
    global.profile.as_deref().filter(|name| !name.is_empty()).unwrap_or(DEFAULT_PROFILE)
}

/// Returns the requested stack of a command that takes one.
///
/// # Errors
/// The stack was not loaded, which is a bug.
pub(crate) fn only(stacks: &Stacks) -> anyhow::Result<&Arc<Stack>> {
    stacks.requested().next().context("no stack was read")
}

/// Checks the core types of the stacks: the plugins of their packages, and the names that they register; and the files of assets.
/// Prints warnings, each once.
///
/// # Errors
/// Plugins of packages are disabled or ambiguous, names are in conflict, or files are missing; the reasons have been printed.
pub(crate) fn check_before_plugins(output: &Output, stacks: &Stacks) -> anyhow::Result<()> {
    let programs = [stacks.programs(), stacks.key_programs()].concat();
    let found: Vec<Diagnostic> = programs.iter().flat_map(Program::check_before_plugins).collect();
    if has_errors(&found) {
        return Err(configuration_error(output, &found, &stacks.sources));
    }
    // Several stacks may declare a plugin alike.
    let mut seen = BTreeSet::new();
    let warnings: Vec<Diagnostic> =
        found.into_iter().filter(|warning| seen.insert(warning.summary.to_string())).collect();
    output.print_diagnostics(&warnings, &stacks.sources);
    Ok(())
}

/// Returns the function that finds positions for messages about a program's registrations.
pub(crate) fn locate(sources: Arc<SourceFiles>, program: Program) -> Locate {
    Arc::new(move |source, property| {
        // A path that cannot be parsed leads to the position of the whole resource.
        let path: Option<PropertyPath> = property.and_then(|property| property.parse().ok());
        let span = program.source_of(source, path.as_ref())?;
        Some(FilePosition { position: sources.position(span).to_string(), excerpt: excerpt(span, &sources) })
    })
}

/// Loads the named stacks, or all.
///
/// # Errors
/// Wrong usage; errors in the files, which have been printed.
pub(crate) fn read_stacks(ui: &Ui, global: &GlobalArgs, args: &StacksArgs) -> anyhow::Result<Stacks> {
    read(ui, global, &args.dir, Selection::Named(&args.stacks), Reading::Whole)
}

/// Loads the named stacks, or all, for a command that may select those that have changed, and so reads what they depend on.
///
/// # Errors
/// As [`read_stacks`].
pub(crate) fn read_stacks_to_compare(
    ui: &Ui,
    global: &GlobalArgs,
    args: &StacksArgs,
    changed: &ChangedSinceArgs,
) -> anyhow::Result<Stacks> {
    read(ui, global, &args.dir, selection_to_compare(args, changed), Reading::Whole)
}

/// Loads stacks as [`read_stacks`], with the values of `${date:…}` at a time.
///
/// # Errors
/// As [`read_stacks`].
pub(crate) fn read_stacks_at(
    ui: &Ui,
    global: &GlobalArgs,
    args: &StacksArgs,
    time: Timestamp,
) -> anyhow::Result<Stacks> {
    let folder = process::working_folder(global.cwd.as_deref())?;
    let mut request = request(ui, global, &args.dir, &folder, Reading::Whole);
    request.process_context.now = time;
    match Stacks::read(request, Selection::Named(&args.stacks))? {
        StacksRead::Stacks(stacks, warnings) => {
            ui.output.print_diagnostics(&warnings, &stacks.sources);
            Ok(*stacks)
        }
        StacksRead::Errors(found, sources) => Err(configuration_error(&ui.output, &found, &sources)),
    }
}

/// Loads the named stacks, or all, to check them, without printing errors and warnings about the files.
///
/// # Errors
/// Wrong usage.
pub(crate) fn find_stacks(
    ui: &Ui,
    global: &GlobalArgs,
    args: &StacksArgs,
    changed: &ChangedSinceArgs,
    reading: Reading,
) -> anyhow::Result<StacksRead> {
    load(ui, global, &args.dir, selection_to_compare(args, changed), reading)
}

/// Loads the named stacks, or all, with what they depend on, and unknown values where this process has none.
///
/// # Errors
/// As [`read_stacks`].
pub(crate) fn read_stacks_of_graph(ui: &Ui, global: &GlobalArgs, args: &StacksArgs) -> anyhow::Result<Stacks> {
    read(ui, global, &args.dir, Selection::WithDependencies(&args.stacks), Reading::WithoutValues)
}

fn selection_to_compare<'a>(args: &'a StacksArgs, changed: &ChangedSinceArgs) -> Selection<'a> {
    match changed.changed_since {
        Some(_) => Selection::WithDependencies(&args.stacks),
        None => Selection::Named(&args.stacks),
    }
}

/// Loads the named stacks, or the only one.
///
/// # Errors
/// As [`read_stacks`].
pub(crate) fn read_named_stacks(ui: &Ui, global: &GlobalArgs, args: &NamedStacksArgs) -> anyhow::Result<Stacks> {
    let selection = match &args.stacks[..] {
        [] => Selection::One(None),
        names => Selection::Named(names),
    };
    read(ui, global, &args.dir, selection, Reading::Whole)
}

/// Loads the named stack, or the only one.
///
/// # Errors
/// Wrong usage; errors in the files, which have been printed.
pub(crate) fn read_stack(ui: &Ui, global: &GlobalArgs, args: &StackArgs) -> anyhow::Result<Stacks> {
    read(ui, global, &args.dir, Selection::One(args.stack.as_deref()), Reading::Whole)
}

/// Loads the named stack, or the only one, for a command that needs nothing but its state: of server.yaml, only the part that
/// says where the state is must have no errors. The stack has no resources, plugins and outputs.
///
/// # Errors
/// As [`read_stack`].
pub(crate) fn read_stack_of_state(ui: &Ui, global: &GlobalArgs, args: &StackArgs) -> anyhow::Result<Stacks> {
    read(ui, global, &args.dir, Selection::One(args.stack.as_deref()), Reading::StateOnly)
}

/// Loads all stacks of a folder.
///
/// # Errors
/// Errors in the files, which have been printed.
pub(crate) fn read_all(ui: &Ui, global: &GlobalArgs, dir: &DirArgs) -> anyhow::Result<Stacks> {
    read(ui, global, dir, Selection::All, Reading::Whole)
}

/// Loads all stacks of a folder as [`read_stack_of_state`].
///
/// # Errors
/// As [`read_all`].
pub(crate) fn read_all_of_states(ui: &Ui, global: &GlobalArgs, dir: &DirArgs) -> anyhow::Result<Stacks> {
    read(ui, global, dir, Selection::All, Reading::StateOnly)
}

fn read(
    ui: &Ui,
    global: &GlobalArgs,
    dir: &DirArgs,
    selection: Selection<'_>,
    reading: Reading,
) -> anyhow::Result<Stacks> {
    match load(ui, global, dir, selection, reading)? {
        StacksRead::Stacks(stacks, warnings) => {
            ui.output.print_diagnostics(&warnings, &stacks.sources);
            Ok(*stacks)
        }
        StacksRead::Errors(found, sources) => Err(configuration_error(&ui.output, &found, &sources)),
    }
}

/// Loads the named stacks, or all, as far as their files can be read. Prints the errors in them.
///
/// # Errors
/// The profile is invalid, or the selection does not fit the stacks that exist.
pub(crate) fn read_despite_errors(ui: &Ui, global: &GlobalArgs, args: &StacksArgs) -> anyhow::Result<Stacks> {
    let folder = process::working_folder(global.cwd.as_deref())?;
    let request = StacksRequest { accepts_errors: true, ..request(ui, global, &args.dir, &folder, Reading::Whole) };
    match Stacks::read(request, Selection::Named(&args.stacks))? {
        StacksRead::Stacks(stacks, found) => {
            ui.output.print_diagnostics(&found, &stacks.sources);
            Ok(*stacks)
        }
        StacksRead::Errors(found, sources) => Err(configuration_error(&ui.output, &found, &sources)),
    }
}

fn load(
    ui: &Ui,
    global: &GlobalArgs,
    dir: &DirArgs,
    selection: Selection<'_>,
    reading: Reading,
) -> anyhow::Result<StacksRead> {
    let folder = process::working_folder(global.cwd.as_deref())?;
    let read = Stacks::read(request(ui, global, dir, &folder, reading), selection)?;
    if let StacksRead::Stacks(stacks, _) = &read
        && !stacks.client_stacks.is_empty()
    {
        let names = stacks.client_stacks.join(", ");
        ui.output.inform(format_args!("passed by, as client stacks (a client.yaml and no server.yaml): {names}"));
    }
    if let StacksRead::Stacks(stacks, _) = &read
        && ui.output.is_verbose()
        && !stacks.from_store.is_empty()
    {
        ui.output.inform(format_args!("read from {STORE_PATH}, in memory: {}", stacks.from_store.join(", ")));
    }
    Ok(read)
}

fn request<'a>(
    ui: &Ui,
    global: &'a GlobalArgs,
    dir: &'a DirArgs,
    folder: &'a Path,
    reading: Reading,
) -> StacksRequest<'a> {
    let process_context = process::process_context();
    plaintext::remove_abandoned(&process_context.environment);
    StacksRequest {
        folder,
        profile: profile_name(global),
        stacks_dir: dir.dir.as_deref(),
        reading,
        process: process::identity(&process_context.environment),
        masker: Arc::clone(ui.output.masker()),
        unrecorded: ui.unrecorded.clone(),
        outages: ui.output.outage_report(),
        fetch_rules: FetchRules { locked: global.locked, offline: is_offline(global, &process_context) },
        process_context,
        accepts_errors: false,
    }
}

/// Environment variable that has the meaning of `--offline`.
const OFFLINE: &str = "SC_OFFLINE";

/// Returns whether no place of a package may be asked.
fn is_offline(global: &GlobalArgs, process_context: &ProcessContext) -> bool {
    let value = process_context.environment.get(OFFLINE).map_or("", String::as_str);
    global.offline || !matches!(value, "" | "0" | "false")
}

/// Prints diagnostics, and returns an error with the number of errors among them.
pub(crate) fn configuration_error(output: &Output, found: &[Diagnostic], sources: &SourceFiles) -> anyhow::Error {
    output.print_diagnostics(found, sources);
    match found.iter().filter(|diagnostic| has_errors(std::slice::from_ref(diagnostic))).count() {
        1 => anyhow::anyhow!("the configuration has an error; nothing was changed"),
        count => anyhow::anyhow!("the configuration has {count} errors; nothing was changed"),
    }
}

pub(crate) fn not_provisioned(stack: &StackReference) -> CliError {
    let hint = MessageText::new(format_args!("provision it with `sc provision {}`", option("-s", stack.stack())));
    CliError::failed(format_args!("{} has not been provisioned yet", stack.stack()), hint)
}
