//! `sc preview`: shows what `sc provision` would do.

use clap::Args;
use provisioner::operation;

use crate::cli::args::{DiffArgs, GlobalArgs, ReplaceArgs, RunArgs, StacksArgs};
use crate::cli::exit::{Changes, Exit};
use crate::cli::runs::{Runs, on_stacks};
use crate::cli::stacks::read_stacks;
use crate::cli::ui::Ui;

/// Show what provision would change
///
/// Nothing is created, saved or locked; a stack that does not exist yet does not appear.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Show what would change in all stacks:
      sc preview

  Compare with what is recorded only, without asking the cloud:
      sc preview --skip-refresh

  Hand the changes to a program:
      sc preview -s aquarium --json")]
pub(crate) struct PreviewArgs {
    #[command(flatten)]
    pub(crate) stacks: StacksArgs,
    #[command(flatten)]
    pub(crate) diff: DiffArgs,
    /// Fail with exit code 7 if there is anything to change
    #[arg(long)]
    pub(crate) expect_no_changes: bool,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) replace: ReplaceArgs,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, args: &PreviewArgs) -> anyhow::Result<Exit> {
    let stacks = read_stacks(ui, global, &args.stacks)?;
    stacks.check_packages(ui)?;
    let runs = Runs::new(&args.run, args.diff.diff, None, Changes::expected(args.expect_no_changes));
    let runs = runs.replacing(&args.replace);
    let refresh = !args.run.skip_refresh;
    on_stacks(ui, &stacks, runs, async |run, _| Ok(Some(operation::preview(run, refresh).await?))).await
}
