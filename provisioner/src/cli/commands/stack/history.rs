//! `sc stack history`: lists the updates of a stack.

use clap::Args;
use jiff::Timestamp;
use state::format::{UpdateInfo, UpdateKind};

use crate::cli::access::access;
use crate::cli::args::{GlobalArgs, StackArgs};
use crate::cli::display::{Line, Palette};
use crate::cli::exit::Exit;
use crate::cli::listing::{ago, date_and_time, table};
use crate::cli::stacks::{only, read_stack_of_state};
use crate::cli::ui::Ui;
use crate::cli::waits::show_while;

/// Number of characters of a commit that are shown.
const COMMIT_CHARACTERS: usize = 8;
/// Width of the lines below an update, in columns of a terminal.
const WIDTH: usize = 80;
/// Details that name the one who ran an update, the first that is known: of `sc`, of `pulumi`.
const AUTHORS: [&str; 3] = ["sc.user", "git.committer", "git.author"];

/// List the updates of a stack, newest first
///
/// Lists updates, refreshes, imports and destroys by `sc` or `pulumi`, with who ran them and where, the commit, its branch and the
/// message (`--message`). `sc stack import` and `sc state` leave no entry. With --json, prints one object for each entry, with all
/// details and the configuration, whose secrets stay encrypted.
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
    let stacks = read_stack_of_state(ui, global, &args.stack)?;
    let access = access(&ui.output, &stacks, only(&stacks)?).await?;
    let what = format!("reading the history of {}", access.stack.stack());
    let entries = show_while(&ui.output, &what, state::history(&access)).await?;
    let newest_first: Vec<&UpdateInfo> = entries.iter().rev().collect();
    let lines = if ui.output.results_are_json() {
        newest_first.iter().map(|entry| Line::plain(as_json(access.stack.stack(), entry))).collect()
    } else {
        listed(&newest_first, stacks.process_context.now)
    };
    ui.output.print(&lines)?;
    Ok(Exit::Done)
}

/// Returns a table of the updates, with lines about the origin of each below its row.
fn listed(entries: &[&UpdateInfo], now: Timestamp) -> Vec<Line> {
    let rows: Vec<Vec<String>> = entries.iter().map(|entry| as_row(entry, now)).collect();
    // The steps of an update may be many: they are cut, and the table has the other columns.
    let mut lines = table(&["STARTED", "DURATION", "KIND", "RESULT"], &rows).into_iter();
    let mut listed: Vec<Line> = lines.next().map(|head| head.styled(Palette::BOLD, "STEPS")).into_iter().collect();
    for (row, entry) in lines.zip(entries) {
        let steps: Vec<String> = entry.resource_changes.iter().map(|(step, count)| format!("{count} {step}")).collect();
        let steps = if steps.is_empty() { "-".to_owned() } else { steps.join(", ") };
        listed.push(row.text(steps).truncate(WIDTH));
        listed.extend(origin(entry).into_iter().map(|text| Line::plain(format!("  {text}")).truncate(WIDTH)));
    }
    listed
}

fn as_row(entry: &UpdateInfo, now: Timestamp) -> Vec<String> {
    let kind = match entry.kind {
        UpdateKind::Import => "import",
        kind => kind.as_str(),
    };
    let started = Timestamp::from_second(entry.start_time);
    vec![
        started.map_or_else(|_| entry.start_time.to_string(), |time| ago(time, now)),
        format!("{}s", entry.end_time.saturating_sub(entry.start_time)),
        kind.to_owned(),
        entry.result.as_str().to_owned(),
    ]
}

/// Returns lines about an update: its time with who ran it and where, the commit with its branch, and the message.
fn origin(entry: &UpdateInfo) -> Vec<String> {
    let detail = |key: &str| entry.environment.get(key).map(String::as_str).filter(|value| !value.is_empty());
    let time = Timestamp::from_second(entry.start_time).map_or_else(|_| entry.start_time.to_string(), date_and_time);
    let mut first = time;
    if let Some(author) = AUTHORS.iter().find_map(|key| detail(key)) {
        first.push_str(&format!(" by {author}"));
    }
    if let Some(host) = detail("sc.host") {
        first.push_str(&format!(" on {host}"));
    }
    if let Some(system) = detail("ci.system") {
        let number = detail("ci.build.number").or(detail("ci.build.id"));
        let number = number.map(|number| format!(" #{number}")).unwrap_or_default();
        first.push_str(&format!(", {system}{number}"));
    }
    let branch = detail("git.headName").map(|name| name.strip_prefix("refs/heads/").unwrap_or(name));
    let commit = detail("git.head").map(|head| {
        let shown: String = head.chars().take(COMMIT_CHARACTERS).collect();
        let branch = branch.map(|branch| format!(" of {branch}")).unwrap_or_default();
        let dirty = if detail("git.dirty") == Some("true") { ", with changes that are not committed" } else { "" };
        format!("commit {shown}{branch}{dirty}")
    });
    let message = entry.message.lines().next().filter(|message| !message.is_empty());
    std::iter::once(first).chain(commit).chain(message.map(str::to_owned)).collect()
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use state::format::UpdateResult;

    use super::*;

    fn update(environment: &[(&str, &str)], message: &str) -> UpdateInfo {
        UpdateInfo {
            kind: UpdateKind::Update,
            start_time: 1_795_222_366,
            message: message.to_owned(),
            environment: environment.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
            config: BTreeMap::new(),
            result: UpdateResult::Succeeded,
            end_time: 1_795_222_378,
            resource_changes: [("create".to_owned(), 2), ("same".to_owned(), 1)].into(),
        }
    }

    /// Shows: state.md#stack-commands "with who ran them and where, the commit, its branch and the message"
    #[test]
    fn updates_are_listed_with_their_origin_in_80_columns() {
        let full = [
            ("sc.user", "ada"),
            ("sc.host", "reefbox"),
            ("ci.system", "GitHub Actions"),
            ("ci.build.number", "12"),
            ("git.head", "1f2e3d4c5b6a79880f1e2d3c4b5a69788796a5b4"),
            ("git.headName", "refs/heads/main"),
            ("git.dirty", "true"),
            ("git.author", "Bea"),
        ];
        let (long, pulumi) = ("x".repeat(100), update(&[("git.author", "Bea")], ""));
        let entries = [&update(&full, &long), &pulumi, &update(&[], "")];
        let lines = listed(&entries, "2026-11-24T12:00:00Z".parse().unwrap());
        assert!(lines.iter().all(|line| line.width() <= WIDTH));
        let text: String = lines.iter().map(|line| line.render(false) + "\n").collect();
        insta::assert_snapshot!(text, @"
        STARTED     DURATION  KIND    RESULT     STEPS
        3 days ago  12s       update  succeeded  2 create, 1 same
          2026-11-21 00:52:46 UTC by ada on reefbox, GitHub Actions #12
          commit 1f2e3d4c of main, with changes that are not committed
          xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
        3 days ago  12s       update  succeeded  2 create, 1 same
          2026-11-21 00:52:46 UTC by Bea
        3 days ago  12s       update  succeeded  2 create, 1 same
          2026-11-21 00:52:46 UTC
        ");
    }
}
