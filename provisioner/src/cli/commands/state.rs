//! `sc state`: edits the recorded state of a stack.

use clap::{Args, Subcommand};
use engine::UrnPattern;
use provisioner::operation::recovery_text;
use pulumi_proto::urn::Urn;
use state::surgery::{self, Blocked, Mark, Removal, Repair, Selection, SurgeryError};
use state::{ResourceState, Snapshot, StackAccess, StackState, StackView, StateError};
use tokio_util::sync::CancellationToken;

use crate::cli::access::access;
use crate::cli::args::{ConfirmArgs, GlobalArgs, StackArgs};
use crate::cli::display::Line;
use crate::cli::exit::{CliError, Exit};
use crate::cli::prompt::{Answer, confirm};
use crate::cli::runs::holder;
use crate::cli::stacks::read_stack;
use crate::cli::ui::Ui;

/// Change by hand what is recorded of a stack
///
/// Nothing in the cloud is touched. Shows what will change and asks. The state before stays as the backup.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Forget a server that was deleted by hand:
      sc state rm -s aquarium web--prod

  Allow a bucket to be deleted:
      sc state unprotect -s aquarium media--prod

  Have the next provision make it anew:
      sc state taint -s aquarium web--prod")]
pub(crate) struct StateCommand {
    #[command(subcommand)]
    verb: StateVerb,
}

#[derive(Debug, Subcommand)]
enum StateVerb {
    Rm(RmArgs),
    Rename(RenameArgs),
    Protect(ProtectArgs),
    Unprotect(UnprotectArgs),
    Taint(TaintArgs),
    Untaint(UntaintArgs),
    Repair(RepairArgs),
}

/// What all of them take.
#[derive(Debug, Args)]
struct Common {
    #[command(flatten)]
    stack: StackArgs,
    #[command(flatten)]
    confirm: ConfirmArgs,
}

/// Forget resources without deleting them
///
/// What the stack describes and the state has forgotten is created anew by the next provision: take it out of
/// server.yaml as well, or give it `options.import`.
#[derive(Debug, Args)]
struct RmArgs {
    /// Resources, by their names or URNs; `*` stands for anything
    #[arg(required = true, value_name = "RESOURCE")]
    resources: Vec<String>,
    /// Only the one with this id, where an old and a new one are recorded
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Also forget what depends on them
    #[arg(long)]
    target_dependents: bool,
    /// Also forget protected ones
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    common: Common,
}

/// Call a resource something else
///
/// For a resource that has got another key in server.yaml, as long as it has not been provisioned under it.
#[derive(Debug, Args)]
struct RenameArgs {
    /// The resource, by its name or URN
    #[arg(value_name = "RESOURCE")]
    resource: String,
    /// Its new name, such as `web--prod`
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    common: Common,
}

/// Refuse to delete resources
///
/// Until a provision says otherwise: to keep them protected, write `options.protect` in server.yaml.
#[derive(Debug, Args)]
struct ProtectArgs {
    #[command(flatten)]
    which: Which,
}

/// Allow resources to be deleted
///
/// Until a provision says otherwise: take `options.protect` out of server.yaml as well.
#[derive(Debug, Args)]
struct UnprotectArgs {
    #[command(flatten)]
    which: Which,
}

/// Resources, or all of them.
#[derive(Debug, Args)]
struct Which {
    /// Resources, by their names or URNs; `*` stands for anything
    #[arg(required_unless_present = "all", value_name = "RESOURCE")]
    resources: Vec<String>,
    /// All resources of the stack
    #[arg(long, conflicts_with = "resources")]
    all: bool,
    #[command(flatten)]
    common: Common,
}

/// Have the next provision replace resources
#[derive(Debug, Args)]
struct TaintArgs {
    #[command(flatten)]
    which: Named,
}

/// Take back that the next provision replaces resources
#[derive(Debug, Args)]
struct UntaintArgs {
    #[command(flatten)]
    which: Named,
}

/// Resources.
#[derive(Debug, Args)]
struct Named {
    /// Resources, by their names or URNs; `*` stands for anything
    #[arg(required = true, value_name = "RESOURCE")]
    resources: Vec<String>,
    #[command(flatten)]
    common: Common,
}

/// Mend a state that is refused as inconsistent
///
/// Puts the resources into an order in which each comes after what it refers to, drops references to what is not there,
/// and writes a wrong checksum anew.
#[derive(Debug, Args)]
struct RepairArgs {
    #[command(flatten)]
    common: Common,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, command: &StateCommand) -> anyhow::Result<Exit> {
    let marking = async |names: &[String], common: &Common, mark: Mark, value: bool| {
        let names = Names::new(names);
        let edit = |snapshot: &mut Snapshot| {
            names.check(snapshot)?;
            let word = match (mark, value) {
                (Mark::Protect, true) => "protect",
                (Mark::Protect, false) => "unprotect",
                (Mark::Taint, true) => "taint",
                (Mark::Taint, false) => "untaint",
            };
            let changed = surgery::mark(snapshot, names.selection(), mark, value);
            Ok(changed.iter().map(|urn| Change::of(word, urn)).collect())
        };
        apply(ui, global, common, Laws::Held, edit).await
    };
    match &command.verb {
        StateVerb::Rm(args) => rm(ui, global, args).await,
        StateVerb::Rename(args) => rename(ui, global, args).await,
        StateVerb::Protect(ProtectArgs { which }) => {
            marking(&which.resources, &which.common, Mark::Protect, true).await
        }
        StateVerb::Unprotect(UnprotectArgs { which }) => {
            marking(&which.resources, &which.common, Mark::Protect, false).await
        }
        StateVerb::Taint(TaintArgs { which }) => marking(&which.resources, &which.common, Mark::Taint, true).await,
        StateVerb::Untaint(UntaintArgs { which }) => marking(&which.resources, &which.common, Mark::Taint, false).await,
        StateVerb::Repair(args) => {
            let edit = |snapshot: &mut Snapshot| Ok(repaired(&surgery::repair(snapshot).map_err(refused)?));
            apply(ui, global, &args.common, Laws::Ignored, edit).await
        }
    }
}

async fn rm(ui: &Ui, global: &GlobalArgs, args: &RmArgs) -> anyhow::Result<Exit> {
    let names = Names::new(&args.resources);
    let if_set = |flag| if flag { Blocked::Removed } else { Blocked::Refused };
    let (protected, dependents) = (if_set(args.force), if_set(args.target_dependents));
    let how = Removal { id: args.id.as_deref(), protected, dependents };
    let edit = |snapshot: &mut Snapshot| {
        names.check(snapshot)?;
        let removed = surgery::remove(snapshot, names.selection(), how).map_err(refused)?;
        Ok(removed.iter().map(|state| Change::of("forget", &state.urn).with_id(state)).collect())
    };
    apply(ui, global, &args.common, Laws::Held, edit).await
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
            let several: Vec<&str> = found.iter().map(Urn::as_str).collect();
            let hint = "give the URN of the one that is meant";
            return Err(CliError::failed(format!("{} is several: {}", args.resource, several.join(", ")), hint));
        };
        let new = surgery::rename(snapshot, urn, &args.name).map_err(refused)?;
        Ok(vec![Change { detail: format!("to {}", new.name()), ..Change::of("rename", urn) }])
    };
    apply(ui, global, &args.common, Laws::Held, edit).await
}

/// Resources that the user selected; without names, all resources.
struct Names(Vec<UrnPattern>, Box<dyn Fn(&Urn) -> bool>);

impl Names {
    fn new(names: &[String]) -> Self {
        let patterns: Vec<UrnPattern> = names.iter().map(UrnPattern::new).collect();
        let held = patterns.clone();
        let selected = move |urn: &Urn| held.is_empty() || held.iter().any(|pattern| pattern.matches(urn));
        Self(patterns, Box::new(selected))
    }

    fn selection(&self) -> Selection<'_> {
        &*self.1
    }

    /// Checks that each pattern matches a recorded resource.
    fn check(&self, snapshot: &Snapshot) -> Result<(), CliError> {
        let names_nothing = |pattern: &&UrnPattern| !snapshot.resources.iter().any(|state| pattern.matches(&state.urn));
        match self.0.iter().find(names_nothing) {
            None => Ok(()),
            Some(pattern) => Err(CliError::failed(
                format!("no resource of this stack is called {}", pattern.as_str()),
                "give a name as `sc preview` shows it, or a URN as `sc stack export` has it",
            )),
        }
    }
}

/// Change of a state edit, shown as one line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Change {
    /// Verb of the change.
    word: &'static str,
    /// Resource that changes; `None`: the state as a whole.
    urn: Option<Urn>,
    detail: String,
}

impl Change {
    fn of(word: &'static str, urn: &Urn) -> Self {
        Self { word, urn: Some(urn.clone()), detail: String::new() }
    }

    fn with_id(self, state: &ResourceState) -> Self {
        Self { detail: state.id_text().to_owned(), ..self }
    }

    fn line(&self) -> Line {
        let whose = self.urn.as_ref().map(|urn| format!(" {} ({})", urn.name(), urn.type_token())).unwrap_or_default();
        Line::plain(format!("  {}{whose} {}", self.word, self.detail).trim_end())
    }
}

/// Returns the changes of a repair.
fn repaired(done: &Repair) -> Vec<Change> {
    let moved = done.moved.iter().map(|urn| Change::of("move", urn));
    let pruned = done.pruned.iter().map(|(urn, relation, target)| Change {
        detail: format!("loses its {relation} {}", target.name()),
        ..Change::of("prune", urn)
    });
    let renamed = done.renamed.iter().map(|(urn, to)| Change { detail: to.to_string(), ..Change::of("call", urn) });
    let checksum = done.checksum.as_ref().map(|wrong| Change {
        word: "replace",
        urn: None,
        detail: format!("the checksum of its manifest, {wrong:?}"),
    });
    moved.chain(pruned).chain(renamed).chain(checksum).collect()
}

/// Adds a hint to a refused edit.
fn refused(error: SurgeryError) -> CliError {
    let hint = match &error {
        SurgeryError::Protected(_) => "`sc state unprotect` lifts that, or give --force",
        SurgeryError::Needed(_) => "forget these as well, or give --target-dependents",
        SurgeryError::Ambiguous { ids, .. } if ids.iter().any(|id| *id != ids[0]) => "say which one with --id",
        SurgeryError::NoSuchId(_) => "`sc stack export` has the ids",
        SurgeryError::Taken(_) => "choose another name, or forget that one first",
        SurgeryError::BadName(..) => "give the new name alone, such as web--prod",
        SurgeryError::Ambiguous { .. } | SurgeryError::Circle(_) | SurgeryError::Broken(_) => {
            "`sc stack export` writes the state down; mend it there, and bring it back with `sc stack import`"
        }
    };
    CliError::failed(error.to_string(), hint)
}

/// Treatment of a state that violates the integrity of snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Laws {
    Held,
    Ignored,
}

/// Shows the changes of an edit, asks for confirmation, and applies the edit under the lock, if it still makes the same
/// changes.
async fn apply(
    ui: &Ui,
    global: &GlobalArgs,
    common: &Common,
    laws: Laws,
    edit: impl Fn(&mut Snapshot) -> Result<Vec<Change>, CliError>,
) -> anyhow::Result<Exit> {
    let stacks = read_stack(ui, global, &common.stack)?;
    let access = access(&stacks, stacks.only()?).await?;
    let stack = access.stack.stack().to_owned();
    let planned = edit(&mut look(ui, &access, laws).await?)?;
    if planned.is_empty() {
        return tell(ui, &stack, &planned);
    }
    ui.say(&planned.iter().map(Change::line).collect::<Vec<_>>());
    let question = format!("Change the state of {stack} like this? Nothing in the cloud is touched.");
    if confirm(ui, &CancellationToken::new(), &question, common.confirm.yes).await? == Answer::No {
        ui.say(&[Line::plain("the state stays as it is")]);
        return Ok(Exit::Canceled);
    }
    let state = match laws {
        Laws::Held => StackState::open(access, &holder(&stacks)).await?,
        Laws::Ignored => StackState::open_broken(access, &holder(&stacks)).await?,
    };
    let mut snapshot = state.snapshot().clone();
    let done = match edit(&mut snapshot) {
        Ok(done) if done == planned => done,
        other => {
            state.release().await?;
            other?;
            let hint = "run the command again to see what it changes now";
            return Err(CliError::failed("the state has changed in the meantime", hint).into());
        }
    };
    state.close(snapshot, None).await?;
    tell(ui, &stack, &done)
}

/// Reports the changes that were made.
fn tell(ui: &Ui, stack: &str, changes: &[Change]) -> anyhow::Result<Exit> {
    if ui.results_are_json() {
        let change = |change: &Change| {
            let urn = change.urn.as_ref().map(Urn::as_str);
            serde_json::json!({ "do": change.word, "urn": urn, "detail": change.detail })
        };
        let changes: Vec<_> = changes.iter().map(change).collect();
        ui.print(&[Line::plain(serde_json::json!({ "stack": stack, "changes": changes }).to_string())])?;
        return Ok(Exit::Done);
    }
    ui.say(&[Line::plain(match changes.len() {
        0 => format!("nothing to change in the state of {stack}"),
        1 => format!("made 1 change to the state of {stack}"),
        count => format!("made {count} changes to the state of {stack}"),
    })]);
    Ok(Exit::Done)
}

/// Loads the state without locking it.
async fn look(ui: &Ui, access: &StackAccess, laws: Laws) -> Result<Snapshot, StateError> {
    let view = StackView::open(access).await?;
    if let Some(recovered) = &view.recovered {
        ui.warn(&recovery_text(recovered, view.is_unlocked));
    }
    if let Some(conflict) = view.conflict {
        return Err(StateError::Conflict(Box::new(conflict)));
    }
    match (view.breach, laws) {
        (Some(breach), Laws::Held) => Err(StateError::Integrity(breach)),
        _ => Ok(view.snapshot.unwrap_or_default()),
    }
}
