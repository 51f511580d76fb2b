//! `sc provision`: creates, updates and deletes resources until they match the stacks.

use std::sync::atomic::Ordering;

use clap::Args;
use provisioner::operation::{self, ProvisionOptions};

use crate::cli::access::{check_passphrases, create_buckets};
use crate::cli::args::{
    DiffArgs, EmptyStateArgs, GlobalArgs, GuardArgs, JournalArgs, LockArgs, MessageArgs, MissingArgs, PendingArgs,
    ReplaceArgs, RunArgs, StacksArgs, TimeLimitArgs,
};
use crate::cli::exit::{Changes, Exit};
use crate::cli::guard::Guard;
use crate::cli::runs::{Runs, on_stacks};
use crate::cli::stacks::{check_before_plugins, read_stacks};
use crate::cli::ui::Ui;

/// Create, update and delete resources to match the stacks
///
/// For each stack, under one lock: refreshes the state, previews the changes, and applies them. On a terminal it asks before it
/// deletes or replaces resources, unless `CI` is set; `confirm` and `maxDeletes` of the provisioner change that. With
/// --preview, nothing is changed, saved or locked.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Provision every stack below .sc/stacks:
      sc provision

  Preview the changes of two stacks:
      sc provision --preview -s network,aquarium

  Provision in a pipeline, but never delete or replace more than two resources:
      sc provision --yes --max-deletes 2

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
    #[command(flatten)]
    pub(crate) guard: GuardArgs,
    #[command(flatten)]
    pub(crate) missing: MissingArgs,
    #[command(flatten)]
    pub(crate) pending: PendingArgs,
    #[command(flatten)]
    pub(crate) diff: DiffArgs,
    /// Apply the changes, and fail with exit code 7 if there were any; to change nothing, give --preview as well
    #[arg(long)]
    pub(crate) expect_no_changes: bool,
    #[command(flatten)]
    pub(crate) time: TimeLimitArgs,
    #[command(flatten)]
    pub(crate) lock: LockArgs,
    #[command(flatten)]
    pub(crate) journal: JournalArgs,
    #[command(flatten)]
    pub(crate) message: MessageArgs,
    /// Accepted for compatibility; has no effect on provision
    #[arg(short = 'M', long, value_name = "DURATION", hide = true)]
    pub(crate) preview_timeout: Option<String>,
    /// Accepted for compatibility; has no effect on provision
    #[arg(short = 'T', long, value_name = "DURATION", hide = true)]
    pub(crate) timeout: Option<String>,
    #[command(flatten)]
    pub(crate) empty: EmptyStateArgs,
    /// Begin a new stack, although a stack that was renamed had its name, or one of another project has equal resources
    #[arg(long)]
    pub(crate) new: bool,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) replace: ReplaceArgs,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, args: &ProvisionArgs) -> anyhow::Result<Exit> {
    let stacks = read_stacks(ui, global, &args.stacks)?;
    check_before_plugins(&ui.output, &stacks)?;
    let changes = Changes::from_expect_no_changes(args.expect_no_changes);
    let mut runs =
        Runs::new(&args.run, args.diff.diff, args.time, changes).with_replacements(&args.replace).with_keys();
    runs.options.allow_empty = args.empty.allow_empty;
    runs.message = (!args.preview).then(|| args.message.clone());
    (runs.lock, runs.journal) = (args.lock, args.journal);
    runs.begins_anew = args.new;
    runs.yes = args.guard.yes || args.guard.skip_preview;
    (runs.missing, runs.guard) = (args.missing, Some(args.guard));
    (runs.pending, runs.asks_about_pending) = (args.pending.clone(), !args.preview && ui.output.is_interactive());
    let refresh = !args.run.skip_refresh;
    // Before the first stack is changed, so that a stack that cannot be confirmed does not stop the run in the middle.
    for stack in stacks.requested().filter(|_| !args.preview) {
        Guard::new(&ui.output, &args.guard, stack)?;
    }
    if !args.preview {
        check_passphrases(&ui.output, &stacks)?;
        create_buckets(&ui.output, &stacks).await?;
    }
    on_stacks(ui, &stacks, runs, async |run, session| {
        if args.preview {
            return Ok(Some(operation::preview(run, refresh).await?));
        }
        let stack = run.program.stack();
        let guard = Guard::new(&ui.output, &args.guard, stack)?;
        let options = ProvisionOptions { refresh, preview: !args.guard.skip_preview || guard.needs_preview() };
        let missing = || run.options.missing.as_ref().map_or(0, |missing| missing.count.load(Ordering::Relaxed));
        let approve = async |preview: &_| guard.approve(session, &stacks, &stack.name, preview, missing()).await;
        operation::provision(run, options, approve).await
    })
    .await
}
