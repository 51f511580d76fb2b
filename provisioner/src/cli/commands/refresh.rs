//! `sc refresh`: updates the recorded state to the actual state of the resources.

use bridge::message_text::MessageText;
use clap::Args;
use provisioner::operation::{self, PendingCreateResolution, RefreshOptions, StackRun};
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;
use state::StackView;
use tokio_util::sync::CancellationToken;

use crate::cli::access::check_passphrases;
use crate::cli::args::{
    DiffArgs, EmptyStateArgs, GlobalArgs, JournalArgs, LockArgs, MissingArgs, ProgramArgs, RunArgs, ScopeArgs,
    ShowArgs, StacksArgs, TimeLimitArgs,
};
use crate::cli::commands::import::resource_and_id;
use crate::cli::exit::{Changes, Exit};
use crate::cli::prompt::ask_line;
use crate::cli::runs::{Runs, on_stacks};
use crate::cli::stacks::{check_core_types, read_stacks};
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
    /// Fail with exit code 7 if there are changes
    #[arg(long)]
    pub(crate) expect_no_changes: bool,
    /// Remove all pending creates from the state. `sc` does not check whether the resources exist: check that before
    #[arg(long, conflicts_with = "preview")]
    pub(crate) clear_pending_creates: bool,
    /// Import the resource of a pending create of an interrupted run, with its id; can be repeated
    #[arg(long, value_name = "RESOURCE=ID", value_parser = resource_and_id, conflicts_with = "preview")]
    pub(crate) import_pending_creates: Vec<(String, ResourceId)>,
    #[command(flatten)]
    pub(crate) program: ProgramArgs,
    /// Maximum number of resources to read in parallel
    #[arg(long, value_name = "N", default_value_t = u32::from(engine::DEFAULT_PARALLEL), value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) parallel: u32,
    #[command(flatten)]
    pub(crate) time: TimeLimitArgs,
    #[command(flatten)]
    pub(crate) lock: LockArgs,
    #[command(flatten)]
    pub(crate) journal: JournalArgs,
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
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, args: &RefreshArgs) -> anyhow::Result<Exit> {
    let stacks = read_stacks(ui, global, &args.stacks)?;
    if args.program.run_program {
        check_core_types(&ui.output, &stacks)?;
    }
    let changes = Changes::from_expect_no_changes(args.expect_no_changes);
    let run = RunArgs {
        skip_refresh: false,
        program: args.program,
        parallel: args.parallel,
        continue_on_error: false,
        show: args.show,
        scope: args.scope.clone(),
    };
    let mut runs = Runs::new(&run, args.diff.diff, args.time, changes);
    runs.options.allow_empty = args.empty.allow_empty;
    (runs.lock, runs.journal) = (args.lock, args.journal);
    runs.yes = args.yes;
    runs.missing = args.missing;
    if !args.preview {
        check_passphrases(&ui.output, &stacks)?;
    }
    on_stacks(ui, &stacks, runs, async |run, session| {
        Ok(Some(if args.preview {
            operation::preview_refresh(run).await?
        } else {
            let known = args.import_pending_creates.iter().cloned();
            let mut options = RefreshOptions {
                clear_pending_creates: args.clear_pending_creates,
                pending_creates: known.map(|(name, id)| (name, PendingCreateResolution::Import(id))).collect(),
            };
            if !args.clear_pending_creates && options.pending_creates.is_empty() && !args.yes && ui.output.can_ask() {
                session.pause();
                let Some(resolutions) = ask_about_pending_creates(ui, run, &session.signals.stop).await? else {
                    return Ok(None);
                };
                options.pending_creates = resolutions;
            }
            operation::refresh(run, options).await?
        }))
    })
    .await
}

/// Asks how to resolve each pending create whose id is not known. Returns `None` if the user ended the questions.
async fn ask_about_pending_creates(
    ui: &Ui,
    run: &StackRun,
    stop: &CancellationToken,
) -> anyhow::Result<Option<Vec<(String, PendingCreateResolution)>>> {
    let mut resolutions = Vec::new();
    let view = StackView::open(&run.access).await?;
    if !view.is_unlocked {
        // The refresh fails because of the lock, so no question is asked.
        return Ok(Some(resolutions));
    }
    let snapshot = view.snapshot.unwrap_or_default();
    for operation in snapshot.pending_operations.iter().filter(|operation| operation.is_create_without_id()) {
        let urn = &operation.resource.urn;
        let mut resources = snapshot.resources.iter();
        // The resource of a pending replacement is deleted already, so the created one takes its place.
        let recorded =
            resources.find(|resource| resource.urn == *urn && !resource.delete && !resource.pending_replacement);
        let recorded = recorded.map(|resource| resource.id_text());
        let Some(reply) = ask_line(&ui.output, &ui.signals, stop, &question(urn, recorded)).await? else {
            return Ok(None);
        };
        let resolution = if reply == "forget" {
            Some(PendingCreateResolution::Clear)
        } else {
            ResourceId::new(reply).map(PendingCreateResolution::Import)
        };
        resolutions.extend(resolution.map(|resolution| (urn.to_string(), resolution)));
    }
    Ok(Some(resolutions))
}

/// Returns the question about a pending create. `recorded` is the id of the existing resource with the same URN, if there
/// is one; in that case no second id can be recorded.
fn question(urn: &Urn, recorded: Option<&str>) -> MessageText {
    let resource = MessageText::new(format_args!("{} ({})", urn.name(), urn.type_token()));
    match recorded {
        Some(id) => MessageText::new(format_args!(
            "{resource} was being replaced when a run was interrupted; {id:?} is still recorded. If a second resource \
             exists with another id, delete it and type `forget`; press Enter to leave the create pending:"
        )),
        None => MessageText::new(format_args!(
            "{resource} was being created when a run was interrupted. Type its id to record it, or `forget` if it was not \
             created; press Enter to leave the create pending:"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_asks_for_an_id_only_if_it_can_be_recorded() {
        let urn = "urn:pulumi:dev::reef::t:m:T::a".parse().unwrap();
        assert!(question(&urn, None).contains("Type its id to record it"));
        let replaced = question(&urn, Some("a-1"));
        assert!(replaced.contains("\"a-1\" is still recorded") && !replaced.contains("Type its id"), "{replaced}");
    }
}
