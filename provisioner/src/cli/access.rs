//! Access to the state of a stack, for commands.

use std::sync::Arc;

use bridge::message_text::MessageText;
use config::Stack;
use provisioner::operation::Stacks;
use state::{LockSettings, LockWait, StackAccess};

use super::args::LockArgs;
use super::lock_process::LockProcess;
use super::output::Output;
use super::stacks::configuration_error;
use super::waits::show_while;

/// Returns the access to the state of a stack for a command that does not wait for locks. Completes or undoes a rename of
/// the stack, or a move of its resources, that was interrupted, and warns of it.
///
/// # Errors
/// Returns the errors of [`Stacks::access`].
pub(crate) async fn access(output: &Output, stacks: &Stacks, stack: &Stack) -> anyhow::Result<StackAccess> {
    access_for_change(output, stacks, stack, LockArgs::default()).await
}

/// Returns what a command does that reads or changes the state of a stack without a run.
pub(crate) fn opening_text(stack: &str) -> String {
    format!("reading the state of {stack}")
}

/// Returns the access to the state of a stack for a command that locks it: like [`access`], but waits for locks.
///
/// # Errors
/// Returns the errors of [`Stacks::access`].
pub(crate) async fn access_for_change(
    output: &Output,
    stacks: &Stacks,
    stack: &Stack,
    lock: LockArgs,
) -> anyhow::Result<StackAccess> {
    let configure = |locks: &mut LockSettings| {
        let (warning, waiting) = (output.clone(), output.clone());
        locks.report = Arc::new(move |lock| warning.warn(MessageText::of(&lock)));
        locks.wait = LockWait {
            limit: lock.lock_timeout.unwrap_or_default(),
            describe: |lock| LockProcess::of(lock).text(),
            report: Arc::new(move |locks| waiting.inform(MessageText::of(&locks))),
            ..LockWait::default()
        };
    };
    let opened = stacks.access(stack, configure);
    let (access, resumed) = show_while(output, &opening_text(&stack.name), opened).await?;
    resumed.texts().for_each(|text| output.warn(text));
    Ok(access)
}

/// Creates the buckets of the requested stacks' state storages that ask for it and are not there, before a run that records
/// changes.
///
/// # Errors
/// Returns the errors of [`Stacks::create_bucket`].
pub(crate) async fn create_buckets(output: &Output, stacks: &Stacks) -> anyhow::Result<()> {
    for stack in stacks.requested() {
        if let Some(url) = stacks.create_bucket(stack).await? {
            output.inform(format_args!("created the bucket {url} for the state of {}", stack.name));
        }
    }
    Ok(())
}

/// Checks that a passphrase is given for each requested stack, before a run that records changes.
///
/// # Errors
/// A stack has no passphrase; the reasons have been printed.
pub(crate) fn check_passphrases(output: &Output, stacks: &Stacks) -> anyhow::Result<()> {
    let found = stacks.check_passphrases();
    if found.is_empty() { Ok(()) } else { Err(configuration_error(output, &found, &stacks.sources)) }
}
