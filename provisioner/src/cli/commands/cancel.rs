//! `sc cancel`: breaks the lock that a run left behind.

use clap::Args;

use crate::cli::args::{ConfirmArgs, GlobalArgs, StackArgs};
use crate::cli::exit::Exit;
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

/// Does it.
pub(crate) async fn run(_ui: &Ui, _global: &GlobalArgs, _args: &CancelArgs) -> anyhow::Result<Exit> {
    Err(super::unfinished("cancel"))
}
