//! `sc preview`: shows the changes that `sc provision` would make.

use clap::Args;
use provisioner::operation;

use crate::cli::args::{DiffArgs, GlobalArgs, PendingArgs, ReplaceArgs, RunArgs, StacksArgs, TimeLimitArgs};
use crate::cli::exit::{Changes, Exit};
use crate::cli::runs::{Runs, on_stacks};
use crate::cli::stacks::{check_before_plugins, read_stacks};
use crate::cli::ui::Ui;

/// Show the changes that provision would make
///
/// Does not create, save or lock anything, and does not create a new stack in the backend.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Preview the changes of all stacks:
      sc preview

  Compare with the recorded state only, without a refresh:
      sc preview --skip-refresh

  Print the changes as JSON for another program:
      sc preview -s aquarium --json")]
pub(crate) struct PreviewArgs {
    #[command(flatten)]
    pub(crate) stacks: StacksArgs,
    #[command(flatten)]
    pub(crate) diff: DiffArgs,
    /// Fail with exit code 7 if there are changes
    #[arg(long)]
    pub(crate) expect_no_changes: bool,
    #[command(flatten)]
    pub(crate) pending: PendingArgs,
    #[command(flatten)]
    pub(crate) time: TimeLimitArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) replace: ReplaceArgs,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, args: &PreviewArgs) -> anyhow::Result<Exit> {
    let stacks = read_stacks(ui, global, &args.stacks)?;
    check_before_plugins(&ui.output, &stacks)?;
    let runs = Runs::new(&args.run, args.diff.diff, args.time, Changes::from_expect_no_changes(args.expect_no_changes));
    let mut runs = runs.with_replacements(&args.replace).with_keys();
    runs.pending = args.pending.clone();
    let refresh = !args.run.skip_refresh;
    on_stacks(ui, &stacks, runs, async |run, _| Ok(Some(operation::preview(run, refresh).await?))).await
}
