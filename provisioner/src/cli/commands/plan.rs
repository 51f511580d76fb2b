//! `sc plan`: shows and checks saved plans; without a verb, the same as `sc preview`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bridge::message_text::MessageText;
use clap::{Args, Subcommand};
use engine::events::{Event, Operation, Outcome, Phase, Summary};
use jiff::Timestamp;
use provisioner::operation::{OpenedPlan, PlanError, Stacks, check_header};
use provisioner::plan::{PlanFile, StackPlan};

use super::preview::{self, PreviewArgs};
use crate::cli::access::access;
use crate::cli::args::{GlobalArgs, ShowArgs};
use crate::cli::display::Line;
use crate::cli::exit::{CliError, Exit};
use crate::cli::plan_args::read_plan;
use crate::cli::plan_markdown;
use crate::cli::session::{self, SessionOptions};
use crate::cli::stacks::{profile_name, read_stacks_at};
use crate::cli::ui::Ui;

/// Show the changes that provision would make, or a saved plan of them
///
/// Without a verb, it does the same as `sc preview`. A plan is saved with `sc preview --save-plan FILE` and carried out with
/// `sc provision --plan FILE`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_long_help = "\
Examples:
  Save a plan, show it, and carry it out:
      sc preview --save-plan release.plan
      sc plan show release.plan
      sc provision --plan release.plan

  Write a plan as a comment for a pull request:
      sc plan show release.plan --markdown > comment.md

  Find out whether a plan can still be carried out:
      sc plan check release.plan")]
pub(crate) struct PlanCommand {
    #[command(subcommand)]
    verb: Option<PlanVerb>,
    #[command(flatten)]
    preview: PreviewArgs,
}

#[derive(Debug, Subcommand)]
enum PlanVerb {
    Show(ShowPlanArgs),
    Check(CheckPlanArgs),
}

/// Show a saved plan as its preview
///
/// Needs the key of each stack, because a plan is encrypted. Calls no plugin, and shows a plan also if it has expired.
#[derive(Debug, Args)]
struct ShowPlanArgs {
    /// File of the plan
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
    /// Print Markdown for a comment, of at most 65,536 characters: deletions and replacements first, details folded
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    #[command(flatten)]
    show: ShowArgs,
}

/// Check whether a saved plan can still be carried out
///
/// Compares the state, the files and the assets with what the plan was made with, and says what has changed. Plugins and provider
/// inputs are compared by the run. Exit code 1 if the plan cannot be carried out.
#[derive(Debug, Args)]
struct CheckPlanArgs {
    /// File of the plan
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, command: &PlanCommand) -> anyhow::Result<Exit> {
    match &command.verb {
        None => preview::run(ui, global, &command.preview).await,
        Some(PlanVerb::Show(args)) => show(ui, global, args).await,
        Some(PlanVerb::Check(args)) => check(ui, global, args).await,
    }
}

/// Opens the plans of all stacks of a file.
async fn open_all(ui: &Ui, stacks: &Stacks, file: &PlanFile) -> anyhow::Result<Vec<(String, OpenedPlan)>> {
    let mut opened = Vec::new();
    for stack in stacks.requested() {
        let access = access(&ui.output, stacks, stack).await?;
        opened.push((stack.name.clone(), stacks.open_plan(file, stack, &access).await?));
    }
    Ok(opened)
}

async fn show(ui: &Ui, global: &GlobalArgs, args: &ShowPlanArgs) -> anyhow::Result<Exit> {
    let (file, stacks) = read_plan(global, &args.file)?;
    let stacks = read_stacks_at(ui, global, &stacks, file.header.created)?;
    let opened = open_all(ui, &stacks, &file).await?;
    let plans: Vec<(String, Arc<StackPlan>)> = opened.into_iter().map(|(name, opened)| (name, opened.plan)).collect();
    for (_, plan) in &plans {
        add_secrets(ui, plan);
    }
    if args.markdown {
        ui.output.print_text(&plan_markdown::text(&file, &plans, ui.output.masker()))?;
        return Ok(Exit::Done);
    }
    let options = SessionOptions { diff: true, secrets: args.show.secrets(), limit: None, has_turns: false };
    session::run(ui, options, async |session| {
        for (name, plan) in &plans {
            let events = session.sink(name, None);
            events_of(plan).into_iter().for_each(|event| events.emit(event));
        }
        Ok(Exit::Done)
    })
    .await?;
    let header = &file.header;
    ui.output.inform(MessageText::new(format_args!(
        "{} saved this plan at {:.0} with sc {}; it is good until {:.0} (SHA-256 {})",
        header.by, header.created, header.version, header.expires, file.digest
    )));
    Ok(Exit::Done)
}

/// Adds the secrets of a plan to those that are masked.
fn add_secrets(ui: &Ui, plan: &StackPlan) {
    let masker = ui.output.masker();
    for resource in &plan.resources {
        resource.old_inputs.iter().for_each(|inputs| masker.add_values(inputs));
        if let Some(registration) = &resource.registration {
            masker.add_values(&registration.inputs);
            registration.checked.iter().for_each(|inputs| masker.add_values(inputs));
        }
    }
    masker.add_values(&plan.outputs);
}

/// Returns the events of the preview that a plan was made by.
fn events_of(plan: &StackPlan) -> Vec<Event> {
    let shown = plan.shown_steps();
    let phase = Phase { operation: Operation::Update, preview: true };
    let mut events = vec![Event::PhaseStarted(phase), Event::PhaseTotal(plan.resources.len())];
    for step in shown.steps {
        events.push(Event::StepStarted(Arc::clone(&step)));
        events.push(Event::StepSucceeded(step, Duration::ZERO));
    }
    events.extend(shown.root.map(Event::OutputsRegistered));
    events.push(Event::PhaseEnded(Summary {
        phase,
        changes: shown.changes,
        deletions: shown.deletions,
        outcome: Outcome::Succeeded,
        duration: Duration::ZERO,
        journal: None,
    }));
    events
}

async fn check(ui: &Ui, global: &GlobalArgs, args: &CheckPlanArgs) -> anyhow::Result<Exit> {
    let (file, stacks) = read_plan(global, &args.file)?;
    check_header(&file.header, profile_name(global), Timestamp::now())?;
    let stacks = read_stacks_at(ui, global, &stacks, file.header.created)?;
    let mut reasons = Vec::new();
    for (name, opened) in open_all(ui, &stacks, &file).await? {
        let used = opened.used.map(|used| PlanError::Used { time: used.time, by: used.by }.to_string());
        reasons.extend(opened.differences.into_iter().chain(used).map(|reason| format!("{name}: {reason}")));
    }
    if reasons.is_empty() {
        ui.output.inform(MessageText::new(format_args!(
            "the plan can be carried out until {:.0}, as far as state, files and assets tell",
            file.header.expires
        )));
        return Ok(Exit::Done);
    }
    let lines: Vec<Line> = reasons.iter().map(Line::plain).collect();
    ui.output.print(&lines)?;
    let hint = "make a new plan with `sc preview --save-plan FILE`, and review it";
    Err(CliError::failed("the plan cannot be carried out any more", hint).into())
}
