//! `sc destroy`: deletes the resources of a stack.

use clap::Args;
use engine::events::Outcome;
use provisioner::operation;

use crate::cli::args::{ConfirmArgs, GlobalArgs, RunArgs, StackArgs};
use crate::cli::exit::{Changes, CliError, Exit};
use crate::cli::prompt::Answer;
use crate::cli::runs::{Runs, on_stacks};
use crate::cli::stacks::read_stack;
use crate::cli::ui::Ui;

/// Delete all resources of a stack
///
/// Shows what will be deleted and asks. Protected resources are not deleted and fail the command. The stack stays,
/// empty, with its history.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Delete what `sc provision -s aquarium` made:
      sc destroy --parent -s aquarium

  Show what would be deleted:
      sc destroy --parent -s aquarium --preview

  Delete one server and what depends on it:
      sc destroy --parent -s aquarium --target web--prod --target-dependents

  After the credentials of a plugin have changed in server.yaml, so that the recorded ones delete nothing any more:
      sc destroy --parent -s aquarium --run-program

  In a pipeline, where nobody can answer:
      sc destroy --parent -s aquarium --yes")]
pub(crate) struct DestroyArgs {
    #[command(flatten)]
    pub(crate) stack: StackArgs,
    /// Destroy the stack that provision made; needed, because sc makes no others
    #[arg(long)]
    pub(crate) parent: bool,
    /// Environment of a deployed client stack; sc makes none
    #[arg(short, long, hide = true, value_name = "ENV")]
    pub(crate) env: Option<String>,
    /// Only show what would be deleted
    #[arg(short = 'P', long)]
    pub(crate) preview: bool,
    /// Delete without showing first what; still asks unless --yes is given
    #[arg(short = 'S', long, conflicts_with = "preview")]
    pub(crate) skip_preview: bool,
    /// Show the properties of what is deleted
    #[arg(short = 'D', long, alias = "detailed-diff")]
    pub(crate) diff: bool,
    /// Keep protected resources, and what they need, instead of failing because of them
    #[arg(long, conflicts_with = "target")]
    pub(crate) exclude_protected: bool,
    #[command(flatten)]
    pub(crate) confirm: ConfirmArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

impl DestroyArgs {
    /// Refuses client stacks, which Simple Container's own tools can destroy.
    fn check(&self) -> Result<(), CliError> {
        if self.env.is_some() {
            let hint = "leave --env out and give --parent to destroy what `sc provision` made";
            return Err(CliError::usage("client stacks are not deployed by this sc, so none can be destroyed", hint));
        }
        if !self.parent {
            let hint = "give --parent to destroy all that `sc provision` made for the stack";
            return Err(CliError::usage("destroying a stack takes --parent", hint));
        }
        Ok(())
    }
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, args: &DestroyArgs) -> anyhow::Result<Exit> {
    args.check()?;
    let stacks = read_stack(ui, global, &args.stack)?;
    if args.run.program.run_program {
        stacks.check_packages(ui)?;
    }
    let mut runs = Runs::new(&args.run, args.diff, None, Changes::Welcome);
    runs.options.exclude_protected = args.exclude_protected;
    let refresh = !args.run.skip_refresh;
    on_stacks(ui, &stacks, runs, async |run, session| {
        if args.preview {
            return Ok(Some(operation::preview_destroy(run, refresh).await?));
        }
        if !args.skip_preview && !args.confirm.yes {
            let preview = operation::preview_destroy(run, refresh).await?;
            if preview.summary.outcome != Outcome::Succeeded {
                return Ok(Some(preview));
            }
        }
        let which = match (&args.run.scope, args.exclude_protected) {
            (scope, _) if !scope.target.is_empty() => "the named",
            (scope, false) if scope.exclude.is_empty() => "all",
            _ => "all other",
        };
        let question = format!("Destroy {which} resources of stack {}?", run.program.stack().name);
        match session.confirm(&question, args.confirm.yes).await? {
            Answer::No => Ok(None),
            Answer::Yes => Ok(Some(operation::destroy(run, refresh).await?)),
        }
    })
    .await
}
