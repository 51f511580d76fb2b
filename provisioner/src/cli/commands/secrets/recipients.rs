//! `sc secrets allow` and `disallow`: the keys that can decrypt the store.

use clap::Args;
use secrets_store::edit::Edit;
use secrets_store::keys::{OwnKeys, PublicKey};

use super::confirmations::AcceptArgs;
use super::session::{Edited, SecretsSession};
use crate::cli::display::Line;
use crate::cli::exit::Exit;

/// Allow a public key to decrypt the store
///
/// All files of the store are encrypted for the key, as they are in the store: files on the disk are not read and not
/// written. The key of the profile must be allowed already.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Give a colleague access:
      sc secrets allow \"$(cat colleague.pub)\"")]
pub(crate) struct AllowArgs {
    /// Public SSH key, RSA or Ed25519: the line of a file such as ~/.ssh/id_ed25519.pub
    // A private key begins with hyphens: the parser of arguments would quote it as an unknown flag.
    #[arg(value_name = "KEY", allow_hyphen_values = true)]
    key: String,
}

/// Withdraw the access of a public key
///
/// Texts that were encrypted for the key stay in the history of git: replace the secrets that must not be known any longer.
/// The key of the profile cannot be removed: let another recipient do it.
#[derive(Debug, Args)]
pub(crate) struct DisallowArgs {
    /// Public SSH key, as `sc secrets allowed-keys` shows it
    #[arg(value_name = "KEY", allow_hyphen_values = true)]
    key: String,
}

/// Runs `sc secrets allow`.
pub(super) async fn allow(session: &SecretsSession<'_>, args: &AllowArgs) -> anyhow::Result<Exit> {
    let mut keys = session.keys()?;
    let prepare = |keys: &OwnKeys| Edit::allow(&session.file, &args.key, keys);
    if let Edited::Committed(paths) = session.edit(&mut keys, true, &AcceptArgs::default(), prepare).await? {
        let short = PublicKey::of_line(&args.key).short();
        session.report(match paths.len() {
            0 => format!("the key {short} is allowed already"),
            count => format!("encrypted {count} file(s) for the key {short}"),
        });
    }
    Ok(Exit::Done)
}

/// Runs `sc secrets disallow`.
pub(super) async fn disallow(session: &SecretsSession<'_>, args: &DisallowArgs) -> anyhow::Result<Exit> {
    let mut keys = session.keys()?;
    let prepare = |keys: &OwnKeys| Edit::disallow(&session.file, &args.key, keys);
    session.edit(&mut keys, true, &AcceptArgs::default(), prepare).await?;
    let key = PublicKey::of_line(&args.key);
    session.ui.output.print(&[Line::plain(format!("removed public key {key}"))])?;
    session
        .ui
        .output
        .warn(format_args!("{} can still decrypt what is in the history of git: replace those secrets", key.short()));
    Ok(Exit::Done)
}
