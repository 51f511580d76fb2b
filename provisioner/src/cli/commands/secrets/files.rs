//! `sc secrets add`, `delete` and `hide`: the registered files.

use clap::Args;
use config::Profile;
use secrets_store::edit::Edit;
use secrets_store::keys::OwnKeys;

use super::confirmations::AcceptArgs;
use super::session::{Edited, SecretsSession};
use crate::cli::args::ConfirmArgs;
use crate::cli::exit::Exit;
use crate::cli::process::process_context;

/// Register a file, encrypt it, and add it to .gitignore
///
/// The file is encrypted for all keys that are allowed, and for the key of the profile, which becomes one of them.
/// Its lines are shown first and must be accepted, unless --yes is given. Other registered files that have changed
/// are encrypted, too. What the store lists and you have not confirmed yet is asked about first, as `sc secrets hide`
/// does; --yes is no reply to that.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Keep the secrets of a stack in the store:
      sc secrets add .sc/stacks/common/secrets.yaml")]
pub(crate) struct AddArgs {
    /// File to register; the path starts at the root of the repository
    #[arg(value_name = "PATH")]
    path: String,
    #[command(flatten)]
    accept: AcceptArgs,
    #[command(flatten)]
    confirm: ConfirmArgs,
}

/// Remove a file from the store and from .gitignore
///
/// The file stays on the disk, unless --file is given. Its encrypted text stays in the history of git: replace the
/// secrets that must not be known any longer.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Remove a file from the store and from the disk:
      sc secrets delete --file old.env")]
pub(crate) struct DeleteArgs {
    /// Registered file
    #[arg(value_name = "PATH")]
    path: String,
    /// Delete the file on the disk, too
    #[arg(short, long)]
    file: bool,
}

/// Encrypt the registered files that have changed
///
/// The lines that change are shown first and must be accepted, unless --force is given. Files that have not changed
/// keep their encrypted text, so that git shows only what has changed. All registered files must be on the disk.
///
/// Recipients and registered files that the store of the default branch (`refs/remotes/origin/HEAD`) does not have are
/// shown by name, and asked about one by one, because anybody who can change the repository can add them. Once confirmed,
/// they are known in this clone. --force and --yes are no replies; without a terminal, name each of them with
/// --accept-recipient and --accept-file.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  In a script:
      sc secrets hide --force && git commit -m 'Rotate the token' .sc/secrets.yaml")]
pub(crate) struct HideArgs {
    /// Accept all changes without a question
    #[arg(short = 'F', long, visible_alias = "yes", visible_short_alias = 'y')]
    force: bool,
    #[command(flatten)]
    accept: AcceptArgs,
}

/// Runs `sc secrets add`.
pub(super) async fn add(session: &SecretsSession<'_>, args: &AddArgs) -> anyhow::Result<Exit> {
    let mut keys = session.keys()?;
    let prepare = |keys: &OwnKeys| Edit::add(&session.file, &args.path, keys);
    Ok(report(session, session.edit(&mut keys, args.confirm.yes, &args.accept, prepare).await?))
}

/// Runs `sc secrets delete`.
pub(super) async fn delete(session: &SecretsSession<'_>, args: &DeleteArgs) -> anyhow::Result<Exit> {
    // No key is needed to remove an entry.
    let process_context = process_context();
    let mut keys = OwnKeys::new(Profile::default().key_config(&session.repository, &process_context));
    let prepare = |keys: &OwnKeys| Edit::delete(&session.file, &args.path, args.file, keys);
    let edited = session.edit(&mut keys, false, &AcceptArgs::default(), prepare).await?;
    if let Edited::Committed(_) = edited {
        session.report(format!("removed {} from the store", args.path));
    }
    Ok(Exit::Done)
}

/// Runs `sc secrets hide`.
pub(super) async fn hide(session: &SecretsSession<'_>, args: &HideArgs) -> anyhow::Result<Exit> {
    let mut keys = session.keys()?;
    let prepare = |keys: &OwnKeys| Edit::hide(&session.file, keys);
    let edited = session.edit(&mut keys, args.force, &args.accept, prepare).await?;
    if matches!(&edited, Edited::Committed(paths) if paths.is_empty()) && session.file.read()?.files.is_empty() {
        session.report("no file is registered: `sc secrets add PATH` registers one");
        return Ok(Exit::Done);
    }
    Ok(report(session, edited))
}

fn report(session: &SecretsSession<'_>, edited: Edited) -> Exit {
    match edited {
        Edited::Declined => return Exit::Failed,
        Edited::Committed(paths) if paths.is_empty() => session.report("no secret file has changed"),
        Edited::Committed(paths) => paths.iter().for_each(|path| session.report(format!("encrypted {path}"))),
    }
    Exit::Done
}
