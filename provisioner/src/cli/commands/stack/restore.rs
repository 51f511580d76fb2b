//! `sc stack restore`: lists the earlier states of a stack, and restores one.

use std::path::Path;

use bridge::message_text::MessageText;
use clap::Args;
use jiff::Timestamp;
use provisioner::operation::Stacks;
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;
use state::store::{CheckpointCopy, CopyKind};
use state::{EntryChange, Restore, StackAccess, StateCopy, state_copies};
use tokio_util::sync::CancellationToken;

use crate::cli::access::access_for_change;
use crate::cli::args::{ConfirmArgs, GlobalArgs, LockArgs, StackArgs};
use crate::cli::display::Line;
use crate::cli::exit::{CliError, Exit};
use crate::cli::listing::{ago, table};
use crate::cli::output::Output;
use crate::cli::process::working_folder;
use crate::cli::prompt::{Confirmation, confirm, decline};
use crate::cli::recorded_names;
use crate::cli::stacks::{only, read_stack_of_state};
use crate::cli::ui::Ui;
use crate::cli::waits::show_while;

/// List the earlier states of a stack, or restore one
///
/// Without COPY, lists the copies of earlier states that the backend keeps, newest first: the previous state (`bak`),
/// the states at the end of each run (`history-…` and `backup-…`), and retained checkpoints.
///
/// With COPY, shows the changes of the state, asks for confirmation, and replaces the state. The replaced state becomes
/// the previous state (`bak`), and the history gets no entry. Nothing in the cloud is changed: run `sc refresh`
/// afterwards to record what has changed since.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  List the earlier states:
      sc stack restore -s aquarium

  Restore the state before the last change:
      sc stack restore -s aquarium bak

  Restore the state at the end of an earlier run:
      sc stack restore -s aquarium history-1788242409")]
pub(crate) struct RestoreArgs {
    /// Copy to restore: its name in the list, the beginning of that name, or its path
    #[arg(value_name = "COPY")]
    copy: Option<String>,
    #[command(flatten)]
    stack: StackArgs,
    #[command(flatten)]
    confirm: ConfirmArgs,
    #[command(flatten)]
    lock: LockArgs,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, args: &RestoreArgs) -> anyhow::Result<Exit> {
    let stacks = read_stack_of_state(ui, global, &args.stack)?;
    let access = access_for_change(&ui.output, &stacks, only(&stacks)?, args.lock).await?;
    let Some(name) = &args.copy else { return list(&ui.output, &access, &stacks).await };
    access.store.refuse_migrated(&access.stack).await?;
    let what = format!("reading the copies of the state of {}", access.stack.stack());
    let copies = show_while(&ui.output, &what, access.store.copies(&access.stack, &CopyKind::ALL)).await?;
    let path = working_folder(global.cwd.as_deref())?.join(name);
    let copy = find_copy(&copies, name, &path)?;
    let restore = show_while(&ui.output, &what, Restore::prepare(&access, copy)).await?;
    print_changes(&ui.output, &restore);
    let stack = access.stack.stack();
    let question = MessageText::new(format_args!(
        "Restore {} as the state of {stack}? Nothing in the cloud is changed.",
        copy.name
    ));
    if confirm(&ui.output, &ui.signals, &CancellationToken::new(), &question, args.confirm.yes).await?
        == Confirmation::No
    {
        return Ok(decline(&ui.output));
    }
    let resources = restore.resources;
    let changes: Vec<_> = restore.changes.iter().map(change_as_json).collect();
    let (holder, what) = (stacks.holder(), format!("saving the state of {stack}"));
    show_while(&ui.output, &what, restore.apply(&access, &holder)).await?;
    if ui.output.results_are_json() {
        let restored = serde_json::json!({
            "stack": stack, "restored": copy.name, "resources": resources, "changes": changes
        });
        ui.output.print(&[Line::plain(restored.to_string())])?;
    } else {
        let count = count_text(resources);
        ui.output.print_messages(&[
            Line::plain(format!("restored {} with {count} as the state of {stack}", copy.name)),
            Line::plain("run `sc refresh` next: the resources may have changed since that state was saved"),
        ]);
    }
    Ok(Exit::Done)
}

async fn list(output: &Output, access: &StackAccess, stacks: &Stacks) -> anyhow::Result<Exit> {
    let what = format!("reading the copies of the state of {}", access.stack.stack());
    let copies = show_while(output, &what, state_copies(access)).await?;
    let (now, environment) = (stacks.process_context.now, &stacks.process_context.environment);
    let names = copies.iter().map(|copy| copy.copy.name.clone()).collect();
    recorded_names::keep_copies(environment, &stacks.repository.root, &only(stacks)?.name, names);
    let lines = if output.results_are_json() {
        copies.iter().map(|copy| Line::plain(as_json(access.stack.stack(), copy))).collect()
    } else {
        table(&["NAME", "TIME", "KIND", "RESOURCES"], &copies.iter().map(|copy| as_row(copy, now)).collect::<Vec<_>>())
    };
    output.print(&lines)?;
    Ok(Exit::Done)
}

fn as_row(state: &StateCopy, now: Timestamp) -> Vec<String> {
    let resources = state.resources.map_or_else(|| "unreadable".to_owned(), |count| count.to_string());
    vec![state.copy.name.clone(), ago(state.copy.time, now), state.copy.kind.as_str().to_owned(), resources]
}

fn as_json(stack: &str, state: &StateCopy) -> String {
    serde_json::json!({
        "stack": stack,
        "name": state.copy.name,
        "time": state.copy.time.to_string(),
        "kind": state.copy.kind.as_str(),
        "resources": state.resources,
        "path": state.copy.location,
    })
    .to_string()
}

/// Returns the copy with a name or at a location, or the only one whose name begins with the text.
fn find_copy<'c>(copies: &'c [CheckpointCopy], text: &str, path: &Path) -> Result<&'c CheckpointCopy, CliError> {
    let path = path.canonicalize().ok();
    let is_at_path = |copy: &CheckpointCopy| path.is_some() && Path::new(&copy.location).canonicalize().ok() == path;
    let is_exact = |copy: &&CheckpointCopy| copy.name == text || copy.location == text || is_at_path(copy);
    if let Some(copy) = copies.iter().find(is_exact) {
        return Ok(copy);
    }
    let hint = "`sc stack restore` without a name lists the copies";
    match copies.iter().filter(|copy| copy.name.starts_with(text)).collect::<Vec<_>>()[..] {
        [copy] => Ok(copy),
        [] => Err(CliError::usage(format_args!("the stack has no copy {text}"), hint)),
        [first, second, ..] => {
            let message = MessageText::new(format_args!(
                "{text} is the beginning of several names: {}, {}",
                first.name, second.name
            ));
            Err(CliError::usage(message, hint))
        }
    }
}

fn print_changes(output: &Output, restore: &Restore) {
    if let Some(error) = &restore.current_error {
        let reason = MessageText::chain(error);
        output.warn(format_args!("all resources of the copy are shown as added: {reason}"));
    }
    let mut lines: Vec<Line> = restore.changes.iter().map(change_line).collect();
    if lines.is_empty() {
        lines.push(Line::plain("  no resource is added, changed or removed"));
    }
    if restore.pending_operations > 0 {
        lines.push(Line::plain(format!("  the copy has pending operations: {}", restore.pending_operations)));
    }
    output.print_messages(&lines);
}

fn verb(change: EntryChange) -> &'static str {
    match change {
        EntryChange::Added => "add",
        EntryChange::Changed => "change",
        EntryChange::Removed => "remove",
    }
}

fn change_line((change, urn, id): &(EntryChange, Urn, Option<ResourceId>)) -> Line {
    let text = format!("  {} {} ({}) {}", verb(*change), urn.name(), urn.type_token(), ResourceId::text(id.as_ref()));
    Line::plain(text.trim_end())
}

fn change_as_json((change, urn, id): &(EntryChange, Urn, Option<ResourceId>)) -> serde_json::Value {
    serde_json::json!({ "do": verb(*change), "urn": urn.as_str(), "detail": ResourceId::text(id.as_ref()) })
}

fn count_text(count: usize) -> String {
    if count == 1 { "1 resource".to_owned() } else { format!("{count} resources") }
}
