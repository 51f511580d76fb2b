//! `sc stack rename`: renames the state of a stack.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use state::store::StackReference;
use tokio_util::sync::CancellationToken;

use crate::cli::access::{access, settings_file};
use crate::cli::args::{ConfirmArgs, GlobalArgs, StackArgs};
use crate::cli::display::Line;
use crate::cli::exit::{CliError, Exit};
use crate::cli::prompt::{Answer, confirm};
use crate::cli::runs::holder;
use crate::cli::stacks::read_stack;
use crate::cli::ui::Ui;

/// Give the state of a stack another name
///
/// Its resources are named anew in the state, and nothing in the cloud is touched. The history moves; tags, backups and
/// the state before (`.bak`) stay under the old name. `Pulumi.<stack>.yaml` is renamed if there is one.
///
/// A stack is called as the folder of its server.yaml, in the project that the profile names. Rename that folder as
/// well (or `projectName`), and whatever names the stack (`inherit`, `parentStack`): else the next provision makes
/// everything anew under the old name. A key such as `web--prod` holds the environment, not the stack, and stays.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Call the stack aquarium reef from now on:
      sc stack rename -s aquarium reef && git mv .sc/stacks/aquarium .sc/stacks/reef

  Move it to the project shore, too:
      sc stack rename -s aquarium organization/shore/reef")]
pub(crate) struct RenameArgs {
    /// The new name, or `organization/PROJECT/NAME`
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    stack: StackArgs,
    #[command(flatten)]
    confirm: ConfirmArgs,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, args: &RenameArgs) -> anyhow::Result<Exit> {
    let stacks = read_stack(ui, global, &args.stack)?;
    let access = access(&stacks, stacks.only()?).await?;
    let (from, to) = (&access.stack, target(&args.name, &access.stack)?);
    let [old_file, new_file] = [from, &to].map(|stack| settings_file(&stacks.repository.root, stack.stack()));
    refuse_second_file(&old_file, &new_file)?;
    let question = format!("Rename the state {from} to {to}? Nothing in the cloud is touched.");
    if confirm(ui, &CancellationToken::new(), &question, args.confirm.yes).await? == Answer::No {
        ui.say(&[Line::plain("the stack keeps its name")]);
        return Ok(Exit::Canceled);
    }
    state::rename_stack(&access, &holder(&stacks), &to).await?;
    if old_file != new_file && old_file.exists() {
        rename_file(&old_file, &new_file)?;
    }
    if ui.results_are_json() {
        let renamed = serde_json::json!({ "stack": from.to_string(), "renamed": to.to_string() });
        ui.print(&[Line::plain(renamed.to_string())])?;
        return Ok(Exit::Done);
    }
    ui.say(&[Line::plain(format!("{from} is now {to}"))]);
    if from.stack() != to.stack() {
        ui.warn(&format!("rename the folder of its server.yaml to {} before the next provision", to.stack()));
    }
    if from.project() != to.project() {
        ui.warn(&format!("write `projectName: {}` into the profile before the next provision", to.project()));
    }
    Ok(Exit::Done)
}

/// Parses the new name.
fn target(name: &str, from: &StackReference) -> Result<StackReference, CliError> {
    let hint = "give a name such as reef, or organization/PROJECT/NAME";
    let to = StackReference::parse(name, from.project()).map_err(|error| CliError::usage(error.to_string(), hint))?;
    if to == *from {
        return Err(CliError::usage(format!("{from} is called so already"), "give another name"));
    }
    Ok(to)
}

/// Refuses to overwrite the stack file of the new name.
fn refuse_second_file(old: &Path, new: &Path) -> Result<(), CliError> {
    if old == new || !old.exists() || !new.exists() {
        return Ok(());
    }
    let message = format!("{} is there already, and {} would take its place", new.display(), old.display());
    Err(CliError::failed(message, "put one of them away"))
}

#[allow(clippy::disallowed_methods, reason = "the file is whole already")]
fn rename_file(old: &PathBuf, new: &PathBuf) -> anyhow::Result<()> {
    let renamed = std::fs::rename(old, new);
    renamed.with_context(|| format!("the stack was renamed, but {} could not be: do it by hand", old.display()))
}
