//! `sc cancel`: breaks the lock that a run left behind.

use clap::Args;
use state::{StackAccess, StateError};
use tokio_util::sync::CancellationToken;

use crate::cli::access::access;
use crate::cli::args::{ConfirmArgs, GlobalArgs, StackArgs};
use crate::cli::display::Line;
use crate::cli::exit::Exit;
use crate::cli::prompt::{Answer, confirm};
use crate::cli::stacks::read_stack;
use crate::cli::ui::Ui;

/// Give up the lock of a run that is gone
///
/// Shows who holds the lock and asks. A run that still works loses its claim to the stack: be sure that it is gone.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  After a machine was lost in the middle of a run:
      sc cancel -s aquarium")]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    pub(crate) stack: StackArgs,
    /// The stack that provision made; the only kind there is
    #[arg(long, hide = true)]
    pub(crate) parent: bool,
    #[command(flatten)]
    pub(crate) confirm: ConfirmArgs,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, args: &CancelArgs) -> anyhow::Result<Exit> {
    let stacks = read_stack(ui, global, &args.stack)?;
    let access = access(&stacks, stacks.only()?).await?;
    let StackAccess { store, stack, .. } = &access;
    let held = store.locks(stack).await?;
    if held.is_empty() {
        ui.say(&[Line::plain(format!("{} is not locked", stack.stack()))]);
        tell_journal(ui, &access)?;
        return Ok(Exit::Done);
    }
    ui.say(&[Line::plain(format!("{} is locked:", stack.stack()))]);
    ui.say(&held.iter().map(|holder| Line::plain(format!("  {holder}"))).collect::<Vec<_>>());
    let question = "Is that run gone, and shall its lock be given up?";
    match confirm(ui, &CancellationToken::new(), question, args.confirm.yes).await? {
        Answer::No => {
            ui.say(&[Line::plain("the lock stays")]);
            Ok(Exit::Canceled)
        }
        Answer::Yes => {
            let broken = store.break_locks(stack).await?;
            let count = if broken.len() == 1 { "the lock".to_owned() } else { format!("{} locks", broken.len()) };
            ui.say(&[Line::plain(format!("gave up {count} of {}", stack.stack()))]);
            tell_journal(ui, &access)?;
            Ok(Exit::Done)
        }
    }
}

/// Reports a journal that an interrupted run left, as `pulumi` does not read it.
fn tell_journal(ui: &Ui, access: &StackAccess) -> Result<(), StateError> {
    if access.has_journal()? {
        let text = "a run has left a journal: before `pulumi` works on the stack run `sc refresh`, which takes it in or says \
                    why it cannot";
        ui.say(&[Line::plain(text)]);
    }
    Ok(())
}
