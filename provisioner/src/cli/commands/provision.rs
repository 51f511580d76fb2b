//! `sc provision`: creates, updates and deletes resources until they match the stacks.

use clap::Args;
use provisioner::operation::{self, ProvisionOptions};

use crate::cli::args::{DiffArgs, EmptyStateArgs, GlobalArgs, ReplaceArgs, RunArgs, StacksArgs, TimeLimitArgs};
use crate::cli::exit::{Changes, Exit};
use crate::cli::runs::{Runs, on_stacks};
use crate::cli::stacks::read_stacks;
use crate::cli::ui::Ui;

/// Create, update and delete resources to match the stacks
///
/// For each stack, under one lock: refreshes the state, previews the changes, and applies them without asking for
/// confirmation. With --preview, nothing is changed, saved or locked.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Provision every stack below .sc/stacks:
      sc provision

  Preview the changes of two stacks:
      sc provision --preview -s network,aquarium

  Stop after 45 minutes:
      sc provision -s aquarium --execution-timeout 45m

  Fail with exit code 7 if there are changes or drift:
      sc provision -s aquarium --preview --expect-no-changes

  Replace one server and update its dependents:
      sc provision -s aquarium --target-replace web--prod --target-dependents")]
pub(crate) struct ProvisionArgs {
    #[command(flatten)]
    pub(crate) stacks: StacksArgs,
    /// Only preview the changes
    #[arg(short = 'P', long)]
    pub(crate) preview: bool,
    /// Apply the changes without a preview
    #[arg(short = 'S', long, conflicts_with = "preview")]
    pub(crate) skip_preview: bool,
    #[command(flatten)]
    pub(crate) diff: DiffArgs,
    /// Fail with exit code 7 if there are changes
    #[arg(long)]
    pub(crate) expect_no_changes: bool,
    #[command(flatten)]
    pub(crate) time: TimeLimitArgs,
    /// Accepted for compatibility; has no effect on provision
    #[arg(short = 'M', long, value_name = "DURATION", hide = true)]
    pub(crate) preview_timeout: Option<String>,
    /// Accepted for compatibility; has no effect on provision
    #[arg(short = 'T', long, value_name = "DURATION", hide = true)]
    pub(crate) timeout: Option<String>,
    /// Accepted for compatibility; provision never asks for confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) empty: EmptyStateArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) replace: ReplaceArgs,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, args: &ProvisionArgs) -> anyhow::Result<Exit> {
    let stacks = read_stacks(ui, global, &args.stacks)?;
    stacks.check_packages(ui)?;
    let changes = Changes::from_expect_no_changes(args.expect_no_changes);
    let mut runs = Runs::new(&args.run, args.diff.diff, args.time, changes).with_replacements(&args.replace);
    runs.options.allow_empty = args.empty.allow_empty;
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
