//! `sc provision`: creates, updates and deletes resources until they match the stacks.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use clap::Args;
use jiff::Timestamp;
use provisioner::operation::{self, PlannedProvision, ProvisionOptions, check_header, provision_plan};

use crate::cli::access::{access, check_passphrases, create_buckets};
use crate::cli::args::{
    ChangedSinceArgs, DiffArgs, EmptyStateArgs, GlobalArgs, GuardArgs, JournalArgs, LockArgs, MessageArgs, MissingArgs,
    PendingArgs, ReplaceArgs, RunArgs, StacksArgs, TimeLimitArgs,
};
use crate::cli::changed_since::select_changed;
use crate::cli::exit::{Changes, CliError, Exit};
use crate::cli::guard::Guard;
use crate::cli::plan_args::{PlanCollection, SavePlanArgs, read_plan, with_plan_options};
use crate::cli::runs::Runs;
use crate::cli::stack_runs::on_stacks;
use crate::cli::stacks::{check_before_plugins, profile_name, read_stacks_at, read_stacks_to_compare};
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

  Provision the stacks that a pull request changes, and those that depend on them:
      sc provision --changed-since origin/main

  Provision in a pipeline, but never delete or replace more than two resources:
      sc provision --yes --max-deletes 2

  Stop after 45 minutes:
      sc provision -s aquarium --execution-timeout 45m

  Fail with exit code 7 if there are changes or drift:
      sc provision -s aquarium --preview --expect-no-changes

  Carry out a plan that was saved and reviewed:
      sc provision --plan release.plan

  Replace one server and update its dependents:
      sc provision -s aquarium --target-replace web--prod --target-dependents")]
pub(crate) struct ProvisionArgs {
    #[command(flatten)]
    pub(crate) stacks: StacksArgs,
    #[command(flatten)]
    pub(crate) changed: ChangedSinceArgs,
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
    #[command(flatten)]
    pub(crate) save: SavePlanArgs,
    /// Carry out this plan and nothing else: without a refresh, a preview and a question. What the plan does not have is refused
    #[arg(
        long,
        value_name = "FILE",
        value_hint = clap::ValueHint::FilePath,
        conflicts_with_all = ["preview", "stacks", "dir", "save_plan", "import_pending_creates", "clear_pending_creates"],
        help_heading = "Saved plans",
    )]
    pub(crate) plan: Option<PathBuf>,
    /// Leave out planned changes that are no longer needed, instead of refusing the plan
    #[arg(long, requires = "plan", help_heading = "Saved plans")]
    pub(crate) allow_fewer: bool,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, args: &ProvisionArgs) -> anyhow::Result<Exit> {
    if let Some(path) = &args.plan {
        return run_plan(ui, global, args, path).await;
    }
    if args.save.save_plan.is_some() && !args.preview {
        let hint = "add --preview; `sc provision --plan FILE` carries the plan out";
        return Err(
            CliError::usage("--save-plan saves a preview, and without --preview the changes are made", hint).into()
        );
    }
    let mut stacks = read_stacks_to_compare(ui, global, &args.stacks, &args.changed)?;
    select_changed(ui, global, &args.changed, &mut stacks).await?;
    if stacks.requested().next().is_none() {
        return Ok(Exit::Done);
    }
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
    let plans = PlanCollection::new(&args.save);
    let exit = on_stacks(ui, &stacks, runs, async |run, session| {
        if args.preview {
            return Ok(Some(plans.preview(run, &stacks, refresh).await?));
        }
        let stack = run.program.stack();
        let guard = Guard::new(&ui.output, &args.guard, stack)?;
        let options = ProvisionOptions { refresh, preview: !args.guard.skip_preview || guard.needs_preview() };
        let missing = || run.options.missing.as_ref().map_or(0, |missing| missing.count.load(Ordering::Relaxed));
        let approve = async |preview: &_| guard.approve(session, &stacks, &stack.name, preview, missing()).await;
        operation::provision(run, options, approve).await
    })
    .await?;
    let dir = args.stacks.dir.dir.as_deref();
    plans.save(&ui.output, &stacks, global, (&args.run, &args.replace), (dir, exit)).await
}

/// Carries out a saved plan. All stacks are compared with it before the first one is changed.
async fn run_plan(ui: &Ui, global: &GlobalArgs, args: &ProvisionArgs, path: &Path) -> anyhow::Result<Exit> {
    let (file, stacks) = read_plan(global, path)?;
    check_header(&file.header, profile_name(global), Timestamp::now())?;
    let (run_args, replace) = with_plan_options(&args.run, &args.replace, &file.header.options)?;
    let stacks = read_stacks_at(ui, global, &stacks, file.header.created)?;
    check_before_plugins(&ui.output, &stacks)?;
    check_passphrases(&ui.output, &stacks)?;
    create_buckets(&ui.output, &stacks).await?;
    if stacks.requested().count() > 1 {
        for stack in stacks.requested() {
            let opened = stacks.open_plan(&file, stack, &access(&ui.output, &stacks, stack).await?).await?;
            opened.check(&stack.name)?;
        }
    }
    let changes = Changes::from_expect_no_changes(args.expect_no_changes);
    let mut runs = Runs::new(&run_args, args.diff.diff, args.time, changes).with_replacements(&replace);
    runs.options.allow_empty = args.empty.allow_empty;
    runs.message = Some(args.message.clone());
    (runs.lock, runs.journal) = (args.lock, args.journal);
    (runs.begins_anew, runs.yes) = (args.new, true);
    // The plan is what the user has agreed to.
    let guard_args = GuardArgs { yes: true, ..args.guard };
    (runs.missing, runs.guard) = (args.missing, Some(guard_args));
    let file = Arc::new(file);
    on_stacks(ui, &stacks, runs, async |run, _| {
        let stack = run.program.stack();
        let opened = stacks.open_plan(&file, stack, &run.access).await?;
        let deletion_limit = Guard::new(&ui.output, &guard_args, stack)?.limit_of_plan(&stacks);
        let planned = PlannedProvision { file: Arc::clone(&file), allows_fewer: args.allow_fewer, deletion_limit };
        Ok(provision_plan(run, &planned, opened).await?)
    })
    .await
}
