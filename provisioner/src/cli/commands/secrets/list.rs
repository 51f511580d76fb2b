//! `sc secrets list` and `allowed-keys`: the content of the store, for which no key is needed.

use clap::Args;

use super::session::SecretsSession;
use crate::cli::display::Line;
use crate::cli::exit::Exit;

/// List the registered files, in the order in which they were added
///
/// Prints one path in each line; with --json, one object `{"path": …}`. No key is needed.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {}

/// List the public keys that can decrypt the store
///
/// Prints each key, and an empty line after it; with --json, one object `{"key": …, "files": …}` in each line, with
/// the number of files that are encrypted for the key. No key is needed.
#[derive(Debug, Args)]
pub(crate) struct AllowedKeysArgs {}

/// Runs `sc secrets list`.
pub(super) fn list(session: &SecretsSession<'_>) -> anyhow::Result<Exit> {
    let files = session.file.read()?.files;
    let line = |path: String| match session.ui.output.results_are_json() {
        true => serde_json::json!({ "path": path }).to_string(),
        false => path,
    };
    session.ui.output.print(&files.into_iter().map(line).map(Line::plain).collect::<Vec<_>>())?;
    Ok(Exit::Done)
}

/// Runs `sc secrets allowed-keys`.
pub(super) fn allowed_keys(session: &SecretsSession<'_>) -> anyhow::Result<Exit> {
    let store = session.file.read()?;
    let lines = store.recipients().iter().flat_map(|recipient| match session.ui.output.results_are_json() {
        true => {
            let found = serde_json::json!({ "key": recipient.key.as_str(), "files": recipient.entries.len() });
            vec![Line::plain(found.to_string())]
        }
        false => vec![Line::plain(recipient.key.as_str()), Line::new()],
    });
    session.ui.output.print(&lines.collect::<Vec<_>>())?;
    Ok(Exit::Done)
}
