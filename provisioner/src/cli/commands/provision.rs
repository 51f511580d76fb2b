//! `sc provision`: creates, updates and deletes resources until they match the stacks.

use std::time::Duration;

use clap::Args;
use provisioner::operation::{self, ProvisionOptions};

use crate::cli::args::{ConfirmArgs, DiffArgs, GlobalArgs, ReplaceArgs, RunArgs, StacksArgs, duration};
use crate::cli::exit::{Changes, Exit};
use crate::cli::runs::{Runs, on_stacks};
use crate::cli::stacks::read_stacks;
use crate::cli::ui::Ui;

/// Create, change and delete what the stacks describe
///
/// For each stack, under one lock: refresh what is recorded, preview the changes, make them. Nothing is asked. With
/// --preview nothing is changed, saved or locked.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Provision every stack below .sc/stacks:
      sc provision

  Show what would change in two stacks:
      sc provision --preview -s network,aquarium

  Give it at most 45 minutes:
      sc provision -s aquarium --execution-timeout 45m

  Fail with exit code 7 if anything has drifted:
      sc provision -s aquarium --preview --expect-no-changes

  Make one server anew, and what depends on it with it:
      sc provision -s aquarium --target-replace web--prod --target-dependents")]
pub(crate) struct ProvisionArgs {
    #[command(flatten)]
    pub(crate) stacks: StacksArgs,
    /// Only show what would change
    #[arg(short = 'P', long)]
    pub(crate) preview: bool,
    /// Make the changes without showing them first
    #[arg(short = 'S', long, conflicts_with = "preview")]
    pub(crate) skip_preview: bool,
    #[command(flatten)]
    pub(crate) diff: DiffArgs,
    /// Fail with exit code 7 if there is anything to change
    #[arg(long)]
    pub(crate) expect_no_changes: bool,
    /// Stop as Ctrl-C does once refresh, preview and update have taken this long: 90s, 30m, 1h30m
    #[arg(short = 'O', long, value_name = "DURATION", value_parser = duration)]
    pub(crate) execution_timeout: Option<Duration>,
    /// Accepted for compatibility; has no effect on provision
    #[arg(short = 'M', long, value_name = "DURATION", hide = true)]
    pub(crate) preview_timeout: Option<String>,
    /// Accepted for compatibility; has no effect on provision
    #[arg(short = 'T', long, value_name = "DURATION", hide = true)]
    pub(crate) timeout: Option<String>,
    #[command(flatten)]
    pub(crate) confirm: ConfirmArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) replace: ReplaceArgs,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, args: &ProvisionArgs) -> anyhow::Result<Exit> {
    let stacks = read_stacks(ui, global, &args.stacks)?;
    stacks.check_packages(ui)?;
    let changes = Changes::expected(args.expect_no_changes);
    let runs = Runs::new(&args.run, args.diff.diff, args.execution_timeout, changes).replacing(&args.replace);
    let refresh = !args.run.skip_refresh;
    on_stacks(ui, &stacks, runs, async |run, _| {
        Ok(Some(if args.preview {
            operation::preview(run, refresh).await?
        } else {
            operation::provision(run, ProvisionOptions { refresh, preview: !args.skip_preview }).await?
        }))
    })
    .await
}
