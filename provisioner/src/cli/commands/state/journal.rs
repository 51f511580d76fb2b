//! `sc state journal`: lists, shows, adopts and discards the journals of runs that have not ended as they should.

use bridge::message_text::MessageText;
use clap::{Args, Subcommand};
use serde_json::json;
use state::{JournalStatus, JournalSummary, StackAccess, adopt_journal, discard_journal, journals};
use tokio_util::sync::CancellationToken;

use super::common::CommonArgs;
use crate::cli::access::{access, access_for_change};
use crate::cli::args::{GlobalArgs, StackArgs};
use crate::cli::display::Line;
use crate::cli::exit::{CliError, Exit};
use crate::cli::listing::{ago, table};
use crate::cli::prompt::{Confirmation, confirm, decline};
use crate::cli::stacks::{only, read_stack};
use crate::cli::ui::Ui;

/// List, show, adopt and discard the journals of interrupted runs
///
/// A run writes what it is about to do, and what has come of it, to a journal, on its machine and in the store. The next run
/// merges the journal of an interrupted one. These commands are the way out where it cannot: because the state has changed since,
/// or because a resource was created after another run had taken the journal over.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  List the journals of a stack:
      sc state journal ls -s aquarium

  Show what a run has created:
      sc state journal show -s aquarium 7d3f

  Record what a run has created and the state lacks:
      sc state journal adopt -s aquarium 7d3f")]
pub(crate) struct JournalCommand {
    #[command(subcommand)]
    verb: JournalVerb,
}

#[derive(Debug, Subcommand)]
enum JournalVerb {
    #[command(visible_alias = "list")]
    Ls(JournalLsArgs),
    Show(JournalShowArgs),
    Adopt(JournalChangeArgs),
    Discard(JournalDiscardArgs),
}

/// List the journals of a stack
#[derive(Debug, Args)]
struct JournalLsArgs {
    #[command(flatten)]
    stack: StackArgs,
}

/// Show what a run has created
#[derive(Debug, Args)]
struct JournalShowArgs {
    /// Id of the run, or its beginning [default: the only journal]
    #[arg(value_name = "RUN")]
    run: Option<String>,
    #[command(flatten)]
    stack: StackArgs,
}

/// Record what a run has created and the state lacks
///
/// Each such resource becomes a pending create with its id, which the next run reads and records. The journal is removed, unless the
/// state has another resource in place of one of them.
#[derive(Debug, Args)]
struct JournalChangeArgs {
    /// Id of the run, or its beginning [default: the only journal]
    #[arg(value_name = "RUN")]
    run: Option<String>,
    #[command(flatten)]
    common: CommonArgs,
}

/// Remove a journal without using it
///
/// Forgets what only this journal knows, which the command lists first.
#[derive(Debug, Args)]
struct JournalDiscardArgs {
    /// Id of the run, or its beginning [default: the only journal]
    #[arg(value_name = "RUN")]
    run: Option<String>,
    #[command(flatten)]
    common: CommonArgs,
}

/// Change of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JournalChange {
    Adopt,
    Discard,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, command: &JournalCommand) -> anyhow::Result<Exit> {
    match &command.verb {
        JournalVerb::Ls(args) => list(ui, global, &args.stack).await,
        JournalVerb::Show(args) => show(ui, global, &args.stack, args.run.as_deref()).await,
        JournalVerb::Adopt(args) => change(ui, global, JournalChange::Adopt, args.run.as_deref(), &args.common).await,
        JournalVerb::Discard(args) => {
            change(ui, global, JournalChange::Discard, args.run.as_deref(), &args.common).await
        }
    }
}

async fn list(ui: &Ui, global: &GlobalArgs, stack: &StackArgs) -> anyhow::Result<Exit> {
    let stacks = read_stack(ui, global, stack)?;
    let access = access(&ui.output, &stacks, only(&stacks)?).await?;
    let found = journals(&access).await?;
    let lines = if ui.output.results_are_json() {
        found.iter().map(|journal| Line::plain(as_json(journal))).collect()
    } else if found.is_empty() {
        vec![Line::plain(format!("no run has left a journal of {}", access.stack.stack()))]
    } else {
        let now = stacks.process_context.now;
        let row = |journal: &JournalSummary| {
            let by = journal.by.clone().unwrap_or_default();
            let (created, creating) = (journal.created.len().to_string(), journal.creating.len().to_string());
            let status = journal.status.as_str().to_owned();
            let started = journal.started.parse().map_or_else(|_| journal.started.clone(), |time| ago(time, now));
            vec![journal.run.clone(), status, started, by, created, creating]
        };
        let rows: Vec<Vec<String>> = found.iter().map(row).collect();
        table(&["RUN", "STATUS", "STARTED", "BY", "CREATED", "PENDING"], &rows)
    };
    ui.output.print(&lines)?;
    Ok(Exit::Done)
}

async fn show(ui: &Ui, global: &GlobalArgs, stack: &StackArgs, run: Option<&str>) -> anyhow::Result<Exit> {
    let stacks = read_stack(ui, global, stack)?;
    let access = access(&ui.output, &stacks, only(&stacks)?).await?;
    let journal = find(&access, run).await?;
    let lines = if ui.output.results_are_json() { vec![Line::plain(as_json(&journal))] } else { describe(&journal) };
    ui.output.print(&lines)?;
    Ok(Exit::Done)
}

async fn change(
    ui: &Ui,
    global: &GlobalArgs,
    change: JournalChange,
    run: Option<&str>,
    common: &CommonArgs,
) -> anyhow::Result<Exit> {
    let stacks = read_stack(ui, global, &common.stack)?;
    let access = access_for_change(&ui.output, &stacks, only(&stacks)?, common.lock).await?;
    let journal = find(&access, run).await?;
    if change == JournalChange::Adopt && journal.status == JournalStatus::Mergeable {
        let hint = "run `sc refresh`: it merges the journal into the state";
        return Err(CliError::failed("the journal is complete and depends on the current state", hint).into());
    }
    ui.output.print_messages(&describe(&journal));
    let question = match change {
        JournalChange::Adopt => MessageText::new(format_args!(
            "Record what run {} has created and the state lacks as pending creates?",
            journal.run
        )),
        JournalChange::Discard => MessageText::new(format_args!(
            "Remove the journal of run {}? What only this journal knows is forgotten.",
            journal.run
        )),
    };
    if confirm(&ui.output, &ui.signals, &CancellationToken::new(), &question, common.confirm.yes).await?
        == Confirmation::No
    {
        return Ok(decline(&ui.output));
    }
    let holder = stacks.holder();
    match change {
        JournalChange::Adopt => {
            let report = adopt_journal(&access, &holder, &journal.run).await?;
            if !report.is_empty() {
                ui.output.warn(MessageText::of(&report));
            }
            ui.output.print_messages(&[Line::plain(match report.adopted.len() {
                1 => "recorded 1 pending create with its id".to_owned(),
                count => format!("recorded {count} pending creates with their ids"),
            })]);
        }
        JournalChange::Discard => {
            discard_journal(&access, &holder, &journal.run).await?;
            ui.output.print_messages(&[Line::plain(format!("removed the journal of run {}", journal.run))]);
        }
    }
    Ok(Exit::Done)
}

/// Returns the journal of a run, by the beginning of its id; the only one without an id.
async fn find(access: &StackAccess, run: Option<&str>) -> anyhow::Result<JournalSummary> {
    let found = journals(access).await?;
    let mut matching = found.into_iter().filter(|journal| run.is_none_or(|run| journal.run.starts_with(run)));
    let hint = "`sc state journal ls` lists the journals";
    match (matching.next(), matching.next()) {
        (Some(journal), None) => Ok(journal),
        (None, _) => Err(CliError::failed("there is no such journal", hint).into()),
        (Some(_), Some(_)) => Err(CliError::usage("several journals match: name one run", hint).into()),
    }
}

fn describe(journal: &JournalSummary) -> Vec<Line> {
    let JournalSummary { run, location, started, by, status, created, creating, .. } = journal;
    let by = by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    let mut lines = vec![
        Line::plain(format!("run {run}, started {started}{by}: {}", status.as_str())),
        Line::plain(format!("  {}", location.display())),
    ];
    if let JournalStatus::Unreadable(reason) = status {
        lines.push(Line::plain(format!("  it cannot be read: {reason}")));
    }
    let created = created.iter().map(|(urn, id)| format!("  created {} as {id} ({})", urn.name(), urn.type_token()));
    let creating = creating.iter().map(|urn| format!("  may have created {} ({})", urn.name(), urn.type_token()));
    lines.extend(created.chain(creating).map(Line::plain));
    lines
}

fn as_json(journal: &JournalSummary) -> String {
    let JournalSummary { run, location, started, by, last_sent, status, created, creating } = journal;
    let created: Vec<_> = created.iter().map(|(urn, id)| json!({ "urn": urn.as_str(), "id": id.as_str() })).collect();
    let creating: Vec<_> = creating.iter().map(|urn| urn.as_str()).collect();
    let reason = if let JournalStatus::Unreadable(reason) = status { Some(reason) } else { None };
    json!({
        "run": run,
        "location": location.display().to_string(),
        "started": started,
        "by": by,
        "lastSent": last_sent.map(|time| time.to_string()),
        "status": status.as_str(),
        "reason": reason,
        "created": created,
        "creating": creating,
    })
    .to_string()
}
