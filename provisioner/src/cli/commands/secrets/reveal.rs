//! `sc secrets reveal`: decrypts the files of the store to the disk.

use clap::Args;
use secrets_store::keys::OwnKeys;
use secrets_store::reveal::Reveal;

use super::change;
use super::session::SecretsSession;
use crate::cli::display::Line;
use crate::cli::exit::Exit;
use crate::cli::prompt::decline;

/// Decrypt all files of the store to the disk
///
/// The files are readable for you alone. If a file on the disk differs, the lines that would change are shown and
/// must be accepted, unless --force is given. All files are decrypted before the first one is written.
///
/// Prints `revealed PATH` for each file, and their number; with --json, one object `{"revealed": [PATH, …]}`. To
/// provision, no file needs to be revealed.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  In a pipeline, with the profile in an environment variable:
      SIMPLE_CONTAINER_CONFIG=\"$(cat profile.yaml)\" sc secrets reveal --force")]
pub(crate) struct RevealArgs {
    /// Overwrite files that differ without a question
    #[arg(short = 'F', long, visible_alias = "yes", visible_short_alias = 'y')]
    force: bool,
}

/// Runs the command.
pub(super) async fn run(session: &SecretsSession<'_>, args: &RevealArgs) -> anyhow::Result<Exit> {
    let ui = session.ui;
    let mut keys = session.keys()?;
    let reveal = session.with_passphrase(&mut keys, |keys: &OwnKeys| Reveal::prepare(&session.file, keys)).await?;
    if !change::confirm_all(ui, reveal.changes(), args.force).await? {
        return Ok(decline(&ui.output));
    }
    reveal.write()?;
    change::warn_of_legacy(&ui.output, &reveal.legacy);
    let paths: Vec<&str> = reveal.paths().collect();
    if ui.output.results_are_json() {
        ui.output.print(&[Line::plain(serde_json::json!({ "revealed": paths }).to_string())])?;
        return Ok(Exit::Done);
    }
    let summary = match paths.len() {
        0 => "no secret files to reveal".to_owned(),
        count => format!("revealed {count} secret file(s)"),
    };
    let revealed = paths.iter().map(|path| format!("revealed {path}"));
    ui.output.print(&revealed.chain([summary]).map(Line::plain).collect::<Vec<_>>())?;
    Ok(Exit::Done)
}
