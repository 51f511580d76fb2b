//! `sc state`: shows and edits the recorded state of a stack.

mod change;
mod common;
mod journal;
mod loading;
mod ls;
mod move_to_stack;
mod repair;
mod show;
mod view;

use std::borrow::Cow;
use std::collections::BTreeSet;

use bridge::message_text::MessageText;
use clap::{Args, Subcommand};
use engine::UrnPattern;
use provisioner::operation::secrets_change_text;
use pulumi_proto::urn::Urn;
use state::state_edit::{self, BlockerPolicy, EntryFlag, RemoveOptions, Selection};
use state::{Snapshot, StackState, UnmergedJournal};
use tokio_util::sync::CancellationToken;

use self::change::{Change, edit_error};
use self::common::CommonArgs;
use self::loading::{Purpose, load_snapshot};
use crate::cli::access::{access_for_change, opening_text};
use crate::cli::args::GlobalArgs;
use crate::cli::display::Line;
use crate::cli::exit::{CliError, Exit};
use crate::cli::output::Output;
use crate::cli::prompt::{Confirmation, confirm, decline};
use crate::cli::stacks::{only, read_stack};
use crate::cli::ui::Ui;
use crate::cli::waits::show_while;

/// Show and edit the recorded state of a stack
///
/// An edit shows its changes and asks for confirmation. The previous state is kept as a backup. Nothing in the cloud is
/// changed.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  List the recorded resources, and show one of them:
      sc state ls -s aquarium
      sc state show -s aquarium web--prod

  Remove from the state a server that was deleted by hand:
      sc state rm -s aquarium web--prod

  Allow a bucket to be deleted:
      sc state unprotect -s aquarium media--prod

  Replace a server in the next provision:
      sc state taint -s aquarium web--prod

  Give a database to another stack:
      sc state move -s aquarium db--prod --to-stack storage")]
pub(crate) struct StateCommand {
    #[command(subcommand)]
    verb: StateVerb,
}

#[derive(Debug, Subcommand)]
enum StateVerb {
    #[command(visible_alias = "list")]
    Ls(ls::LsArgs),
    Show(show::ShowResourceArgs),
    Rm(RmArgs),
    Rename(RenameArgs),
    Move(move_to_stack::MoveArgs),
    Protect(ProtectArgs),
    Unprotect(UnprotectArgs),
    Taint(TaintArgs),
    Untaint(UntaintArgs),
    Repair(RepairArgs),
    Journal(journal::JournalCommand),
}

/// Remove resources from the state without deleting them
///
/// If server.yaml still declares the resource, the next provision creates a second one. Remove the declaration, or
/// import the resource with `sc import`.
#[derive(Debug, Args)]
struct RmArgs {
    /// Resources, by name (`KEY--ENV`), `KEY`, `ENV/KEY`, `TYPE::NAME` or URN; `*` is a wildcard
    #[arg(required = true, value_name = "RESOURCE")]
    resources: Vec<String>,
    /// Remove only the copy with this id, if the state has several of the resource
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Remove dependents as well
    #[arg(long)]
    target_dependents: bool,
    /// Remove protected resources as well
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    common: CommonArgs,
}

/// Rename a resource in the state
///
/// Use this after changing the key of a resource in server.yaml, before the next provision. Without it, or an entry in
/// `options.aliases`, the next provision deletes the resource and creates a new one.
#[derive(Debug, Args)]
struct RenameArgs {
    /// Resource, by name (`KEY--ENV`), `KEY`, `ENV/KEY`, `TYPE::NAME` or URN
    #[arg(value_name = "RESOURCE")]
    resource: String,
    /// New name, such as `web--prod`; a key alone keeps the environment
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    common: CommonArgs,
}

/// Protect resources from deletion
///
/// The next provision overwrites this: to keep resources protected, set `options.protect` in server.yaml.
#[derive(Debug, Args)]
struct ProtectArgs {
    #[command(flatten)]
    selection: ResourcesOrAllArgs,
}

/// Unprotect resources, so that they can be deleted
///
/// If server.yaml still sets `protect`, the next provision protects the resource again. To delete the resource,
/// unprotect it, remove it from server.yaml, then provision.
#[derive(Debug, Args)]
struct UnprotectArgs {
    #[command(flatten)]
    selection: ResourcesOrAllArgs,
}

/// Selection of resources, or all resources.
#[derive(Debug, Args)]
struct ResourcesOrAllArgs {
    /// Resources, by name (`KEY--ENV`), `KEY`, `ENV/KEY`, `TYPE::NAME` or URN; `*` is a wildcard
    #[arg(required_unless_present = "all", value_name = "RESOURCE")]
    resources: Vec<String>,
    /// All resources of the stack
    #[arg(long, conflicts_with = "resources")]
    all: bool,
    #[command(flatten)]
    common: CommonArgs,
}

/// Mark resources for replacement in the next provision
#[derive(Debug, Args)]
struct TaintArgs {
    #[command(flatten)]
    selection: ResourcesArgs,
}

/// Remove the mark for replacement from resources
#[derive(Debug, Args)]
struct UntaintArgs {
    #[command(flatten)]
    selection: ResourcesArgs,
}

/// Selection of resources.
#[derive(Debug, Args)]
struct ResourcesArgs {
    /// Resources, by name (`KEY--ENV`), `KEY`, `ENV/KEY`, `TYPE::NAME` or URN; `*` is a wildcard
    #[arg(required = true, value_name = "RESOURCE")]
    resources: Vec<String>,
    #[command(flatten)]
    common: CommonArgs,
}

/// Repair an invalid state
///
/// Sorts the resources so that each comes after its dependencies, removes references to missing resources, and corrects
/// a wrong checksum.
///
/// If an interrupted run left a journal that cannot be merged, because the state has changed since: records the resources
/// that the run created and the state lacks, lists those that exist beside a recorded one, and removes the journal.
#[derive(Debug, Args)]
struct RepairArgs {
    #[command(flatten)]
    common: CommonArgs,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, command: &StateCommand) -> anyhow::Result<Exit> {
    let set_flag = async |names: &[String], common: &CommonArgs, flag: EntryFlag, value: bool| {
        let edit = |snapshot: &mut Snapshot| {
            let names = Names::find(snapshot, names)?;
            let verb = match (flag, value) {
                (EntryFlag::Protect, true) => "protect",
                (EntryFlag::Protect, false) => "unprotect",
                (EntryFlag::Taint, true) => "taint",
                (EntryFlag::Taint, false) => "untaint",
            };
            let changed = state_edit::set_flag(snapshot, names.selection(), flag, value);
            Ok(changed.iter().map(|urn| Change::new(verb, urn)).collect())
        };
        apply(ui, global, common, Purpose::Edit, |snapshot, _| edit(snapshot)).await
    };
    match &command.verb {
        StateVerb::Ls(args) => ls::run(ui, global, args).await,
        StateVerb::Show(args) => show::run(ui, global, args).await,
        StateVerb::Rm(args) => rm(ui, global, args).await,
        StateVerb::Rename(args) => rename(ui, global, args).await,
        StateVerb::Move(args) => move_to_stack::run(ui, global, args).await,
        StateVerb::Protect(ProtectArgs { selection }) => {
            set_flag(&selection.resources, &selection.common, EntryFlag::Protect, true).await
        }
        StateVerb::Unprotect(UnprotectArgs { selection }) => {
            set_flag(&selection.resources, &selection.common, EntryFlag::Protect, false).await
        }
        StateVerb::Taint(TaintArgs { selection }) => {
            set_flag(&selection.resources, &selection.common, EntryFlag::Taint, true).await
        }
        StateVerb::Untaint(UntaintArgs { selection }) => {
            set_flag(&selection.resources, &selection.common, EntryFlag::Taint, false).await
        }
        StateVerb::Repair(args) => apply(ui, global, &args.common, Purpose::Repair, repair::edit).await,
        StateVerb::Journal(command) => journal::run(ui, global, command).await,
    }
}

async fn rm(ui: &Ui, global: &GlobalArgs, args: &RmArgs) -> anyhow::Result<Exit> {
    let policy = |is_allowed| if is_allowed { BlockerPolicy::Remove } else { BlockerPolicy::Refuse };
    let (protected, dependents) = (policy(args.force), policy(args.target_dependents));
    let options = RemoveOptions { id: args.id.as_deref(), protected, dependents };
    let edit = |snapshot: &mut Snapshot| {
        let names = Names::find(snapshot, &args.resources)?;
        let removed = state_edit::remove_entries(snapshot, names.selection(), options).map_err(edit_error)?;
        Ok(removed.iter().map(|state| Change::new("forget", &state.urn).with_id(state)).collect())
    };
    apply(ui, global, &args.common, Purpose::Edit, |snapshot, _| edit(snapshot)).await
}

async fn rename(ui: &Ui, global: &GlobalArgs, args: &RenameArgs) -> anyhow::Result<Exit> {
    let edit = |snapshot: &mut Snapshot| {
        let urn = view::find_resource(snapshot, &args.resource)?;
        let name = with_environment(&args.name, urn.name());
        let new = state_edit::rename_resource(snapshot, &urn, &name).map_err(edit_error)?;
        Ok(vec![Change { detail: format!("to {}", new.name()), ..Change::new("rename", &urn) }])
    };
    apply(ui, global, &args.common, Purpose::Edit, |snapshot, _| edit(snapshot)).await
}

/// Returns a new name with the environment of the old one, unless it names one: a key alone is no name of a declared resource.
fn with_environment<'n>(new: &'n str, old: &str) -> Cow<'n, str> {
    match old.rsplit_once("--") {
        Some((_, environment)) if !new.contains("--") => format!("{new}--{environment}").into(),
        _ => new.into(),
    }
}

/// Resources that the user selected by name; all resources if no name was given.
struct Names(Box<dyn Fn(&Urn) -> bool>);

impl Names {
    /// Finds the resources among the entries of a snapshot.
    ///
    /// # Errors
    /// A name selects no recorded resource, or is the key of several.
    fn find(snapshot: &Snapshot, names: &[String]) -> Result<Self, CliError> {
        let urns: BTreeSet<&Urn> = snapshot.resources.iter().map(|state| &state.urn).collect();
        let urns: Vec<&Urn> = urns.into_iter().collect();
        let patterns = names.iter().map(|name| view::pattern_of(&urns, name));
        let patterns = patterns.collect::<Result<Vec<UrnPattern>, _>>()?;
        Ok(Self(Box::new(move |urn| patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(urn)))))
    }

    fn selection(&self) -> Selection<'_> {
        &*self.0
    }
}

/// Shows the changes of an edit, asks for confirmation, and applies the edit under the lock, if it still makes the same
/// changes.
async fn apply(
    ui: &Ui,
    global: &GlobalArgs,
    common: &CommonArgs,
    purpose: Purpose,
    edit: impl Fn(&mut Snapshot, &[UnmergedJournal]) -> Result<Vec<Change>, CliError>,
) -> anyhow::Result<Exit> {
    let stacks = read_stack(ui, global, &common.stack)?;
    let access = access_for_change(&ui.output, &stacks, only(&stacks)?, common.lock).await?;
    let stack = access.stack.stack().to_owned();
    let (mut snapshot, unmerged) = load_snapshot(&ui.output, &access, purpose).await?;
    let planned = edit(&mut snapshot, &unmerged)?;
    if planned.is_empty() {
        return report_changes(&ui.output, &stack, &planned);
    }
    ui.output.print_messages(&planned.iter().flat_map(Change::lines).collect::<Vec<_>>());
    let question =
        MessageText::new(format_args!("Apply these changes to the state of {stack}? Nothing in the cloud is changed."));
    if confirm(&ui.output, &ui.signals, &CancellationToken::new(), &question, common.confirm.yes).await?
        == Confirmation::No
    {
        return Ok(decline(&ui.output));
    }
    let holder = stacks.holder();
    let opened = async {
        match purpose {
            Purpose::Edit => StackState::open(access.clone(), &holder).await,
            Purpose::Repair => StackState::open_for_repair(access.clone(), &holder).await,
        }
    };
    let state = show_while(&ui.output, &opening_text(&stack), opened).await?;
    let secrets_change = state.secrets_change().map(|change| secrets_change_text(&access, change));
    let mut snapshot = state.snapshot().clone();
    let done = match edit(&mut snapshot, &state.unmerged()) {
        Ok(done) if done == planned => done,
        other => {
            state.release().await?;
            other?;
            let hint = "run the command again to see the new changes";
            return Err(CliError::failed("the state has changed in the meantime", hint).into());
        }
    };
    show_while(&ui.output, &format!("saving the state of {stack}"), state.close(snapshot, None)).await?;
    secrets_change.iter().for_each(|text| ui.output.warn(text));
    report_changes(&ui.output, &stack, &done)
}

/// Reports the changes that were made.
fn report_changes(output: &Output, stack: &str, changes: &[Change]) -> anyhow::Result<Exit> {
    if output.results_are_json() {
        let changes: Vec<_> = changes.iter().map(Change::as_json).collect();
        output.print(&[Line::plain(serde_json::json!({ "stack": stack, "changes": changes }).to_string())])?;
        return Ok(Exit::Done);
    }
    output.print_messages(&[Line::plain(match changes.len() {
        0 => format!("nothing to change in the state of {stack}"),
        1 => format!("made 1 change to the state of {stack}"),
        count => format!("made {count} changes to the state of {stack}"),
    })]);
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_name_without_an_environment_keeps_that_of_the_old_one() {
        let table = [
            ("web--prod", "site", "site--prod"),
            ("web--prod", "web--staging", "web--staging"),
            ("web", "site", "site"),
            ("a--b--prod", "c", "c--prod"),
        ];
        for (old, new, expected) in table {
            assert_eq!(with_environment(new, old), expected, "{old} to {new}");
        }
    }
}
