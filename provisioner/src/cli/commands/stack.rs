//! `sc stack`: lists stacks and their graph, and shows, exports, imports, restores, moves, renames and removes their state.

mod change_secrets_provider;
mod graph;
mod history;
mod migrate;
pub(crate) mod outputs;
mod rename;
mod restore;
mod rm;
mod secret_get;
mod tag;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::OpenOptions;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use bridge::fs::{Access, FileError, read_named, read_to_limit, utf8, write_atomically};
use bridge::message_text::MessageText;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use provisioner::operation::key_stack;
use state::store::{MigrationDirection, MigrationMark, StoredJournals};
use state::{
    self, ExportedSecrets, LockSummary, LockedRun, MAX_STATE_BYTES, StackAccess, StackSummary, StackView, StateError,
};

use crate::cli::access::{access, access_for_change, create_buckets, opening_text};
use crate::cli::args::{DirArgs, GlobalArgs, LockArgs, StackArgs};
use crate::cli::display::Line;
use crate::cli::exit::{CliError, Exit};
use crate::cli::listing::{ago, table};
use crate::cli::migrated;
use crate::cli::process::{place_to_write, working_folder};
use crate::cli::stacks::{not_provisioned, only, read_all_of_states, read_stack, read_stack_of_state};
use crate::cli::ui::Ui;
use crate::cli::waits::show_while;

/// Manage stacks: list, graph, outputs, export, import, history, restore, migrate, rename, remove, tag
#[derive(Debug, Args)]
pub(crate) struct StackCommand {
    #[command(subcommand)]
    pub(crate) verb: StackVerb,
}

/// Subcommands of `sc stack`.
#[derive(Debug, Subcommand)]
pub(crate) enum StackVerb {
    /// List the stacks with their number of resources, last update and status
    ///
    /// The status shows runs that are active, interrupted runs and pending operations, and where a stack has moved. A run counts as ended if its
    /// process has, or if it has not renewed its lock in time. No passphrase is needed. A stack whose state
    /// cannot be read is listed as unreadable, and its error is printed after the list.
    #[command(visible_alias = "list")]
    Ls(LsArgs),
    Graph(graph::GraphArgs),
    #[command(visible_alias = "output")]
    Outputs(outputs::OutputsArgs),
    Export(ExportArgs),
    Import(ImportArgs),
    History(history::HistoryArgs),
    Restore(restore::RestoreArgs),
    ChangeSecretsProvider(change_secrets_provider::ChangeSecretsProviderArgs),
    Migrate(migrate::MigrateArgs),
    Rename(rename::RenameArgs),
    Rm(rm::RmArgs),
    SecretGet(secret_get::SecretGetArgs),
    Tag(tag::TagCommand),
}

/// Arguments of `sc stack ls`.
#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    #[command(flatten)]
    pub(crate) dir: DirArgs,
}

/// Export the state of a stack in the format of `pulumi stack import`
///
/// Secrets stay encrypted unless --show-secrets is given. The journal of an interrupted run is merged into the export.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Move a stack to pulumi:
      sc stack export -s aquarium | pulumi stack import --stack aquarium")]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) stack: StackArgs,
    /// File to write to instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Export secrets in plaintext
    #[arg(long)]
    pub(crate) show_secrets: bool,
}

/// Replace the state of a stack with an export of `sc` or `pulumi`
///
/// All secrets, including those in plaintext, are encrypted with the secrets provider that the export names. Pending
/// operations are dropped. Resolve them first with `pulumi refresh` or `sc refresh`. The previous state is kept as a
/// backup (`.bak`), and the history gets no entry.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Move a stack from pulumi:
      pulumi stack export --stack aquarium | sc stack import -s aquarium
  Edit a state by hand:
      sc stack export -s aquarium -f state.json; $EDITOR state.json; sc stack import -s aquarium -f state.json")]
pub(crate) struct ImportArgs {
    #[command(flatten)]
    pub(crate) stack: StackArgs,
    /// File to read from instead of standard input
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Import the state even if it is invalid or has resources of another stack
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) lock: LockArgs,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, command: &StackCommand) -> anyhow::Result<Exit> {
    match &command.verb {
        StackVerb::Ls(args) => list(ui, global, args).await,
        StackVerb::Graph(args) => graph::run(ui, global, args).await,
        StackVerb::Outputs(args) => outputs::run(ui, global, args).await,
        StackVerb::Export(args) => export(ui, global, args).await,
        StackVerb::Import(args) => import(ui, global, args).await,
        StackVerb::History(args) => history::run(ui, global, args).await,
        StackVerb::Restore(args) => restore::run(ui, global, args).await,
        StackVerb::ChangeSecretsProvider(args) => change_secrets_provider::run(ui, global, args).await,
        StackVerb::Migrate(args) => migrate::run(ui, global, args).await,
        StackVerb::Rename(args) => rename::run(ui, global, args).await,
        StackVerb::Rm(args) => rm::run(ui, global, args).await,
        StackVerb::SecretGet(args) => secret_get::run(ui, global, args),
        StackVerb::Tag(command) => tag::run(ui, global, command).await,
    }
}

/// Row of `sc stack ls`.
struct StackRow {
    stack: String,
    project: String,
    /// Summary of the state; `None` if the state cannot be read.
    summary: Option<StackSummary>,
}

async fn list(ui: &Ui, global: &GlobalArgs, args: &LsArgs) -> anyhow::Result<Exit> {
    let stacks = read_all_of_states(ui, global, &args.dir)?;
    let (mut stack_rows, mut unreadable, mut journals) = (Vec::new(), Vec::new(), BTreeMap::new());
    // A stack and that of its key, which no file declares.
    let listed = stacks.stacks.iter().flat_map(|stack| [Some(Arc::clone(stack)), key_stack(stack)]).flatten();
    for stack in listed {
        let summary = match access(&ui.output, &stacks, &stack).await {
            Ok(access) => {
                let summarized = summarize(&access, &mut journals);
                show_while(&ui.output, &opening_text(&stack.name), summarized).await.map_err(anyhow::Error::from)
            }
            Err(error) => Err(error),
        };
        let summary = match summary {
            Ok(summary) => Some(summary),
            Err(error) => {
                unreadable.push(error.context(format!("the stack {} cannot be read", stack.name)));
                None
            }
        };
        if stack.key_of.is_some() && summary.as_ref().is_some_and(is_absent) {
            continue;
        }
        stack_rows.push(StackRow { stack: stack.name.clone(), project: stack.project.clone(), summary });
    }
    let lines = if ui.output.results_are_json() {
        stack_rows.iter().map(|row| Line::plain(row.as_json())).collect()
    } else {
        let rows: Vec<Vec<String>> = stack_rows.iter().map(|row| row.as_row(stacks.process_context.now)).collect();
        table(&["STACK", "PROJECT", "RESOURCES", "UPDATED", "STATUS"], &rows)
    };
    ui.output.print(&lines)?;
    let late = stack_rows.iter().filter_map(|row| row.summary.as_ref()).map(|summary| &summary.late);
    late.filter(|late| !late.is_empty()).for_each(|late| ui.output.warn(MessageText::of(late)));
    // Unreadable stacks do not prevent the list; their errors follow it.
    let exits: Vec<Exit> = unreadable.iter().map(|error| ui.output.fail(error)).collect();
    Ok(exits.first().copied().unwrap_or(Exit::Done))
}

/// Summarizes a stack. The journals of each store are listed once, and kept by its location.
async fn summarize(
    access: &StackAccess,
    listed: &mut BTreeMap<String, StoredJournals>,
) -> Result<StackSummary, StateError> {
    let journals = match listed.entry(access.store.location()) {
        Entry::Occupied(entry) => entry.into_mut(),
        Entry::Vacant(entry) if access.journals.is_remote() => entry.insert(access.store.stored_journals().await?),
        Entry::Vacant(entry) => entry.insert(StoredJournals::default()),
    };
    state::summary(access, journals).await
}

/// Returns whether nothing of a stack is in its store.
fn is_absent(summary: &StackSummary) -> bool {
    summary.resources.is_none() && !summary.is_locked() && !summary.is_interrupted && summary.mark.is_none()
}

impl StackRow {
    fn as_row(&self, now: Timestamp) -> Vec<String> {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        vec![
            self.stack.clone(),
            self.project.clone(),
            or_dash(self.resources().map(|count| count.to_string())),
            or_dash(self.updated().map(|time| time.parse().map_or(time, |parsed| ago(parsed, now)))),
            self.status(),
        ]
    }

    fn as_json(&self) -> String {
        serde_json::json!({
            "stack": self.stack,
            "project": self.project,
            "resources": self.resources(),
            "updated": self.updated(),
            "locked": self.summary.as_ref().map(StackSummary::is_locked),
            "lockedBy": self.lock().and_then(|lock| lock.by.as_deref()),
            "run": self.lock().map(|lock| name_of(lock.run)),
            "interrupted": self.summary.as_ref().map(|summary| summary.is_interrupted),
            "pendingOperations": self.summary.as_ref().map(|summary| summary.pending_operations),
            "pendingCreates": self.summary.as_ref().map(|summary| summary.pending_creates),
            "movedTo": self.url_of_mark(MigrationDirection::To),
            "migratedFrom": self.url_of_mark(MigrationDirection::From),
            "renamedTo": self.url_of_mark(MigrationDirection::Renamed),
        })
        .to_string()
    }

    /// Returns what distinguishes the stack from one that is ready for a run.
    fn status(&self) -> String {
        let Some(summary) = &self.summary else { return "unreadable".to_owned() };
        let by = summary.lock.as_ref().and_then(|lock| lock.by.as_deref()).unwrap_or("an unknown holder");
        let lock = match (summary.lock.as_ref().map(|lock| lock.run), summary.is_interrupted) {
            (Some(LockedRun::Active), _) => Some(format!("running: {by}")),
            (Some(LockedRun::Ended), true) | (None, true) => Some("interrupted".to_owned()),
            (Some(LockedRun::Ended), false) => Some("lock of an ended run".to_owned()),
            (Some(LockedRun::Unknown), true) => Some(format!("locked by {by}, may be interrupted")),
            (Some(LockedRun::Unknown), false) => Some(format!("locked by {by}")),
            (None, false) => None,
        };
        let count = |count: usize, one: &str| match count {
            0 => None,
            1 => Some(format!("1 {one}")),
            _ => Some(format!("{count} {one}s")),
        };
        let creates = count(summary.pending_creates, "pending create");
        let others = count(summary.pending_operations - summary.pending_creates, "other pending operation");
        let mark = self.mark().map(migrated::status);
        let status: Vec<String> = [mark, lock, creates, others].into_iter().flatten().collect();
        if status.is_empty() { "-".to_owned() } else { status.join(", ") }
    }

    fn lock(&self) -> Option<&LockSummary> {
        self.summary.as_ref()?.lock.as_ref()
    }

    fn mark(&self) -> Option<&MigrationMark> {
        self.summary.as_ref()?.mark.as_ref()
    }

    fn url_of_mark(&self, direction: MigrationDirection) -> Option<&str> {
        Some(self.mark().filter(|mark| mark.direction == direction)?.url.as_str())
    }

    fn resources(&self) -> Option<usize> {
        self.summary.as_ref()?.resources
    }

    fn updated(&self) -> Option<String> {
        self.summary.as_ref()?.updated.clone()
    }
}

/// Returns the word of `--json` for what is known about the run that holds a lock.
fn name_of(run: LockedRun) -> &'static str {
    match run {
        LockedRun::Active => "active",
        LockedRun::Ended => "ended",
        LockedRun::Unknown => "unknown",
    }
}

async fn export(ui: &Ui, global: &GlobalArgs, args: &ExportArgs) -> anyhow::Result<Exit> {
    let stacks = read_stack_of_state(ui, global, &args.stack)?;
    let access = access(&ui.output, &stacks, only(&stacks)?).await?;
    let secrets = if args.show_secrets { ExportedSecrets::Plaintext } else { ExportedSecrets::Encrypted };
    let exported = StackView::export(&access, secrets);
    let Some(deployment) = show_while(&ui.output, &opening_text(access.stack.stack()), exported).await? else {
        return Err(not_provisioned(&access.stack).into());
    };
    match &args.file {
        Some(file) => {
            let file = place_to_write(&working_folder(global.cwd.as_deref())?, file)?;
            write_export(&file, deployment.as_bytes())?;
        }
        None => ui.output.print_text(&deployment)?,
    }
    Ok(Exit::Done)
}

/// Writes a private file, or into an existing pipe or device.
fn write_export(path: &Path, content: &[u8]) -> Result<(), FileError> {
    if std::fs::metadata(path).map_or(true, |found| found.is_file()) {
        return write_atomically(path, content, Access::Private);
    }
    let opened = OpenOptions::new().write(true).open(path);
    opened.and_then(|mut file| file.write_all(content)).map_err(FileError::of("write", path))
}

async fn import(ui: &Ui, global: &GlobalArgs, args: &ImportArgs) -> anyhow::Result<Exit> {
    let stacks = read_stack(ui, global, &args.stack)?;
    create_buckets(&ui.output, &stacks).await?;
    let access = access_for_change(&ui.output, &stacks, only(&stacks)?, args.lock).await?;
    let text = match &args.file {
        Some(file) => {
            let file = working_folder(global.cwd.as_deref())?.join(file);
            let text = read_named(&file, MAX_STATE_BYTES).map_err(|error| error.source).and_then(utf8);
            text.with_context(|| format!("{} cannot be read", file.display()))?
        }
        None if std::io::stdin().is_terminal() => {
            let hint = "name a file with --file, or pipe an export into this command";
            return Err(CliError::usage("no export to import: standard input is a terminal", hint).into());
        }
        None => {
            let text = read_to_limit(std::io::stdin().lock(), MAX_STATE_BYTES).and_then(utf8);
            text.context("standard input cannot be read")?
        }
    };
    let what = format!("saving the state of {}", access.stack.stack());
    let holder = stacks.holder();
    let imported = show_while(&ui.output, &what, state::import(&access, &holder, &text, args.force)).await?;
    for problem in &imported.problems {
        ui.output.warn(MessageText::of(&problem));
    }
    for (kind, urn) in &imported.dropped {
        ui.output.warn(format_args!("dropped a pending operation: {} {urn}", kind.as_str()));
    }
    let (name, resources) = (access.stack.stack(), imported.resources);
    if ui.output.results_are_json() {
        ui.output.print(&[Line::plain(serde_json::json!({ "stack": name, "resources": resources }).to_string())])?;
    } else {
        let what = if resources == 1 { "1 resource".to_owned() } else { format!("{resources} resources") };
        ui.output.print_messages(&[Line::plain(format!("imported {what} as the state of {name}"))]);
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use state::LateReport;

    use super::*;

    /// Shows: state.md#recorded-resources "with locks, interrupted runs, pending creates and other pending operations"
    #[test]
    fn status_of_a_stack_names_its_lock_and_pending_operations() {
        let status = |run: Option<LockedRun>, is_interrupted, pending_operations, pending_creates| {
            let updated = Some("2026-11-21T00:49:38.8Z".to_owned());
            let summary = StackSummary {
                resources: Some(3),
                updated,
                lock: run.map(|run| LockSummary { by: Some("ada@reefbox".to_owned()), run }),
                is_interrupted,
                pending_operations,
                pending_creates,
                late: LateReport::default(),
                mark: None,
            };
            let row = StackRow { stack: "dev".to_owned(), project: "reef".to_owned(), summary: Some(summary) };
            row.as_row("2026-11-21T00:52:38Z".parse().unwrap())[3..].join(" | ")
        };
        let (active, ended, unknown) = (Some(LockedRun::Active), Some(LockedRun::Ended), Some(LockedRun::Unknown));
        let table = [
            (status(None, false, 0, 0), "-"),
            (status(active, true, 1, 1), "running: ada@reefbox, 1 pending create"),
            (status(active, false, 0, 0), "running: ada@reefbox"),
            (status(ended, true, 0, 0), "interrupted"),
            (status(ended, false, 0, 0), "lock of an ended run"),
            (status(unknown, true, 1, 1), "locked by ada@reefbox, may be interrupted, 1 pending create"),
            (status(unknown, false, 1, 0), "locked by ada@reefbox, 1 other pending operation"),
            (status(None, true, 3, 1), "interrupted, 1 pending create, 2 other pending operations"),
        ];
        for (shown, expected) in table {
            assert_eq!(shown, format!("3 minutes ago | {expected}"));
        }
    }
}
