//! `sc refresh`: updates the recorded state to the actual state of the resources.

use clap::Args;
use provisioner::operation::{self, Fate, RefreshOptions, StackRun};
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;
use state::{OperationKind, StackView};
use tokio_util::sync::CancellationToken;

use crate::cli::args::{ConfirmArgs, DiffArgs, GlobalArgs, ProgramArgs, RunArgs, ScopeArgs, ShowArgs, StacksArgs};
use crate::cli::commands::import::resource_and_id;
use crate::cli::exit::{Changes, Exit};
use crate::cli::prompt::line;
use crate::cli::runs::{Runs, on_stacks};
use crate::cli::stacks::read_stacks;
use crate::cli::ui::Ui;

/// Record what the resources look like now
///
/// Reads each resource of the stacks and records what it finds. Nothing in the cloud is changed.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Record what has changed behind our back:
      sc refresh -s aquarium

  Only show it:
      sc refresh -s aquarium --preview

  Fail with exit code 7 if anything has drifted:
      sc refresh --preview --expect-no-changes

  After the credentials of a plugin have changed in server.yaml, so that the recorded ones read nothing any more:
      sc refresh -s aquarium --run-program")]
pub(crate) struct RefreshArgs {
    #[command(flatten)]
    pub(crate) stacks: StacksArgs,
    /// Only show what would be recorded
    #[arg(short = 'P', long)]
    pub(crate) preview: bool,
    #[command(flatten)]
    pub(crate) diff: DiffArgs,
    /// Fail with exit code 7 if anything has changed
    #[arg(long)]
    pub(crate) expect_no_changes: bool,
    /// Forget creations that an interrupted run began: say so once you have looked what became of them
    #[arg(long, conflicts_with = "preview")]
    pub(crate) clear_pending_creates: bool,
    /// Record what came of a creation that an interrupted run began: the resource with its id; may be given several
    /// times
    #[arg(long, value_name = "RESOURCE=ID", value_parser = resource_and_id, conflicts_with = "preview")]
    pub(crate) import_pending_creates: Vec<(String, ResourceId)>,
    #[command(flatten)]
    pub(crate) program: ProgramArgs,
    /// Read at most this many resources at once
    #[arg(long, value_name = "N", default_value = "16", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) parallel: u32,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    #[command(flatten)]
    pub(crate) confirm: ConfirmArgs,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, args: &RefreshArgs) -> anyhow::Result<Exit> {
    let stacks = read_stacks(ui, global, &args.stacks)?;
    if args.program.run_program {
        stacks.check_packages(ui)?;
    }
    let changes = Changes::expected(args.expect_no_changes);
    let run = RunArgs {
        skip_refresh: false,
        program: args.program,
        parallel: args.parallel,
        continue_on_error: false,
        show: args.show,
        scope: args.scope.clone(),
    };
    let runs = Runs::new(&run, args.diff.diff, None, changes);
    on_stacks(ui, &stacks, runs, async |run, session| {
        Ok(Some(if args.preview {
            operation::preview_refresh(run).await?
        } else {
            let known = args.import_pending_creates.iter().cloned();
            let mut options = RefreshOptions {
                clear_pending_creates: args.clear_pending_creates,
                pending_creates: known.map(|(name, id)| (name, Fate::Import(id))).collect(),
            };
            if !args.clear_pending_creates && options.pending_creates.is_empty() && !args.confirm.yes && ui.can_ask() {
                session.pause();
                let Some(fates) = ask_for_pending(run, &session.signals.stop).await? else { return Ok(None) };
                options.pending_creates = fates;
            }
            operation::refresh(run, options).await?
        }))
    })
    .await
}

/// Asks for the fates of the pending creations. `None`: the user ended the questions.
async fn ask_for_pending(run: &StackRun, stop: &CancellationToken) -> anyhow::Result<Option<Vec<(String, Fate)>>> {
    let mut fates = Vec::new();
    let view = StackView::open(&run.access).await?;
    if !view.is_unlocked {
        // The refresh fails because of the lock, so no question is asked.
        return Ok(Some(fates));
    }
    let snapshot = view.snapshot.unwrap_or_default();
    for operation in snapshot.pending_operations.iter().filter(|operation| operation.kind == OperationKind::Creating) {
        let urn = &operation.resource.urn;
        let mut resources = snapshot.resources.iter();
        let recorded = resources.find(|resource| resource.urn == *urn && !resource.delete);
        let recorded = recorded.map(|resource| resource.id_text());
        let Some(answer) = line(stop, &question(urn, recorded)).await? else { return Ok(None) };
        let fate = if answer == "forget" { Some(Fate::Forget) } else { ResourceId::new(answer).map(Fate::Import) };
        fates.extend(fate.map(|fate| (urn.to_string(), fate)));
    }
    Ok(Some(fates))
}

/// Returns the question about a pending creation. `recorded`: id of the live entry with its URN, if there is one; in
/// that case no second id can be recorded.
fn question(urn: &Urn, recorded: Option<&str>) -> String {
    let what = format!("{} ({})", urn.name(), urn.type_token());
    match recorded {
        Some(id) => format!(
            "{what} was being made anew when a run died; {id:?} is still recorded. Look for another one, delete it, and type \
             `forget`, or nothing to leave it pending:"
        ),
        None => format!(
            "{what} was being created when a run died. Type its id to record it, `forget` if nothing came of it, or nothing \
             to leave it pending:"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_asked_for_only_where_it_can_be_recorded() {
        let urn = "urn:pulumi:dev::reef::t:m:T::a".parse().unwrap();
        assert!(question(&urn, None).contains("Type its id to record it"));
        let anew = question(&urn, Some("a-1"));
        assert!(anew.contains("\"a-1\" is still recorded") && !anew.contains("Type its id"), "{anew}");
    }
}
