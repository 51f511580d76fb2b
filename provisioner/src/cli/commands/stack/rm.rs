//! `sc stack rm`: removes the state of a stack, with its history and tags.

use std::io::ErrorKind;

use anyhow::Context as _;
use bridge::message_text::MessageText;
use clap::Args;
use provisioner::operation::settings_file;
use state::store::Backups;
use tokio_util::sync::CancellationToken;

use crate::cli::access::access_for_change;
use crate::cli::args::{ConfirmArgs, GlobalArgs, LockArgs, StackArgs};
use crate::cli::display::Line;
use crate::cli::exit::Exit;
use crate::cli::prompt::{Confirmation, confirm, decline};
use crate::cli::stacks::{only, read_stack};
use crate::cli::ui::Ui;

/// Remove a stack: its state, history and tags
///
/// Fails if the stack has resources, or pending creates of an interrupted run. The last state is kept as a backup
/// (`.bak`), along with earlier backups, unless --remove-backups is given. `Pulumi.<stack>.yaml` is removed as well.
/// The folder of the server.yaml is kept: another provision would create the stack again.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Delete all resources and then the stack itself:
      sc destroy --parent -s aquarium && sc stack rm -s aquarium

  Remove a stack whose cloud account no longer exists:
      sc stack rm -s aquarium --force")]
pub(crate) struct RmArgs {
    #[command(flatten)]
    stack: StackArgs,
    /// Remove the stack even if it has resources, which stay in the cloud, or pending creates
    #[arg(long)]
    force: bool,
    /// Remove the backups as well
    #[arg(long)]
    remove_backups: bool,
    /// Keep `Pulumi.<stack>.yaml`
    #[arg(long)]
    preserve_config: bool,
    #[command(flatten)]
    confirm: ConfirmArgs,
    #[command(flatten)]
    lock: LockArgs,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, args: &RmArgs) -> anyhow::Result<Exit> {
    let stacks = read_stack(ui, global, &args.stack)?;
    let access = access_for_change(&ui.output, &stacks, only(&stacks)?, args.lock).await?;
    let name = access.stack.to_string();
    let question = MessageText::new(format_args!("Remove the state of {name}? Nothing in the cloud is changed."));
    if confirm(&ui.output, &ui.signals, &CancellationToken::new(), &question, args.confirm.yes).await?
        == Confirmation::No
    {
        return Ok(decline(&ui.output));
    }
    let backups = if args.remove_backups { Backups::Removed } else { Backups::Kept };
    state::remove_stack(&access, &stacks.holder(), args.force, backups).await?;
    if !args.preserve_config {
        let file = settings_file(&stacks.repository.root, access.stack.stack());
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                let context =
                    format!("the stack was removed, but {} could not be removed; delete it by hand", file.display());
                return Err(error).context(context);
            }
            _ => {}
        }
    }
    if ui.output.results_are_json() {
        ui.output.print(&[Line::plain(serde_json::json!({ "removed": name }).to_string())])?;
    } else {
        ui.output.print_messages(&[Line::plain(format!("removed the state of {name}"))]);
    }
    Ok(Exit::Done)
}
