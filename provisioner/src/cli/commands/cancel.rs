//! `sc cancel`: removes the lock of an interrupted run.

use clap::Args;
use state::store::LockInfo;
use state::{StackAccess, StateError};
use tokio_util::sync::CancellationToken;

use crate::cli::args::{ConfirmArgs, GlobalArgs, StackArgs};
use crate::cli::display::Line;
use crate::cli::exit::Exit;
use crate::cli::lock_process::LockProcess;
use crate::cli::output::Output;
use crate::cli::prompt::{Confirmation, confirm, decline};
use crate::cli::stacks::{only, read_stack_of_state};
use crate::cli::ui::Ui;

/// Remove the lock of an interrupted run
///
/// Shows the holder of the lock, and whether its process runs on this host, and asks for confirmation. Make sure that
/// the run has ended: without its lock, a run that is still active can no longer save its state. A lock that another
/// run takes in the meantime is not removed; the exit code is 4 then.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Unlock a stack after the machine of a run was lost:
      sc cancel -s aquarium")]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    pub(crate) stack: StackArgs,
    /// The stack that `sc provision` created; the default
    #[arg(long, hide = true)]
    pub(crate) parent: bool,
    #[command(flatten)]
    pub(crate) confirm: ConfirmArgs,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, args: &CancelArgs) -> anyhow::Result<Exit> {
    let stacks = read_stack_of_state(ui, global, &args.stack)?;
    let access = stacks.open_access(only(&stacks)?).await?;
    let StackAccess { store, stack, .. } = &access;
    let held = store.locks(stack).await?;
    if held.is_empty() {
        ui.output.print_messages(&[Line::plain(format!("{} is not locked", stack.stack()))]);
        report_journal(&ui.output, &access).await?;
        return Ok(Exit::Done);
    }
    ui.output.print_messages(&[Line::plain(format!("{} is locked:", stack.stack()))]);
    for lock in &held {
        let process = LockProcess::of(lock).text().map(|text| Line::plain(format!("    {text}")));
        let lines = std::iter::once(Line::plain(format!("  {lock}"))).chain(process);
        ui.output.print_messages(&lines.collect::<Vec<_>>());
    }
    let question = "Remove the lock? Make sure that the run has ended.";
    match confirm(&ui.output, &ui.signals, &CancellationToken::new(), question, args.confirm.yes).await? {
        Confirmation::No => Ok(decline(&ui.output)),
        Confirmation::Yes => {
            let exit = remove_locks(&ui.output, &access, &held, &stacks.holder().hostname).await?;
            report_journal(&ui.output, &access).await?;
            Ok(exit)
        }
    }
}

/// Removes the locks that were shown to the user. A lock that another run has taken since stays and is reported: the
/// user has not been asked about it.
async fn remove_locks(
    output: &Output,
    access: &StackAccess,
    shown: &[LockInfo],
    host: &str,
) -> Result<Exit, StateError> {
    let StackAccess { store, stack, .. } = access;
    let removed = state::break_locks(access, shown, host).await?;
    let name = stack.stack();
    let text = match removed.len() {
        0 => format!("{name} was unlocked in the meantime"),
        1 => format!("removed the lock of {name}"),
        count => format!("removed {count} locks of {name}"),
    };
    output.print_messages(&[Line::plain(text)]);
    let others = store.locks(stack).await?;
    if others.is_empty() {
        return Ok(Exit::Done);
    }
    let holders: String = others.iter().map(|holder| format!("\n{holder}")).collect();
    output.warn(format_args!("another run has locked {name} in the meantime; its lock was not removed:{holders}"));
    Ok(Exit::Locked)
}

/// Reports the journal of an interrupted run, as `pulumi` does not read it.
async fn report_journal(output: &Output, access: &StackAccess) -> Result<(), StateError> {
    if access.has_journal().await? {
        let text = "an interrupted run left a journal: before using `pulumi` on the stack, run `sc refresh`, which merges the \
                    journal into the state or reports why it cannot";
        output.print_messages(&[Line::plain(text)]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use clap::Parser as _;
    use state::secrets::Keyring;
    use state::store::{FileUrl, LockHolder, StackReference, StateStore, StoreOptions};
    use state::{JournalFolders, LockSettings};

    use super::*;
    use crate::cli::commands::Cli;
    use crate::cli::output::StreamProperties;

    fn access_of(store: StateStore, stack: StackReference, folder: &Path) -> StackAccess {
        StackAccess {
            store,
            stack,
            keyring: Arc::new(Keyring::new(None)),
            configured_secrets: None,
            config: Default::default(),
            journals: JournalFolders::of_backend(folder),
            journal_mode: Default::default(),
            unrecorded: Default::default(),
            locks: LockSettings::default(),
            begins_anew: false,
            engine_version: String::new(),
        }
    }

    /// Shows: state.md#a-run "It removes only the locks that it has shown"
    #[tokio::test]
    async fn lock_that_was_not_shown_is_not_removed() {
        let cli = Cli::try_parse_from(["sc", "cancel"]).unwrap();
        let output = Output::new(&cli.global, &StreamProperties::default());
        let folder = tempfile::tempdir().unwrap();
        let store =
            StateStore::open_folder(&FileUrl::parse("file://.", folder.path(), None).unwrap(), StoreOptions::default())
                .await
                .unwrap();
        let stack = StackReference::new("reef", "dev").unwrap();
        let holder =
            |pid| LockHolder { pid, username: String::new(), hostname: String::new(), process: None, lease: None };
        let access = access_of(store.clone(), stack.clone(), folder.path());
        let ended = store.lock(&stack, &holder(1)).await.unwrap();
        let shown = store.locks(&stack).await.unwrap();
        store.unlock(ended).await.unwrap();
        let _active = store.lock(&stack, &holder(2)).await.unwrap();
        let active = store.locks(&stack).await.unwrap();

        assert_eq!(remove_locks(&output, &access, &shown, "reefbox").await.unwrap(), Exit::Locked);
        assert_eq!(store.locks(&stack).await.unwrap(), active);
        assert_eq!(remove_locks(&output, &access, &active, "reefbox").await.unwrap(), Exit::Done);
        assert_eq!(store.locks(&stack).await.unwrap(), []);
    }
}
