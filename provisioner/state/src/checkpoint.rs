//! Checkpoints with their secrets: the text of one to a snapshot and back, with the key fetched only where it is needed.

use std::sync::Arc;

use super::format::{self, Checkpoint, FormatError, Opening, Sealing, StoredText};
use super::secrets::{CiphertextReuse, Keyring, SecretsError, SecretsManager};
use super::snapshot::Snapshot;

/// A checkpoint that was read.
pub struct LoadedCheckpoint {
    /// What it holds.
    pub checkpoint: Checkpoint,
    /// The manager of its secrets, or why there is none to be had; `None` where it names none.
    pub manager: Option<Result<Arc<dyn SecretsManager>, SecretsError>>,
    /// How its secrets were sealed; valid for that manager only.
    pub reuse: CiphertextReuse,
}

/// Reads the text of a checkpoint. Waits for the key only if there are secrets in it.
///
/// # Errors
/// [`FormatError`].
pub async fn decode_checkpoint(text: &str, keyring: &Keyring) -> Result<LoadedCheckpoint, FormatError> {
    decode(text, StoredText::parse, keyring).await
}

/// Reads the text of an export as [`decode_checkpoint`] does.
///
/// # Errors
/// [`FormatError`].
pub(super) async fn decode_export(text: &str, keyring: &Keyring) -> Result<LoadedCheckpoint, FormatError> {
    decode(text, StoredText::parse_export, keyring).await
}

async fn decode<'a>(
    text: &'a str,
    parse: fn(&'a str) -> Result<StoredText<'a>, FormatError>,
    keyring: &Keyring,
) -> Result<LoadedCheckpoint, FormatError> {
    let stored = parse(text)?;
    let manager = stored.secrets().map(|description| keyring.manager(&description));
    let mut reuse = CiphertextReuse::default();
    let checkpoint = match stored.read(Opening::Impossible) {
        Err(error) if error.needs_key() => {
            let Some(manager) = &manager else { return Err(error) };
            let crypter = manager.clone()?.crypter().await?;
            parse(text)?.read(Opening::With(&*crypter, &mut reuse))?
        }
        read => read?,
    };
    Ok(LoadedCheckpoint { checkpoint, manager, reuse })
}

/// Writes the text of a checkpoint. Secrets that did not change are written as they were loaded; waits for the key only if
/// there are others.
///
/// # Errors
/// [`SecretsError`] if there are secrets and no key to seal them with.
pub async fn encode_checkpoint(
    stack: &str,
    snapshot: Option<&Snapshot>,
    manager: Option<&dyn SecretsManager>,
    reuse: &CiphertextReuse,
) -> Result<String, SecretsError> {
    match format::write_checkpoint(stack, snapshot, Sealing::Reusing(reuse.pass(), None)) {
        Err(SecretsError::KeyNeeded) => {
            let crypter = manager.ok_or(SecretsError::KeyNeeded)?.crypter().await?;
            format::write_checkpoint(stack, snapshot, Sealing::Reusing(reuse.pass(), Some(&*crypter)))
        }
        written => written,
    }
}

/// Writes a snapshot as `pulumi stack export` does: with its secrets sealed as a checkpoint would have them, or (without a
/// way to seal them) for all to see.
///
/// # Errors
/// [`SecretsError`] as for a checkpoint.
pub(super) async fn export_checkpoint(
    snapshot: Option<&Snapshot>,
    sealed: Option<(Option<&dyn SecretsManager>, &CiphertextReuse)>,
) -> Result<String, SecretsError> {
    let Some((manager, reuse)) = sealed else { return format::write_export(snapshot, Sealing::Shown) };
    match format::write_export(snapshot, Sealing::Reusing(reuse.pass(), None)) {
        Err(SecretsError::KeyNeeded) => {
            let crypter = manager.ok_or(SecretsError::KeyNeeded)?.crypter().await?;
            format::write_export(snapshot, Sealing::Reusing(reuse.pass(), Some(&*crypter)))
        }
        written => written,
    }
}
