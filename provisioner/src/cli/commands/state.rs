//! `sc state`: shows and edits the recorded state of a stack.

mod ls;
mod show;
mod view;

use bridge::message_text::MessageText;
use clap::{Args, Subcommand};
use engine::UrnPattern;
use provisioner::operation::{recovery_text, secrets_change_text};
use pulumi_proto::urn::Urn;
use state::state_edit::{self, BlockerPolicy, EntryFlag, RemoveOptions, Repair, Selection, StateEditError};
use state::{ResourceState, Snapshot, StackAccess, StackState, StackView, StateError};
use tokio_util::sync::CancellationToken;

use crate::cli::access::access_for_change;
use crate::cli::args::{ConfirmArgs, GlobalArgs, LockArgs, StackArgs};
use crate::cli::display::Line;
use crate::cli::exit::{CliError, Exit};
use crate::cli::prompt::{Confirmation, confirm, decline};
use crate::cli::stacks::{only, read_stack};
use crate::cli::ui::Ui;

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
      sc state taint -s aquarium web--prod")]
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
    Protect(ProtectArgs),
    Unprotect(UnprotectArgs),
    Taint(TaintArgs),
    Untaint(UntaintArgs),
    Repair(RepairArgs),
}

/// Arguments of every subcommand.
#[derive(Debug, Args)]
struct CommonArgs {
    #[command(flatten)]
    stack: StackArgs,
    #[command(flatten)]
    confirm: ConfirmArgs,
    #[command(flatten)]
    lock: LockArgs,
}

/// Remove resources from the state without deleting them
///
/// If server.yaml still declares the resource, the next provision creates a second one. Remove the declaration, or
/// import the resource with `sc import`.
#[derive(Debug, Args)]
struct RmArgs {
    /// Resources, by name or URN; `*` is a wildcard
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
    /// Name or URN of the resource
    #[arg(value_name = "RESOURCE")]
    resource: String,
    /// New name, such as `web--prod`
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
    /// Resources, by name or URN; `*` is a wildcard
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
    /// Resources, by name or URN; `*` is a wildcard
    #[arg(required = true, value_name = "RESOURCE")]
    resources: Vec<String>,
    #[command(flatten)]
    common: CommonArgs,
}

/// Repair an invalid state
///
/// Sorts the resources so that each comes after its dependencies, removes references to missing resources, and corrects
/// a wrong checksum.
#[derive(Debug, Args)]
struct RepairArgs {
    #[command(flatten)]
    common: CommonArgs,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, command: &StateCommand) -> anyhow::Result<Exit> {
    let set_flag = async |names: &[String], common: &CommonArgs, flag: EntryFlag, value: bool| {
        let names = Names::new(names);
        let edit = |snapshot: &mut Snapshot| {
            names.check(snapshot)?;
            let verb = match (flag, value) {
                (EntryFlag::Protect, true) => "protect",
                (EntryFlag::Protect, false) => "unprotect",
                (EntryFlag::Taint, true) => "taint",
                (EntryFlag::Taint, false) => "untaint",
            };
            let changed = state_edit::set_flag(snapshot, names.selection(), flag, value);
            Ok(changed.iter().map(|urn| Change::new(verb, urn)).collect())
        };
        apply(ui, global, common, IntegrityCheck::Required, edit).await
    };
    match &command.verb {
        StateVerb::Ls(args) => ls::run(ui, global, args).await,
        StateVerb::Show(args) => show::run(ui, global, args).await,
        StateVerb::Rm(args) => rm(ui, global, args).await,
        StateVerb::Rename(args) => rename(ui, global, args).await,
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
        StateVerb::Repair(args) => {
            let edit = |snapshot: &mut Snapshot| {
                Ok(repair_changes(&state_edit::repair_snapshot(snapshot).map_err(edit_error)?))
            };
            apply(ui, global, &args.common, IntegrityCheck::Skipped, edit).await
        }
    }
}

async fn rm(ui: &Ui, global: &GlobalArgs, args: &RmArgs) -> anyhow::Result<Exit> {
    let names = Names::new(&args.resources);
    let policy = |is_allowed| if is_allowed { BlockerPolicy::Remove } else { BlockerPolicy::Refuse };
    let (protected, dependents) = (policy(args.force), policy(args.target_dependents));
    let options = RemoveOptions { id: args.id.as_deref(), protected, dependents };
    let edit = |snapshot: &mut Snapshot| {
        names.check(snapshot)?;
        let removed = state_edit::remove_entries(snapshot, names.selection(), options).map_err(edit_error)?;
        Ok(removed.iter().map(|state| Change::new("forget", &state.urn).with_id(state)).collect())
    };
    apply(ui, global, &args.common, IntegrityCheck::Required, edit).await
}

async fn rename(ui: &Ui, global: &GlobalArgs, args: &RenameArgs) -> anyhow::Result<Exit> {
    let names = Names::new(std::slice::from_ref(&args.resource));
    let edit = |snapshot: &mut Snapshot| {
        names.check(snapshot)?;
        let mut found: Vec<Urn> = snapshot.resources.iter().map(|state| state.urn.clone()).collect();
        found.retain(|urn| names.selection()(urn));
        found.sort();
        found.dedup();
        let [urn] = &found[..] else {
            let urns: Vec<&str> = found.iter().map(Urn::as_str).collect();
            let hint = "give the URN of one of them";
            return Err(CliError::failed(
                format_args!("{} matches several resources: {}", args.resource, urns.join(", ")),
                hint,
            ));
        };
        let new = state_edit::rename_resource(snapshot, urn, &args.name).map_err(edit_error)?;
        Ok(vec![Change { detail: format!("to {}", new.name()), ..Change::new("rename", urn) }])
    };
    apply(ui, global, &args.common, IntegrityCheck::Required, edit).await
}

/// Resources that the user selected by name; all resources if no name was given.
struct Names(Vec<UrnPattern>, Box<dyn Fn(&Urn) -> bool>);

impl Names {
    fn new(names: &[String]) -> Self {
        let patterns: Vec<UrnPattern> = names.iter().map(UrnPattern::new).collect();
        let selected = patterns.clone();
        let is_selected = move |urn: &Urn| selected.is_empty() || selected.iter().any(|pattern| pattern.matches(urn));
        Self(patterns, Box::new(is_selected))
    }

    fn selection(&self) -> Selection<'_> {
        &*self.1
    }

    /// Checks that each pattern matches a recorded resource.
    fn check(&self, snapshot: &Snapshot) -> Result<(), CliError> {
        let has_no_match = |pattern: &&UrnPattern| !snapshot.resources.iter().any(|state| pattern.matches(&state.urn));
        match self.0.iter().find(has_no_match) {
            None => Ok(()),
            Some(pattern) => Err(CliError::failed(
                format_args!("no resource of this stack is called {}", pattern.as_str()),
                "`sc state ls` lists the resources",
            )),
        }
    }
}

/// Change of a state edit, shown as one line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Change {
    /// Verb of the change.
    verb: &'static str,
    /// Resource that changes; `None` if the change is not about a resource.
    urn: Option<Urn>,
    detail: String,
}

impl Change {
    fn new(verb: &'static str, urn: &Urn) -> Self {
        Self { verb, urn: Some(urn.clone()), detail: String::new() }
    }

    fn with_id(self, state: &ResourceState) -> Self {
        Self { detail: state.id_text().to_owned(), ..self }
    }

    fn line(&self) -> Line {
        let resource =
            self.urn.as_ref().map(|urn| format!(" {} ({})", urn.name(), urn.type_token())).unwrap_or_default();
        Line::plain(format!("  {}{resource} {}", self.verb, self.detail).trim_end())
    }
}

/// Returns the changes of a repair.
fn repair_changes(repair: &Repair) -> Vec<Change> {
    let moved = repair.moved.iter().map(|urn| Change::new("move", urn));
    let pruned = repair.pruned.iter().map(|(urn, relation, target)| Change {
        detail: format!("loses its {relation} {}", target.name()),
        ..Change::new("prune", urn)
    });
    let renamed = repair.renamed.iter().map(|(urn, to)| Change { detail: to.to_string(), ..Change::new("call", urn) });
    let checksum = repair.checksum.as_ref().map(|wrong| Change {
        verb: "replace",
        urn: None,
        detail: format!("the checksum of its manifest, {wrong:?}"),
    });
    moved.chain(pruned).chain(renamed).chain(checksum).collect()
}

/// Converts a rejected edit to an error with a hint.
fn edit_error(error: StateEditError) -> CliError {
    let hint = match &error {
        StateEditError::Protected(_) => "unprotect them with `sc state unprotect`, or give --force",
        StateEditError::HasDependents(_) => "remove these as well, or give --target-dependents",
        StateEditError::Ambiguous { ids, .. } if ids.iter().any(|id| *id != ids[0]) => "select one with --id",
        StateEditError::NoSuchId(_) => "`sc state ls` shows the ids",
        StateEditError::NameTaken(_) => "choose another name, or remove that resource from the state first",
        StateEditError::InvalidName(..) => "give only the new name, such as web--prod",
        StateEditError::Ambiguous { .. } | StateEditError::Cycle(_) | StateEditError::Unrepairable(_) => {
            "export the state with `sc stack export`, repair the file, and import it with `sc stack import`"
        }
    };
    CliError::failed(MessageText::of(&error), hint)
}

/// Treatment of a state that violates the integrity of snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IntegrityCheck {
    Required,
    Skipped,
}

/// Shows the changes of an edit, asks for confirmation, and applies the edit under the lock, if it still makes the same
/// changes.
async fn apply(
    ui: &Ui,
    global: &GlobalArgs,
    common: &CommonArgs,
    integrity: IntegrityCheck,
    edit: impl Fn(&mut Snapshot) -> Result<Vec<Change>, CliError>,
) -> anyhow::Result<Exit> {
    let stacks = read_stack(ui, global, &common.stack)?;
    let access = access_for_change(ui, &stacks, only(&stacks)?, common.lock).await?;
    let stack = access.stack.stack().to_owned();
    let planned = edit(&mut load_snapshot(ui, &access, integrity).await?)?;
    if planned.is_empty() {
        return report_changes(ui, &stack, &planned);
    }
    ui.print_messages(&planned.iter().map(Change::line).collect::<Vec<_>>());
    let question =
        MessageText::new(format_args!("Apply these changes to the state of {stack}? Nothing in the cloud is changed."));
    if confirm(ui, &CancellationToken::new(), &question, common.confirm.yes).await? == Confirmation::No {
        return Ok(decline(ui));
    }
    let state = match integrity {
        IntegrityCheck::Required => StackState::open(access.clone(), &stacks.holder()).await?,
        IntegrityCheck::Skipped => StackState::open_unverified(access.clone(), &stacks.holder()).await?,
    };
    let secrets_change = state.secrets_change().map(|change| secrets_change_text(&access, change));
    let mut snapshot = state.snapshot().clone();
    let done = match edit(&mut snapshot) {
        Ok(done) if done == planned => done,
        other => {
            state.release().await?;
            other?;
            let hint = "run the command again to see the new changes";
            return Err(CliError::failed("the state has changed in the meantime", hint).into());
        }
    };
    state.close(snapshot, None).await?;
    secrets_change.iter().for_each(|text| ui.warn(text));
    report_changes(ui, &stack, &done)
}

/// Reports the changes that were made.
fn report_changes(ui: &Ui, stack: &str, changes: &[Change]) -> anyhow::Result<Exit> {
    if ui.results_are_json() {
        let change = |change: &Change| {
            let urn = change.urn.as_ref().map(Urn::as_str);
            serde_json::json!({ "do": change.verb, "urn": urn, "detail": change.detail })
        };
        let changes: Vec<_> = changes.iter().map(change).collect();
        ui.print(&[Line::plain(serde_json::json!({ "stack": stack, "changes": changes }).to_string())])?;
        return Ok(Exit::Done);
    }
    ui.print_messages(&[Line::plain(match changes.len() {
        0 => format!("nothing to change in the state of {stack}"),
        1 => format!("made 1 change to the state of {stack}"),
        count => format!("made {count} changes to the state of {stack}"),
    })]);
    Ok(Exit::Done)
}

/// Loads the state without locking it.
async fn load_snapshot(ui: &Ui, access: &StackAccess, integrity: IntegrityCheck) -> Result<Snapshot, StateError> {
    let view = StackView::open(access).await?;
    if let Some(recovered) = &view.recovered {
        ui.warn(recovery_text(recovered, view.is_unlocked));
    }
    if let Some(conflict) = view.conflict {
        return Err(StateError::Conflict(Box::new(conflict)));
    }
    match (view.integrity_error, integrity) {
        (Some(error), IntegrityCheck::Required) => Err(StateError::Integrity(error)),
        _ => Ok(view.snapshot.unwrap_or_default()),
    }
}
