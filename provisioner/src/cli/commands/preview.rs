//! `sc preview`: shows the changes that `sc provision` would make.

use clap::Args;

use crate::cli::args::{
    ChangedSinceArgs, DiffArgs, GlobalArgs, PendingArgs, ReplaceArgs, RunArgs, StacksArgs, TimeLimitArgs,
};
use crate::cli::changed_since::select_changed;
use crate::cli::exit::{Changes, Exit};
use crate::cli::plan_args::{PlanCollection, SavePlanArgs};
use crate::cli::runs::Runs;
use crate::cli::stack_runs::on_stacks;
use crate::cli::stacks::{check_before_plugins, read_stacks_to_compare};
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

  Preview the stacks that a pull request changes, and those that depend on them:
      sc preview --changed-since origin/main

  Print the changes as JSON for another program:
      sc preview -s aquarium --json

  Save what was decided, for a review, and carry exactly that out:
      sc preview --save-plan release.plan
      sc provision --plan release.plan")]
pub(crate) struct PreviewArgs {
    #[command(flatten)]
    pub(crate) stacks: StacksArgs,
    #[command(flatten)]
    pub(crate) changed: ChangedSinceArgs,
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
    #[command(flatten)]
    pub(crate) plan: SavePlanArgs,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, args: &PreviewArgs) -> anyhow::Result<Exit> {
    let mut stacks = read_stacks_to_compare(ui, global, &args.stacks, &args.changed)?;
    select_changed(ui, global, &args.changed, &mut stacks).await?;
    if stacks.requested().next().is_none() {
        return Ok(Exit::Done);
    }
    check_before_plugins(&ui.output, &stacks)?;
    let runs = Runs::new(&args.run, args.diff.diff, args.time, Changes::from_expect_no_changes(args.expect_no_changes));
    let mut runs = runs.with_replacements(&args.replace).with_keys();
    runs.pending = args.pending.clone();
    let refresh = !args.run.skip_refresh;
    let plans = PlanCollection::new(&args.plan);
    let exit =
        on_stacks(ui, &stacks, runs, async |run, _| Ok(Some(plans.preview(run, &stacks, refresh).await?))).await?;
    let dir = args.stacks.dir.dir.as_deref();
    plans.save(&ui.output, &stacks, global, (&args.run, &args.replace), (dir, exit)).await
}
