//! `sc destroy`: deletes the resources of a stack.

use bridge::message_text::MessageText;
use clap::Args;
use engine::events::Outcome;
use provisioner::operation;

use crate::cli::access::check_passphrases;
use crate::cli::args::{
    ConfirmArgs, EmptyStateArgs, GlobalArgs, JournalArgs, LockArgs, MessageArgs, MissingArgs, NamedStacksArgs,
    PendingArgs, RunArgs, TimeLimitArgs,
};
use crate::cli::exit::{Changes, CliError, Exit};
use crate::cli::prompt::Confirmation;
use crate::cli::runs::Runs;
use crate::cli::stack_queue::Direction;
use crate::cli::stack_runs::on_stacks;
use crate::cli::stacks::{check_before_plugins, read_named_stacks};
use crate::cli::ui::Ui;

/// Delete all resources of a stack, or of several
///
/// Shows the resources to delete and asks for confirmation. If one of them is protected, the command fails before anything is
/// deleted.
/// The empty stack and its history are kept.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Delete all resources that `sc provision -s aquarium` created:
      sc destroy --parent -s aquarium

  Preview the deletes:
      sc destroy --parent -s aquarium --preview

  Delete one server and its dependents:
      sc destroy --parent -s aquarium --target web--prod --target-dependents

  If the recorded credentials have expired, use those in server.yaml:
      sc destroy --parent -s aquarium --run-program

  Delete all resources of three stacks, each before those that it depends on:
      sc destroy --parent -s web,app,network

  Delete without confirmation, such as in a pipeline:
      sc destroy --parent -s aquarium --yes")]
pub(crate) struct DestroyArgs {
    #[command(flatten)]
    pub(crate) stacks: NamedStacksArgs,
    /// Required, for compatibility with Simple Container, whose `destroy` also handles client stacks
    #[arg(long)]
    pub(crate) parent: bool,
    /// Environment of a client stack; not supported
    #[arg(short, long, hide = true, value_name = "ENV")]
    pub(crate) env: Option<String>,
    /// Only preview the deletes
    #[arg(short = 'P', long)]
    pub(crate) preview: bool,
    /// Delete without a preview: a protected resource fails the command in the middle. Still asks unless --yes is given
    #[arg(short = 'S', long, conflicts_with = "preview")]
    pub(crate) skip_preview: bool,
    /// Show the properties of deleted resources
    #[arg(short = 'D', long, alias = "detailed-diff")]
    pub(crate) diff: bool,
    /// Keep protected resources and their dependencies instead of failing
    #[arg(long, conflicts_with = "target")]
    pub(crate) exclude_protected: bool,
    #[command(flatten)]
    pub(crate) confirm: ConfirmArgs,
    #[command(flatten)]
    pub(crate) missing: MissingArgs,
    #[command(flatten)]
    pub(crate) pending: PendingArgs,
    #[command(flatten)]
    pub(crate) empty: EmptyStateArgs,
    #[command(flatten)]
    pub(crate) time: TimeLimitArgs,
    #[command(flatten)]
    pub(crate) lock: LockArgs,
    #[command(flatten)]
    pub(crate) journal: JournalArgs,
    #[command(flatten)]
    pub(crate) message: MessageArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

impl DestroyArgs {
    /// Rejects client stacks, which only Simple Container's own tools can destroy.
    fn check(&self) -> Result<(), CliError> {
        if self.env.is_some() {
            let hint = "omit --env, and give --parent to destroy the stack that `sc provision` created";
            return Err(CliError::usage("this sc does not deploy client stacks and cannot destroy them", hint));
        }
        if !self.parent {
            let hint = "give --parent to delete all resources that `sc provision` created for the stack";
            return Err(CliError::usage("destroying a stack requires --parent", hint));
        }
        Ok(())
    }
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, args: &DestroyArgs) -> anyhow::Result<Exit> {
    args.check()?;
    let stacks = read_named_stacks(ui, global, &args.stacks)?;
    if args.run.program.run_program {
        check_before_plugins(&ui.output, &stacks)?;
    }
    let mut runs = Runs::new(&args.run, args.diff, args.time, Changes::Allowed);
    runs.options.deployment.exclude_protected = args.exclude_protected;
    runs.options.allow_empty = args.empty.allow_empty;
    runs.message = (!args.preview).then(|| args.message.clone());
    (runs.lock, runs.journal) = (args.lock, args.journal);
    runs.yes = args.confirm.yes;
    runs.direction = Direction::DependentsFirst;
    runs.missing = args.missing;
    runs.pending = args.pending.clone();
    let refresh = !args.run.skip_refresh;
    if !args.preview {
        check_passphrases(&ui.output, &stacks)?;
    }
    on_stacks(ui, &stacks, runs, async |run, session| {
        if args.preview {
            return Ok(Some(operation::preview_destroy(run, refresh).await?));
        }
        if !args.skip_preview {
            let preview = operation::preview_destroy(run, refresh).await?;
            if preview.summary.outcome != Outcome::Succeeded {
                return Ok(Some(preview));
            }
        }
        let which = match (&args.run.scope, args.exclude_protected) {
            (scope, _) if !scope.target.is_empty() => "the targeted",
            (scope, false) if scope.exclude.is_empty() => "all",
            _ => "all but the excluded",
        };
        let question =
            MessageText::new(format_args!("Destroy {which} resources of stack {}?", run.program.stack().name));
        match session.confirm(&question, args.confirm.yes).await? {
            Confirmation::No => Ok(None),
            Confirmation::Yes => Ok(operation::destroy(run, refresh).await?),
        }
    })
    .await
}
