//! Decodes and encodes checkpoints with their secrets. The key is fetched only if it is needed.

use std::sync::Arc;

use super::format::{self, Checkpoint, FormatError, SecretDecryption, SecretEncryption, StoredText};
use super::secrets::{CiphertextReuse, Keyring, SecretsError, SecretsManager};
use super::snapshot::Snapshot;

/// Checkpoint that was read.
pub struct LoadedCheckpoint {
    /// Content of the checkpoint.
    pub checkpoint: Checkpoint,
    /// Manager of its secrets, or the reason why it is not available; `None` if the checkpoint names none.
    pub manager: Option<Result<Arc<dyn SecretsManager>, SecretsError>>,
    /// Ciphertexts of its secrets; valid for that manager only.
    pub reuse: CiphertextReuse,
}

/// Reads the text of a checkpoint. Fetches the key only if the checkpoint contains secrets.
///
/// # Errors
/// [`FormatError`].
pub async fn decode_checkpoint(text: &str, keyring: &Keyring) -> Result<LoadedCheckpoint, FormatError> {
    decode(text, StoredText::parse, keyring).await
}

/// Reads the text of a checkpoint without decrypting its secrets: the value of each is null. Needs no key.
///
/// # Errors
/// [`FormatError`].
pub(super) fn decode_without_secrets(text: &str, keyring: &Keyring) -> Result<LoadedCheckpoint, FormatError> {
    let stored = StoredText::parse(text)?;
    let manager = stored.secrets().map(|description| keyring.manager(&description));
    let checkpoint = stored.read(SecretDecryption::KeepEncrypted)?;
    Ok(LoadedCheckpoint { checkpoint, manager, reuse: CiphertextReuse::default() })
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
    let checkpoint = match stored.read(SecretDecryption::NoKey) {
        Err(error) if error.needs_key() => {
            let Some(manager) = &manager else { return Err(error) };
            let crypter = manager.clone()?.crypter().await?;
            parse(text)?.read(SecretDecryption::WithKey(&*crypter, &mut reuse))?
        }
        read => read?,
    };
    Ok(LoadedCheckpoint { checkpoint, manager, reuse })
}

/// Writes the text of a checkpoint. Unchanged secrets are written with their loaded ciphertext; the key is fetched only
/// if there are other secrets.
///
/// # Errors
/// [`SecretsError`] if there are secrets and no key to encrypt them with.
pub async fn encode_checkpoint(
    stack: &str,
    snapshot: Option<&Snapshot>,
    manager: Option<&dyn SecretsManager>,
    reuse: &CiphertextReuse,
) -> Result<String, SecretsError> {
    encode_successor(stack, snapshot, manager, reuse, 0).await
}

/// Writes the text of a checkpoint as [`encode_checkpoint`] does, in place of one with a text of `earlier_length` bytes, of
/// which its own length will differ little.
///
/// # Errors
/// The errors of [`encode_checkpoint`].
pub(super) async fn encode_successor(
    stack: &str,
    snapshot: Option<&Snapshot>,
    manager: Option<&dyn SecretsManager>,
    reuse: &CiphertextReuse,
    earlier_length: usize,
) -> Result<String, SecretsError> {
    let write = |crypter| {
        let encryption = SecretEncryption::Reuse(reuse.begin_pass(), crypter);
        format::write_checkpoint(stack, snapshot, encryption, earlier_length)
    };
    match write(None) {
        Err(SecretsError::KeyNeeded) => {
            let crypter = manager.ok_or(SecretsError::KeyNeeded)?.crypter().await?;
            write(Some(&*crypter))
        }
        written => written,
    }
}

/// Writes a snapshot as `pulumi stack export` does: with its secrets encrypted as in a checkpoint, or in plaintext if
/// `encrypted` is `None`.
///
/// # Errors
/// [`SecretsError`] as for [`encode_checkpoint`].
pub(super) async fn export_checkpoint(
    snapshot: Option<&Snapshot>,
    encrypted: Option<(Option<&dyn SecretsManager>, &CiphertextReuse)>,
) -> Result<String, SecretsError> {
    let Some((manager, reuse)) = encrypted else { return format::write_export(snapshot, SecretEncryption::Plaintext) };
    match format::write_export(snapshot, SecretEncryption::Reuse(reuse.begin_pass(), None)) {
        Err(SecretsError::KeyNeeded) => {
            let crypter = manager.ok_or(SecretsError::KeyNeeded)?.crypter().await?;
            format::write_export(snapshot, SecretEncryption::Reuse(reuse.begin_pass(), Some(&*crypter)))
        }
        written => written,
    }
}
