//! Length: arguments that two files share.
//!
//! Arguments of the commands that change the state.

use clap::Args;

use crate::cli::args::{ConfirmArgs, LockArgs, StackArgs};

/// Arguments of every subcommand.
#[derive(Debug, Args)]
pub(super) struct CommonArgs {
    #[command(flatten)]
    pub(super) stack: StackArgs,
    #[command(flatten)]
    pub(super) confirm: ConfirmArgs,
    #[command(flatten)]
    pub(super) lock: LockArgs,
}
