//! `sc refresh`: updates the recorded state to the actual state of the resources.

use clap::Args;
use provisioner::operation;

use crate::cli::access::check_passphrases;
use crate::cli::args::{
    DiffArgs, EmptyStateArgs, GlobalArgs, JournalArgs, LockArgs, MessageArgs, MissingArgs, OverrideArgs, PendingArgs,
    ProgramArgs, RunArgs, ScopeArgs, ShowArgs, StacksArgs, TimeLimitArgs,
};
use crate::cli::exit::{Changes, Exit};
use crate::cli::runs::Runs;
use crate::cli::stack_runs::on_stacks;
use crate::cli::stacks::{check_before_plugins, read_stacks};
use crate::cli::ui::Ui;

/// Update the recorded state to match the resources in the cloud
///
/// Reads each resource of the stacks from its provider and records its actual properties. Nothing in the cloud is
/// changed.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Record changes that were made outside of sc:
      sc refresh -s aquarium

  Only show them:
      sc refresh -s aquarium --preview

  Fail with exit code 7 if anything has drifted:
      sc refresh --preview --expect-no-changes

  If the recorded credentials have expired, use those in server.yaml:
      sc refresh -s aquarium --run-program")]
pub(crate) struct RefreshArgs {
    #[command(flatten)]
    pub(crate) stacks: StacksArgs,
    /// Only preview the changes of the state
    #[arg(short = 'P', long)]
    pub(crate) preview: bool,
    #[command(flatten)]
    pub(crate) diff: DiffArgs,
    /// Record the changes, and fail with exit code 7 if there were any; to record nothing, give --preview as well
    #[arg(long)]
    pub(crate) expect_no_changes: bool,
    #[command(flatten)]
    pub(crate) pending: PendingArgs,
    #[command(flatten)]
    pub(crate) program: ProgramArgs,
    /// Maximum number of resources to read in parallel
    #[arg(long, value_name = "N", default_value_t = u32::from(engine::DEFAULT_PARALLEL), value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) parallel: u32,
    /// Maximum number of stacks to work on at the same time; --parallel counts for each of them
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) parallel_stacks: u32,
    #[command(flatten)]
    pub(crate) time: TimeLimitArgs,
    #[command(flatten)]
    pub(crate) lock: LockArgs,
    #[command(flatten)]
    pub(crate) journal: JournalArgs,
    #[command(flatten)]
    pub(crate) message: MessageArgs,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    /// Do not ask: leave pending creates pending, and download packages that core types need
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) missing: MissingArgs,
    #[command(flatten)]
    pub(crate) empty: EmptyStateArgs,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    #[command(flatten)]
    pub(crate) overrides: OverrideArgs,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, args: &RefreshArgs) -> anyhow::Result<Exit> {
    let stacks = read_stacks(ui, global, &args.stacks)?;
    if args.program.run_program {
        check_before_plugins(&ui.output, &stacks)?;
    }
    let changes = Changes::from_expect_no_changes(args.expect_no_changes);
    let run = RunArgs {
        skip_refresh: false,
        program: args.program,
        parallel: args.parallel,
        parallel_stacks: args.parallel_stacks,
        continue_on_error: false,
        show: args.show,
        scope: args.scope.clone(),
        overrides: args.overrides.clone(),
    };
    let mut runs = Runs::new(&run, args.diff.diff, args.time, changes);
    runs.options.allow_empty = args.empty.allow_empty;
    runs.message = (!args.preview).then(|| args.message.clone());
    (runs.lock, runs.journal) = (args.lock, args.journal);
    runs.yes = args.yes;
    runs.missing = args.missing;
    if !args.preview {
        check_passphrases(&ui.output, &stacks)?;
    }
    runs.pending = args.pending.clone();
    runs.asks_about_pending = !args.preview && !args.yes && ui.output.can_ask();
    on_stacks(ui, &stacks, runs, async |run, _| {
        Ok(if args.preview { Some(operation::preview_refresh(run).await?) } else { operation::refresh(run).await? })
    })
    .await
}
