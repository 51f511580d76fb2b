//! `sc cancel`: removes the lock of an interrupted run.

use clap::Args;
use state::{StackAccess, StateError};
use tokio_util::sync::CancellationToken;

use crate::cli::access::open_access;
use crate::cli::args::{ConfirmArgs, GlobalArgs, StackArgs};
use crate::cli::display::Line;
use crate::cli::exit::Exit;
use crate::cli::prompt::{Confirmation, confirm};
use crate::cli::stacks::read_stack;
use crate::cli::ui::Ui;

/// Remove the lock of an interrupted run
///
/// Shows the holder of the lock and asks for confirmation. Make sure that the run has ended: without its lock, a run
/// that is still active can no longer save its state.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Unlock a stack after the machine of a run was lost:
      sc cancel -s aquarium")]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    pub(crate) stack: StackArgs,
    /// The stack that `sc provision` created; the default
    #[arg(long, hide = true)]
    pub(crate) parent: bool,
    #[command(flatten)]
    pub(crate) confirm: ConfirmArgs,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, args: &CancelArgs) -> anyhow::Result<Exit> {
    let stacks = read_stack(ui, global, &args.stack)?;
    let access = open_access(&stacks, stacks.only()?).await?;
    let StackAccess { store, stack, .. } = &access;
    let held = store.locks(stack).await?;
    if held.is_empty() {
        ui.print_messages(&[Line::plain(format!("{} is not locked", stack.stack()))]);
        report_journal(ui, &access)?;
        return Ok(Exit::Done);
    }
    ui.print_messages(&[Line::plain(format!("{} is locked:", stack.stack()))]);
    ui.print_messages(&held.iter().map(|holder| Line::plain(format!("  {holder}"))).collect::<Vec<_>>());
    let question = "Remove the lock? Make sure that the run has ended.";
    match confirm(ui, &CancellationToken::new(), question, args.confirm.yes).await? {
        Confirmation::No => {
            ui.print_messages(&[Line::plain("the lock was not removed")]);
            Ok(Exit::Canceled)
        }
        Confirmation::Yes => {
            let removed = store.break_locks(stack).await?;
            let count = if removed.len() == 1 { "the lock".to_owned() } else { format!("{} locks", removed.len()) };
            ui.print_messages(&[Line::plain(format!("removed {count} of {}", stack.stack()))]);
            report_journal(ui, &access)?;
            Ok(Exit::Done)
        }
    }
}

/// Reports the journal of an interrupted run, as `pulumi` does not read it.
fn report_journal(ui: &Ui, access: &StackAccess) -> Result<(), StateError> {
    if access.has_journal()? {
        let text = "an interrupted run left a journal: before using `pulumi` on the stack, run `sc refresh`, which merges the \
                    journal into the state or reports why it cannot";
        ui.print_messages(&[Line::plain(text)]);
    }
    Ok(())
}
