//! `sc stack history`: lists the updates of a stack.

use clap::Args;
use jiff::Timestamp;
use state::format::UpdateInfo;

use crate::cli::access::access;
use crate::cli::args::{GlobalArgs, StackArgs};
use crate::cli::display::Line;
use crate::cli::exit::Exit;
use crate::cli::listing::table;
use crate::cli::stacks::{only, read_stack};
use crate::cli::ui::Ui;

/// List the updates of a stack, newest first
///
/// Lists updates, refreshes, imports and destroys by `sc` or `pulumi`. `sc stack import` and `sc state` leave no entry.
/// With --json, prints one object for each entry with its configuration, whose secrets stay encrypted.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Show when the last failed update started:
      sc stack history -s aquarium --json | jq -r 'select(.result == \"failed\") | .startTime' | head -1")]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    stack: StackArgs,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, args: &HistoryArgs) -> anyhow::Result<Exit> {
    let stacks = read_stack(ui, global, &args.stack)?;
    let access = access(&ui.output, &stacks, only(&stacks)?).await?;
    let entries = state::history(&access).await?;
    let newest_first = entries.iter().rev();
    let lines = if ui.output.results_are_json() {
        newest_first.map(|entry| Line::plain(as_json(access.stack.stack(), entry))).collect()
    } else {
        let rows: Vec<Vec<String>> = newest_first.map(as_row).collect();
        table(&["STARTED", "DURATION", "KIND", "RESULT", "STEPS", "MESSAGE"], &rows)
    };
    ui.output.print(&lines)?;
    Ok(Exit::Done)
}

fn as_row(entry: &UpdateInfo) -> Vec<String> {
    let or_dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    let steps: Vec<String> = entry.resource_changes.iter().map(|(step, count)| format!("{count} {step}")).collect();
    vec![
        format_time(entry.start_time),
        format!("{}s", entry.end_time.saturating_sub(entry.start_time)),
        entry.kind.as_str().to_owned(),
        entry.result.as_str().to_owned(),
        or_dash(steps.join(", ")),
        or_dash(entry.message.lines().next().unwrap_or_default().to_owned()),
    ]
}

fn as_json(stack: &str, entry: &UpdateInfo) -> String {
    let config: serde_json::Map<_, _> =
        entry.config.iter().map(|(key, value)| (key.clone(), value.0.clone())).collect();
    serde_json::json!({
        "stack": stack,
        "kind": entry.kind.as_str(),
        "result": entry.result.as_str(),
        "startTime": format_time(entry.start_time),
        "endTime": format_time(entry.end_time),
        "message": entry.message,
        "resourceChanges": entry.resource_changes,
        "environment": entry.environment,
        "config": config,
    })
    .to_string()
}

/// Formats a time in seconds since 1970 as a timestamp; a time that is out of range, as the number.
fn format_time(seconds: i64) -> String {
    Timestamp::from_second(seconds).map_or_else(|_| seconds.to_string(), |time| time.to_string())
}
