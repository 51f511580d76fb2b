//! `sc state move`: moves resources to another stack.

use bridge::error::Hint as _;
use bridge::message_text::MessageText;
use clap::Args;
use config::Stack;
use provisioner::operation::secrets_change_text;
use pulumi_proto::urn::{ROOT_STACK_TYPE, TypeToken, Urn};
use state::state_edit::{MoveError, ProviderMove, ResourceMove, move_resources};
use state::store::StackReference;
use state::{Snapshot, move_between_stacks};
use tokio_util::sync::CancellationToken;

use super::change::Change;
use super::common::CommonArgs;
use super::loading::{Purpose, load_snapshot};
use super::view::{pattern_of, urns};
use crate::cli::access::access_for_change;
use crate::cli::args::{GlobalArgs, StackArgs};
use crate::cli::display::Line;
use crate::cli::exit::{CliError, Exit};
use crate::cli::prompt::{Confirmation, confirm, decline};
use crate::cli::stacks::{only, read_stack_of_state};
use crate::cli::ui::Ui;
use crate::cli::waits::show_while;

/// Move resources to the state of another stack
///
/// Children move with their component. A provider moves with the last resource that uses it, and is copied otherwise; an equal one
/// of the other stack is used. A resource whose dependency, parent or `deletedWith` stays is refused: name that one as well. What
/// stays and depends on a moved resource is shown, and loses the dependency; its inputs keep their values. The other stack may be in
/// another store and have another secrets provider, and need not be provisioned yet.
///
/// Move the declarations to the server.yaml of the other stack as well, before the next provision of either stack. If the command is
/// killed, the next command on either stack undoes or completes the move.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Give a database and its network to the stack storage:
      sc state move -s aquarium db--prod net--prod --to-stack storage")]
pub(super) struct MoveArgs {
    /// Resources, by name (`KEY--ENV`), `KEY`, `ENV/KEY`, `TYPE::NAME` or URN; `*` is a wildcard
    #[arg(required = true, value_name = "RESOURCE")]
    resources: Vec<String>,
    /// Stack that gets the resources
    #[arg(long, value_name = "STACK")]
    to_stack: String,
    #[command(flatten)]
    common: CommonArgs,
}

/// Runs the command.
pub(super) async fn run(ui: &Ui, global: &GlobalArgs, args: &MoveArgs) -> anyhow::Result<Exit> {
    let common = &args.common;
    let sources = read_stack_of_state(ui, global, &common.stack)?;
    let to_stack = StackArgs { stack: Some(args.to_stack.clone()), dir: common.stack.dir.clone() };
    let targets = read_stack_of_state(ui, global, &to_stack)?;
    let (source, target) = (only(&sources)?, only(&targets)?);
    check_stacks(source, target)?;
    let from = access_for_change(&ui.output, &sources, source, common.lock).await?;
    let to = access_for_change(&ui.output, &targets, target, common.lock).await?;

    let (mut departed, _) = load_snapshot(&ui.output, &from, Purpose::Edit).await?;
    let (mut arrived, _) = load_snapshot(&ui.output, &to, Purpose::Edit).await?;
    let edit = |departed: &mut Snapshot, arrived: &mut Snapshot| {
        let selected = select(departed, &args.resources)?;
        let refused = |error: MoveError| CliError::failed(MessageText::of(&error), error.hint().unwrap_or_default());
        move_resources(departed, arrived, &to.stack, &selected).map_err(refused)
    };
    let planned = edit(&mut departed, &mut arrived)?;
    let changes = changes(&planned, &to.stack);
    ui.output.print_messages(&changes.iter().flat_map(Change::lines).collect::<Vec<_>>());
    let (from_name, to_name) = (from.stack.stack().to_owned(), to.stack.stack().to_owned());
    let question = MessageText::new(format_args!(
        "Move these resources from the state of {from_name} to that of {to_name}? Nothing in the cloud is changed."
    ));
    if confirm(&ui.output, &ui.signals, &CancellationToken::new(), &question, common.confirm.yes).await?
        == Confirmation::No
    {
        return Ok(decline(&ui.output));
    }
    let holder = sources.holder();
    let moving = move_between_stacks(&from, &to, &holder, |departed, arrived| match edit(departed, arrived) {
        Ok(found) if found == planned => Ok(found),
        Ok(_) => {
            let hint = "run the command again to see the new changes";
            Err(CliError::failed("a state has changed in the meantime", hint).into())
        }
        Err(error) => Err(anyhow::Error::from(error)),
    });
    let moved = show_while(&ui.output, &format!("saving the states of {from_name} and {to_name}"), moving).await?;
    for (access, change) in [&from, &to].into_iter().zip(&moved.secrets_changes) {
        change.iter().for_each(|change| ui.output.warn(secrets_change_text(access, change)));
    }
    let count = planned.moved.len();
    if ui.output.results_are_json() {
        let changes: Vec<_> = changes.iter().map(Change::as_json).collect();
        let result = serde_json::json!({ "stack": from_name, "toStack": to_name, "moved": count, "changes": changes });
        ui.output.print(&[Line::plain(result.to_string())])?;
    } else {
        let resources = if count == 1 { "1 resource".to_owned() } else { format!("{count} resources") };
        ui.output.print_messages(&[Line::plain(format!("moved {resources} from {from_name} to {to_name}"))]);
    }
    ui.output.warn(format_args!(
        "move the declarations to the server.yaml of {to_name} before the next provision: {from_name} would create the resources \
         a second time, and {to_name} would delete them"
    ));
    Ok(Exit::Done)
}

fn check_stacks(source: &Stack, target: &Stack) -> Result<(), CliError> {
    if source.name == target.name {
        return Err(CliError::usage(
            format_args!("{} is the stack that has the resources", target.name),
            "name another stack with --to-stack",
        ));
    }
    match [source, target].into_iter().find(|stack| stack.key_of.is_some()) {
        Some(stack) => Err(CliError::usage(
            format_args!("{} is the stack of a key, whose resources cannot move", stack.name),
            "name another stack",
        )),
        None => Ok(()),
    }
}

/// Returns the resources that the names select. A name with a wildcard selects neither providers nor the root of the stack.
fn select(snapshot: &Snapshot, names: &[String]) -> Result<Vec<Urn>, CliError> {
    let all = urns(snapshot);
    let mut selected = Vec::new();
    for name in names {
        let pattern = pattern_of(&all, name)?;
        let is_movable = |urn: &&&Urn| {
            let type_token = urn.type_token();
            !name.contains('*') || type_token != ROOT_STACK_TYPE && !TypeToken::new(type_token).is_provider()
        };
        selected.extend(all.iter().filter(|urn| pattern.matches(urn)).filter(is_movable).map(|urn| (**urn).clone()));
    }
    Ok(selected)
}

/// Returns the changes of both states.
fn changes(resource_move: &ResourceMove, to: &StackReference) -> Vec<Change> {
    let ResourceMove { created_root, providers, moved, pruned } = resource_move;
    let target = || format!("to {}", to.stack());
    let root =
        created_root.iter().map(|urn| Change { detail: format!("in {}", to.stack()), ..Change::new("add", urn) });
    let providers = providers.iter().map(|(urn, treatment)| {
        let verb = match treatment {
            ProviderMove::Moved => "move",
            ProviderMove::Copied => "copy",
        };
        Change { detail: target(), ..Change::new(verb, urn) }
    });
    let moved = moved.iter().map(|urn| Change { detail: target(), ..Change::new("move", urn) });
    let pruned = pruned.iter().map(|(urn, relation, other)| Change {
        detail: format!("loses its {relation} {}", other.name()),
        ..Change::new("prune", urn)
    });
    root.chain(providers).chain(moved).chain(pruned).collect()
}
