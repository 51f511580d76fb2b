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
use crate::cli::prompt::{Confirmation, confirm};
use crate::cli::runs::holder;
use crate::cli::stacks::read_stack;
use crate::cli::ui::Ui;

/// Rename the state of a stack
///
/// The URNs of its resources are renamed in the state, and nothing in the cloud is changed. The history moves to the
/// new name; tags, backups and the previous state (`.bak`) stay under the old name. `Pulumi.<stack>.yaml` is renamed if
/// it exists.
///
/// A stack has the name of the folder of its server.yaml, and the project of the profile. Also rename that folder (or
/// change `projectName`) and references to the stack (`inherit`, `parentStack`): otherwise the next provision creates
/// everything again under the old name. A key such as `web--prod` contains the environment, not the stack, and stays.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Rename the stack aquarium to reef:
      sc stack rename -s aquarium reef && git mv .sc/stacks/aquarium .sc/stacks/reef

  Rename it and move it to the project shore:
      sc stack rename -s aquarium organization/shore/reef")]
pub(crate) struct RenameArgs {
    /// New name, or `organization/PROJECT/NAME`
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
    let (from, to) = (&access.stack, parse_new_name(&args.name, &access.stack)?);
    let [old_file, new_file] = [from, &to].map(|stack| settings_file(&stacks.repository.root, stack.stack()));
    check_no_overwrite(&old_file, &new_file)?;
    let question = format!("Rename the state of {from} to {to}? Nothing in the cloud is changed.");
    if confirm(ui, &CancellationToken::new(), &question, args.confirm.yes).await? == Confirmation::No {
        ui.print_messages(&[Line::plain("the stack was not renamed")]);
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
    ui.print_messages(&[Line::plain(format!("renamed {from} to {to}"))]);
    if from.stack() != to.stack() {
        ui.warn(&format!("rename the folder of its server.yaml to {} before the next provision", to.stack()));
    }
    if from.project() != to.project() {
        ui.warn(&format!("set `projectName: {}` in the profile before the next provision", to.project()));
    }
    Ok(Exit::Done)
}

/// Parses the new name.
fn parse_new_name(name: &str, from: &StackReference) -> Result<StackReference, CliError> {
    let hint = "give a name such as reef, or organization/PROJECT/NAME";
    let to = StackReference::parse(name, from.project()).map_err(|error| CliError::usage(error.to_string(), hint))?;
    if to == *from {
        return Err(CliError::usage(format!("the stack already has the name {from}"), "give a different name"));
    }
    Ok(to)
}

/// Checks that the rename does not overwrite the stack file of the new name.
fn check_no_overwrite(old: &Path, new: &Path) -> Result<(), CliError> {
    if old == new || !old.exists() || !new.exists() {
        return Ok(());
    }
    let message = format!("{} already exists, and {} would overwrite it", new.display(), old.display());
    Err(CliError::failed(message, "remove or move one of them"))
}

#[expect(clippy::disallowed_methods, reason = "a rename does not write the file")]
fn rename_file(old: &PathBuf, new: &PathBuf) -> anyhow::Result<()> {
    let renamed = std::fs::rename(old, new);
    renamed.with_context(|| {
        format!("the stack was renamed, but {} could not be renamed; rename it by hand", old.display())
    })
}
