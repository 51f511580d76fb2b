//! `sc secrets edit`: changes a file of the store in an editor.

use std::path::Path;

use bridge::fs::{Access, MAX_DOCUMENT_BYTES, read_named, write_atomically};
use bridge::message_text::MessageText;
use clap::Args;
use secrets_store::edit::Edit;
use secrets_store::keys::OwnKeys;
use zeroize::Zeroizing;

use super::confirmations::AcceptArgs;
use super::session::{Edited, SecretsSession};
use crate::cli::editor;
use crate::cli::exit::{CliError, Exit};
use crate::cli::plaintext::PlaintextFolder;
use crate::cli::process::process_context;

/// Edit a file of the store in $EDITOR, and encrypt it again
///
/// The plain text is in a folder for you alone, in memory where the system has one (`XDG_RUNTIME_DIR`, `/dev/shm`), and is removed with
/// all that the editor leaves beside it when the editor ends; after a kill, by the next command. The file need not be revealed: one that is
/// on the disk is changed as well, and must have the text of the store. Other registered files are not touched.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Change the secrets of a stack:
      sc secrets edit .sc/stacks/common/secrets.yaml

  With an editor that opens a window:
      EDITOR='code --wait' sc secrets edit .sc/stacks/common/secrets.yaml")]
pub(crate) struct EditArgs {
    /// Registered file
    #[arg(value_name = "PATH")]
    path: String,
    #[command(flatten)]
    accept: AcceptArgs,
}

/// Runs the command.
pub(super) async fn run(session: &SecretsSession<'_>, args: &EditArgs) -> anyhow::Result<Exit> {
    let (ui, environment) = (session.ui, process_context().environment);
    let mut keys = session.keys()?;
    let text = |keys: &OwnKeys| Edit::text(&session.file, &args.path, keys);
    let (path, before) = session.with_passphrase(&mut keys, text).await?;
    let folder = PlaintextFolder::new(&environment)?;
    // The name tells the editor the kind of the file.
    let name = Path::new(&path).file_name().unwrap_or_default();
    let file = folder.scratch.path().join(name);
    write_atomically(&file, &before, Access::Private)?;
    if !folder.is_in_memory {
        ui.output.inform(format_args!(
            "the plain text is in {} until the editor ends: this system has no folder in memory",
            folder.scratch.path().display()
        ));
    }
    if editor::edit(ui, &environment, &file).await?.is_none() {
        return Ok(Exit::Canceled);
    }
    let after = read_named(&file, MAX_DOCUMENT_BYTES).map(Zeroizing::new).map_err(|error| {
        let message = MessageText::new(format_args!("the edited file cannot be read: {}", error.source));
        CliError::failed(message, "nothing was changed")
    })?;
    drop(folder);
    if after == before {
        session.report(format!("{path} was not changed"));
        return Ok(Exit::Done);
    }
    // The user has made the changes: only what the store lists is asked about.
    let prepare = |keys: &OwnKeys| Edit::replace(&session.file, &path, &before, &after, keys);
    Ok(match session.edit(&mut keys, true, &args.accept, prepare).await? {
        Edited::Declined => Exit::Failed,
        Edited::Committed(_) => {
            session.report(format!("encrypted {path}"));
            Exit::Done
        }
    })
}
