//! `sc refresh`: makes the state match the world.

use clap::Args;
use provisioner::operation::{self, RefreshOptions};

use crate::cli::args::{ConfirmArgs, DiffArgs, GlobalArgs, RunArgs, ScopeArgs, ShowArgs, StacksArgs};
use crate::cli::exit::{Changes, Exit};
use crate::cli::runs::{Runs, on_stacks};
use crate::cli::stacks::read_stacks;
use crate::cli::ui::Ui;

/// Record what the resources look like now
///
/// Reads each resource of the stacks and records what it finds. Nothing in the cloud is changed.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Record what has changed behind our back:
      sc refresh -s aquarium

  Only show it:
      sc refresh -s aquarium --preview

  Fail with exit code 7 if anything has drifted:
      sc refresh --preview --expect-no-changes")]
pub(crate) struct RefreshArgs {
    #[command(flatten)]
    pub(crate) stacks: StacksArgs,
    /// Only show what would be recorded
    #[arg(short = 'P', long)]
    pub(crate) preview: bool,
    #[command(flatten)]
    pub(crate) diff: DiffArgs,
    /// Fail with exit code 7 if anything has changed
    #[arg(long)]
    pub(crate) expect_no_changes: bool,
    /// Forget creations that an interrupted run began: say so once you have looked what became of them
    #[arg(long, conflicts_with = "preview")]
    pub(crate) clear_pending_creates: bool,
    /// Read at most this many resources at once
    #[arg(long, value_name = "N", default_value = "16", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) parallel: u32,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    #[command(flatten)]
    pub(crate) confirm: ConfirmArgs,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
}

/// Does it.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, args: &RefreshArgs) -> anyhow::Result<Exit> {
    let stacks = read_stacks(ui, global, &args.stacks)?;
    let changes = Changes::expected(args.expect_no_changes);
    let run = RunArgs {
        skip_refresh: false,
        parallel: args.parallel,
        continue_on_error: false,
        show: args.show,
        scope: args.scope.clone(),
    };
    let runs = Runs::new(&run, args.diff.diff, None, changes);
    on_stacks(ui, &stacks, runs, async |run, _| {
        Ok(Some(if args.preview {
            operation::preview_refresh(run).await?
        } else {
            operation::refresh(run, RefreshOptions { clear_pending_creates: args.clear_pending_creates }).await?
        }))
    })
    .await
}
