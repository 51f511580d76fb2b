//! `sc stack rename`: renames the state of a stack.

use anyhow::Context as _;
use bridge::message_text::MessageText;
use clap::Args;
use provisioner::operation::{check_settings, move_settings, rename_hint};
use state::store::StackReference;
use tokio_util::sync::CancellationToken;

use crate::cli::access::access_for_change;
use crate::cli::args::{ConfirmArgs, GlobalArgs, LockArgs, StackArgs};
use crate::cli::display::Line;
use crate::cli::exit::{CliError, Exit};
use crate::cli::prompt::{Confirmation, confirm, decline};
use crate::cli::stacks::{only, read_stack};
use crate::cli::ui::Ui;

/// Rename the state of a stack
///
/// The URNs of its resources are renamed in the state, and nothing in the cloud is changed. The history moves to the
/// new name; tags, backups and the previous state (`.bak`) stay under the old name. `Pulumi.<stack>.yaml` is renamed if
/// it exists. If the command is killed, the next command on the old or the new name undoes or completes the rename.
///
/// A stack has the name of the folder of its server.yaml, and the project of the profile. Also rename that folder (or
/// change `projectName`) and references to the stack (`inherit`, `parentStack`): otherwise the next provision creates
/// everything again under the old name. A key such as `web--prod` contains the environment, not the stack, and stays.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Rename the stack aquarium to reef:
      sc stack rename -s aquarium reef && git mv .sc/stacks/aquarium .sc/stacks/reef

  Rename it and move it to the project shore:
      sc stack rename -s aquarium organization/shore/reef")]
pub(crate) struct RenameArgs {
    /// New name, or `organization/PROJECT/NAME`
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    stack: StackArgs,
    #[command(flatten)]
    confirm: ConfirmArgs,
    #[command(flatten)]
    lock: LockArgs,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, args: &RenameArgs) -> anyhow::Result<Exit> {
    let stacks = read_stack(ui, global, &args.stack)?;
    let stack = only(&stacks)?;
    if let Some(owner) = &stack.key_of {
        let hint = MessageText::new(format_args!("rename {owner}; its next provision creates another key"));
        return Err(CliError::usage("the stack of a key cannot be renamed: its name is part of the key's", hint).into());
    }
    let access = access_for_change(&ui.output, &stacks, stack, args.lock).await?;
    let (from, to) = (&access.stack, parse_new_name(&args.name, &access.stack)?);
    let root = &stacks.repository.root;
    check_settings(root, from, &to)?;
    let question =
        MessageText::new(format_args!("Rename the state of {from} to {to}? Nothing in the cloud is changed."));
    if confirm(&ui.output, &ui.signals, &CancellationToken::new(), &question, args.confirm.yes).await?
        == Confirmation::No
    {
        return Ok(decline(&ui.output));
    }
    let rename = state::rename_stack(&access, &stacks.holder(), &to).await?;
    let moved = move_settings(root, from, &to);
    let ended = access.store.finish_rename(rename).await;
    ended.with_context(|| {
        format!(
            "{from} was renamed to {to}, but its locks could not be removed: the next command on either name does it"
        )
    })?;
    moved?;
    if ui.output.results_are_json() {
        let renamed = serde_json::json!({ "stack": from.to_string(), "renamed": to.to_string() });
        ui.output.print(&[Line::plain(renamed.to_string())])?;
        return Ok(Exit::Done);
    }
    ui.output.print_messages(&[Line::plain(format!("renamed {from} to {to}"))]);
    ui.output.warn(rename_hint(from, &to));
    Ok(Exit::Done)
}

/// Parses the new name.
fn parse_new_name(name: &str, from: &StackReference) -> Result<StackReference, CliError> {
    let hint = "give a name such as reef, or organization/PROJECT/NAME";
    let to =
        StackReference::parse(name, from.project()).map_err(|error| CliError::usage(MessageText::of(&error), hint))?;
    if to == *from {
        return Err(CliError::usage(format_args!("the stack already has the name {from}"), "give a different name"));
    }
    Ok(to)
}
