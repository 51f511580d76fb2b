//! Encryption of a text for one recipient (docs/spec/simple-container.md#4.3).
//!
//! Input: a text, or the elements of an entry of the store. Output: the elements, each in base64, or the text.
//! Excluded: keys as texts, and the store.

mod ed25519;
mod error;
mod rsa_oaep;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

pub use error::CipherError;

use crate::keys::{PrivateKey, Recipient};

/// Encrypts a text for a recipient.
///
/// # Errors
/// [`CipherError::TooShort`] or [`CipherError::Failed`].
pub fn encrypt(text: &[u8], recipient: &Recipient) -> Result<Vec<String>, CipherError> {
    let elements = match recipient {
        Recipient::Rsa(key) => rsa_oaep::encrypt(text, key)?,
        Recipient::Ed25519 { agreement, .. } => vec![ed25519::seal(text, agreement)?],
    };
    Ok(elements.iter().map(|element| STANDARD.encode(element)).collect())
}

/// Decrypts the elements of an entry.
///
/// # Errors
/// [`CipherError`]: the entry is not one for this key, or it was changed.
pub fn decrypt(elements: &[String], key: &PrivateKey) -> Result<Zeroizing<Vec<u8>>, CipherError> {
    let decoded = elements.iter().enumerate().map(|(at, text)| {
        // Line ends inside of an element come from folded texts.
        let text: String = text.split_whitespace().collect();
        STANDARD.decode(text).map_err(|_| CipherError::NotBase64(at + 1))
    });
    let decoded = decoded.collect::<Result<Vec<_>, _>>()?;
    match (key, decoded.as_slice()) {
        (PrivateKey::Rsa(key), elements) => rsa_oaep::decrypt(elements, key),
        (PrivateKey::Ed25519(seed), [element]) => {
            ed25519::open(element, seed, &key.recipient().map_err(|_| CipherError::Failed)?)
        }
        (PrivateKey::Ed25519(_), elements) => Err(CipherError::Elements(elements.len())),
    }
}

/// Returns whether an entry for an Ed25519 key has the legacy encryption, whose key everybody can derive.
pub fn is_legacy(elements: &[String]) -> bool {
    matches!(elements, [element] if STANDARD.decode(element).is_ok_and(|element| ed25519::is_legacy(&element)))
}

#[cfg(test)]
mod tests;
