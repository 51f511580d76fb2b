//! `sc stack migrate`: moves the state of stacks to another state storage.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context as _;
use bridge::message_text::MessageText;
use clap::Args;
use config::{Stack, StateStorage};
use provisioner::operation::Stacks;
use state::store::StackReference;
use state::{MigratedStack, MigrationError, MigrationOutcome, StackMigration, StateError};
use tokio_util::sync::CancellationToken;

use crate::cli::access::access_for_change;
use crate::cli::args::{ConfirmArgs, GlobalArgs, LockArgs, StackArgs};
use crate::cli::display::Line;
use crate::cli::exit::Exit;
use crate::cli::migrated;
use crate::cli::output::Output;
use crate::cli::prompt::{Confirmation, confirm, decline};
use crate::cli::stacks::{read_all, read_stack};
use crate::cli::ui::Ui;

/// Move the state of a stack to another state storage
///
/// The state is copied with its history, backups and tags from the state storage that server.yaml names into the one at
/// URL, and compared. The old one stays as it is and is marked: from then on `sc` refuses to use the stack there, because a
/// run would create its resources a second time. (`pulumi` does not know the mark.) Nothing in the cloud is changed, and
/// no passphrase is needed, as secrets stay encrypted as they are. Afterwards, write the new state storage into server.yaml.
///
/// URL has the form of `path` in `state-storage`; a relative folder is one in the repository. The target is opened with
/// the credentials of the environment, as the tools of the cloud find them, never with those in server.yaml. Other users of
/// the machine can see the arguments of a command: leave the password of a database to PGPASSWORD or ~/.pgpass.
///
/// The stack is locked in both; --lock-timeout waits for the lock in the old one only. If the command is interrupted, it
/// continues when it is run again; until then the stack is used where it was. To move it back, let server.yaml name the
/// new state storage, and migrate to the old one.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Move a stack into a bucket:
      sc stack migrate -s aquarium --to 's3://reef-state/team?region=eu-north-1'

  Move all stacks of the repository into a database:
      PGPASSWORD=… sc stack migrate --all --to 'postgres://deployer@db.example.com/reef'

  Move a stack back into a folder of the repository:
      sc stack migrate -s aquarium --to 'file://.sc/state?create_dir=true'")]
pub(crate) struct MigrateArgs {
    /// URL of the new state storage: `file://`, `s3://`, `gs://`, `azblob://` or `postgres://`, with the parameters of server.yaml
    #[arg(long, value_name = "URL")]
    to: String,
    #[command(flatten)]
    stack: StackArgs,
    /// Move all stacks of the repository, one after the other; a failure does not stop the others
    #[arg(long, conflicts_with = "stack")]
    all: bool,
    #[command(flatten)]
    confirm: ConfirmArgs,
    #[command(flatten)]
    lock: LockArgs,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, args: &MigrateArgs) -> anyhow::Result<Exit> {
    let stacks = match args.all {
        true => read_all(ui, global, &args.stack.dir)?,
        false => read_stack(ui, global, &args.stack)?,
    };
    let mut command = MigrateCommand { output: &ui.output, stacks: &stacks, moved: None, exit: Exit::Done };
    let mut planned = Vec::new();
    for stack in stacks.requested() {
        match command.plan(stack, args).await {
            Ok(plan) => planned.extend(plan),
            Err(error) if args.all => command.fail(&stack.name, error),
            Err(error) => return Err(error),
        }
    }
    if !planned.is_empty() {
        let question = question(&planned);
        if confirm(&ui.output, &ui.signals, &CancellationToken::new(), &question, args.confirm.yes).await?
            == Confirmation::No
        {
            return Ok(decline(&ui.output));
        }
    }
    for migration in &planned {
        match command.migrate(migration).await {
            Ok(()) => {}
            Err(error) if args.all => command.fail(migration.source.stack.stack(), error),
            Err(error) => return Err(error),
        }
    }
    if args.all {
        command.report_others(&planned).await?;
    }
    command.report_storage();
    Ok(command.exit)
}

/// Running command.
struct MigrateCommand<'a> {
    output: &'a Output,
    stacks: &'a Stacks,
    /// URL of the target, once a stack has moved there, and whether its folder is private.
    moved: Option<(String, bool)>,
    exit: Exit,
}

impl MigrateCommand<'_> {
    /// Returns the migration of a stack; `None` for a stack that does not move: it is in the target, or, with `--all`, has no
    /// state. Reports such a stack.
    async fn plan(&self, stack: &Arc<Stack>, args: &MigrateArgs) -> anyhow::Result<Option<StackMigration>> {
        let source = access_for_change(self.output, self.stacks, stack, args.lock).await?;
        let opened = self.stacks.migration(stack, source, &args.to).await;
        let migration = opened.context("the state storage that --to names cannot be used")?;
        let (name, source, target) = (&migration.source.stack, &migration.source.store, &migration.target.store);
        if source.location() == target.location() {
            if args.all {
                self.report(
                    name,
                    "skipped",
                    &format!("{name} is in {} already", migration.target_url),
                    &migration,
                    None,
                )?;
                return Ok(None);
            }
            let (stack, location) = (name.clone(), target.location());
            return Err(StateError::from(MigrationError::SameStore { stack, location }).into());
        }
        if let Some(mark) = migration.completed_earlier().await? {
            self.report(name, "moved", &format!("{name} {mark}"), &migration, None)?;
            return Ok(None);
        }
        if args.all
            && source.mark(name).await?.is_none()
            && source.read_checkpoint(name).await?.is_none()
            && !migration.source.has_journal().await?
        {
            self.report(name, "skipped", &format!("{name} has no state yet"), &migration, None)?;
            return Ok(None);
        }
        Ok(Some(migration))
    }

    async fn migrate(&mut self, migration: &StackMigration) -> anyhow::Result<()> {
        let name = &migration.source.stack;
        let outcome = migration.run(&self.stacks.holder()).await?;
        match &outcome {
            MigrationOutcome::Completed(moved) => {
                let text = format!("moved {name} to {}: {}", migration.target_url, contents(moved));
                self.report(name, "moved", &text, migration, Some(moved))?;
            }
            MigrationOutcome::Earlier(mark) => {
                self.report(name, "moved", &format!("{name} {mark}"), migration, None)?
            }
        }
        let storage = self.stacks.requested().find(|stack| stack.name == name.stack());
        let storage = storage.map(|stack| &stack.provisioner.state_storage);
        let is_private = matches!(storage, Some(StateStorage::FileSystem { private: true, .. }));
        self.moved = Some((migration.target_url.clone(), is_private && migration.target_url.starts_with("file:")));
        Ok(())
    }

    fn report(
        &self,
        name: &StackReference,
        result: &str,
        text: &str,
        migration: &StackMigration,
        moved: Option<&MigratedStack>,
    ) -> anyhow::Result<()> {
        if !self.output.results_are_json() {
            self.output.print_messages(&[Line::plain(text)]);
            return Ok(());
        }
        let row = serde_json::json!({
            "stack": name.stack(),
            "project": name.project(),
            "result": result,
            "from": migration.source_url,
            "to": migration.target_url,
            "digest": moved.map(|moved| &moved.digest),
            "historyEntries": moved.map(|moved| moved.history_entries),
            "copies": moved.map(|moved| moved.copies),
            "tags": moved.map(|moved| moved.tags),
        });
        Ok(self.output.print(&[Line::plain(row.to_string())])?)
    }

    /// Reports the failure of one of several stacks.
    fn fail(&mut self, stack: &str, error: anyhow::Error) {
        let exit = self.output.fail(&error.context(format!("the stack {stack} was not moved")));
        if self.exit == Exit::Done {
            self.exit = exit;
        }
    }

    /// Reports stacks in the old state storages that no server.yaml of the repository names.
    async fn report_others(&self, planned: &[StackMigration]) -> anyhow::Result<()> {
        let sources: BTreeMap<String, &StackMigration> =
            planned.iter().map(|migration| (migration.source.store.location(), migration)).collect();
        for (location, migration) in sources {
            let is_known = |other: &StackReference| {
                let mut known = self.stacks.stacks.iter();
                known.any(|stack| {
                    stack.name == other.stack() && (other.project().is_empty() || stack.project == other.project())
                })
            };
            let store = &migration.source.store;
            let mut others = Vec::new();
            for other in store.list().await?.into_iter().filter(|other| !is_known(other)) {
                if store.mark(&other).await?.is_none() {
                    others.push(other.to_string());
                }
            }
            if !others.is_empty() {
                let others = others.join(", ");
                let text =
                    format!("left in {location}, because no server.yaml of this repository names them: {others}");
                self.output.print_messages(&[Line::plain(text)]);
            }
        }
        Ok(())
    }

    /// Reports what to write into server.yaml.
    fn report_storage(&self) {
        if let Some((url, is_private)) = &self.moved {
            let storage = migrated::state_storage(url, *is_private);
            let text = format!("set the state storage in server.yaml before the next command:\n{storage}");
            self.output.print_messages(&text.lines().map(Line::plain).collect::<Vec<_>>());
        }
    }
}

fn question(planned: &[StackMigration]) -> MessageText {
    let [first, others @ ..] = planned else { return MessageText::default() };
    let StackMigration { source, source_url, target_url, .. } = first;
    let mut question = match others {
        [] => MessageText::new(format_args!("Move the state of {} from {source_url} to {target_url}?", source.stack)),
        _ => {
            let line = |migration: &StackMigration| format!("\n  {}: {}", migration.source.stack, migration.source_url);
            let stacks: String = planned.iter().map(line).collect();
            MessageText::new(format_args!("Move the states of {} stacks to {target_url}?{stacks}\n", planned.len()))
        }
    };
    question.push_text(&MessageText::new(format_args!(
        " History, backups and tags move along. The old files stay, with a mark: sc refuses to use the stack there from then on. \
         Nothing in the cloud is changed.{}",
        credentials(target_url)
    )));
    question
}

/// Returns a sentence about the credentials with which the target is opened.
fn credentials(url: &str) -> &'static str {
    match url.split_once("://") {
        Some(("s3", _)) => " The bucket is opened with the credentials that the tools of AWS find here.",
        Some(("gs", _)) => " The bucket is opened with the credentials that the tools of Google Cloud find here.",
        Some(("postgres", _)) => " The database is opened with the password in the URL, PGPASSWORD or ~/.pgpass.",
        _ => "",
    }
}

fn contents(moved: &MigratedStack) -> String {
    let count = |count: usize, one: &str, several: &str| format!("{count} {}", if count == 1 { one } else { several });
    format!(
        "{}, {}, {}",
        count(moved.history_entries, "entry of its history", "entries of its history"),
        count(moved.copies, "earlier state", "earlier states"),
        count(moved.tags, "tag", "tags")
    )
}
