//! Access to the state of a stack, for commands.

use std::sync::Arc;

use config::Stack;
use provisioner::operation::Stacks;
use state::StackAccess;

use super::stacks::configuration_error;
use super::ui::Ui;

/// Returns the access to the state of a stack. Completes or undoes a rename of the stack that was interrupted, and warns of
/// it.
///
/// # Errors
/// Returns the errors of [`Stacks::access`].
pub(crate) async fn access(ui: &Ui, stacks: &Stacks, stack: &Stack) -> anyhow::Result<StackAccess> {
    let shown = ui.clone();
    let (access, resumed) = stacks.access(stack, Arc::new(move |lock| shown.warn(&lock.to_string()))).await?;
    if let Some(rename) = resumed {
        ui.warn(&rename.to_string());
    }
    Ok(access)
}

/// Checks that a passphrase is given for each requested stack, before a run that records changes.
///
/// # Errors
/// A stack has no passphrase; the reasons have been printed.
pub(crate) fn check_passphrases(ui: &Ui, stacks: &Stacks) -> anyhow::Result<()> {
    let found = stacks.check_passphrases();
    if found.is_empty() { Ok(()) } else { Err(configuration_error(ui, &found, &stacks.sources)) }
}
