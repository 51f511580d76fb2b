//! `sc secrets`: the encrypted store of the repository, its files and its recipients.

mod change;
mod confirmations;
mod edit;
mod files;
mod init;
mod list;
mod recipients;
mod reveal;
mod session;

use clap::{Args, Subcommand};

pub(crate) use init::with_commit_flag;

use crate::cli::args::GlobalArgs;
use crate::cli::exit::Exit;
use crate::cli::ui::Ui;
use session::SecretsSession;

/// Keep secret files in git, encrypted: add, edit, hide, reveal, allow and disallow keys
///
/// The store `.sc/secrets.yaml` belongs into git. It holds each registered file, encrypted for each public SSH key
/// that is allowed; the files themselves are kept out of git by `.gitignore`. Paths start at the root of the
/// repository.
///
/// `sc provision` and other commands need no revealed files: a `secrets.yaml` of a stack that is not on the disk is
/// read from the store, with the key of the profile.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Begin, with the SSH key that the profile names, or with a new one:
      sc secrets init
      sc secrets init --generate

  Keep a file in the store, and give a colleague access:
      sc secrets add .sc/stacks/common/secrets.yaml
      sc secrets allow \"$(cat colleague.pub)\"

  After a clone, and after an edit:
      sc secrets reveal
      sc secrets hide

  Change a file without revealing it:
      sc secrets edit .sc/stacks/common/secrets.yaml")]
pub(crate) struct SecretsCommand {
    #[command(subcommand)]
    pub(crate) verb: SecretsVerb,
}

/// Subcommands of `sc secrets`.
#[derive(Debug, Subcommand)]
pub(crate) enum SecretsVerb {
    Init(init::InitArgs),
    #[command(visible_alias = "ls")]
    List(list::ListArgs),
    Add(files::AddArgs),
    #[command(visible_alias = "rm")]
    Delete(files::DeleteArgs),
    Edit(edit::EditArgs),
    #[command(visible_alias = "encrypt")]
    Hide(files::HideArgs),
    #[command(visible_alias = "decrypt")]
    Reveal(reveal::RevealArgs),
    Allow(recipients::AllowArgs),
    Disallow(recipients::DisallowArgs),
    AllowedKeys(list::AllowedKeysArgs),
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, command: &SecretsCommand) -> anyhow::Result<Exit> {
    let session = SecretsSession::open(ui, global)?;
    match &command.verb {
        SecretsVerb::Init(args) => init::run(&session, args).await,
        SecretsVerb::List(_) => list::list(&session),
        SecretsVerb::Add(args) => files::add(&session, args).await,
        SecretsVerb::Delete(args) => files::delete(&session, args).await,
        SecretsVerb::Edit(args) => edit::run(&session, args).await,
        SecretsVerb::Hide(args) => files::hide(&session, args).await,
        SecretsVerb::Reveal(args) => reveal::run(&session, args).await,
        SecretsVerb::Allow(args) => recipients::allow(&session, args).await,
        SecretsVerb::Disallow(args) => recipients::disallow(&session, args).await,
        SecretsVerb::AllowedKeys(_) => list::allowed_keys(&session),
    }
}
