//! Encryption for Ed25519 keys: a sealed blob, and the legacy form, which is only read.
//!
//! ```text
//! blob   = "scx25519" ‖ 1 ‖ ephemeral public key (32) ‖ nonce (12) ‖ ciphertext and tag
//! legacy = salt (32) ‖ nonce (12) ‖ ciphertext and tag
//! ```

use aws_lc_rs::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
use curve25519_dalek::montgomery::MontgomeryPoint;
use zeroize::Zeroizing;

use super::error::CipherError;
use crate::keys::{Recipient, agreement_scalar};

const MAGIC: &[u8; 8] = b"scx25519";
const VERSION: u8 = 1;
const LEGACY_INFO: &[u8] = b"ed25519-chacha20poly1305";
const NONCE_BYTES: usize = 12;

/// Returns whether a blob has the legacy form.
pub(super) fn is_legacy(blob: &[u8]) -> bool {
    !blob.starts_with(MAGIC)
}

/// Seals a text for the X25519 key of a recipient.
pub(super) fn seal(text: &[u8], recipient: &MontgomeryPoint) -> Result<Vec<u8>, CipherError> {
    let mut scalar = Zeroizing::new([0; 32]);
    let mut nonce = [0; NONCE_BYTES];
    getrandom::fill(&mut *scalar).map_err(|_| CipherError::Failed)?;
    getrandom::fill(&mut nonce).map_err(|_| CipherError::Failed)?;
    let ephemeral = MontgomeryPoint::mul_base_clamped(*scalar);
    let mut blob = [MAGIC.as_slice(), &[VERSION], &ephemeral.0].concat();
    let key = sealing_key(&recipient.mul_clamped(*scalar), &blob, recipient)?;
    let mut sealed = text.to_vec();
    key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(&blob), &mut sealed)
        .map_err(|_| CipherError::Failed)?;
    blob.extend_from_slice(&nonce);
    blob.extend_from_slice(&sealed);
    Ok(blob)
}

/// Opens a blob with the seed of a key, whose public part is `recipient`.
pub(super) fn open(blob: &[u8], seed: &[u8; 32], recipient: &Recipient) -> Result<Zeroizing<Vec<u8>>, CipherError> {
    let Recipient::Ed25519 { key, agreement } = recipient else { return Err(CipherError::Failed) };
    let Some(rest) = blob.strip_prefix(MAGIC.as_slice()) else { return open_legacy(blob, key) };
    let damaged = CipherError::Element(1);
    let (version, rest) = rest.split_first().ok_or_else(|| damaged.clone())?;
    if *version != VERSION {
        return Err(CipherError::Version(*version));
    }
    let (ephemeral, sealed) = rest.split_first_chunk::<32>().ok_or_else(|| damaged.clone())?;
    let header = &blob[..blob.len() - sealed.len()];
    let shared = MontgomeryPoint(*ephemeral).mul_clamped(*agreement_scalar(seed));
    let key = sealing_key(&shared, header, agreement)?;
    open_with(&key, sealed, header)
}

fn open_legacy(blob: &[u8], public: &[u8; 32]) -> Result<Zeroizing<Vec<u8>>, CipherError> {
    let (salt, sealed) = blob.split_first_chunk::<32>().ok_or(CipherError::Element(1))?;
    let key = derive(&Salt::new(HKDF_SHA256, salt), public, LEGACY_INFO)?;
    open_with(&key, sealed, &[])
}

/// Opens `nonce ‖ ciphertext and tag`.
fn open_with(key: &LessSafeKey, sealed: &[u8], aad: &[u8]) -> Result<Zeroizing<Vec<u8>>, CipherError> {
    let damaged = CipherError::Element(1);
    let (nonce, sealed) = sealed.split_first_chunk::<NONCE_BYTES>().ok_or_else(|| damaged.clone())?;
    let mut text = Zeroizing::new(sealed.to_vec());
    let length =
        key.open_in_place(Nonce::assume_unique_for_key(*nonce), Aad::from(aad), &mut text).map_err(|_| damaged)?.len();
    text.truncate(length);
    Ok(text)
}

/// Derives the key of a blob from the shared secret, its header, and the X25519 key of the recipient.
fn sealing_key(
    shared: &MontgomeryPoint,
    header: &[u8],
    recipient: &MontgomeryPoint,
) -> Result<LessSafeKey, CipherError> {
    let shared = Zeroizing::new(shared.0);
    // A point of small order leads to a secret that everybody knows.
    if *shared == [0; 32] {
        return Err(CipherError::Element(1));
    }
    derive(&Salt::none(HKDF_SHA256), &*shared, &[header, &recipient.0].concat())
}

fn derive(salt: &Salt, secret: &[u8], info: &[u8]) -> Result<LessSafeKey, CipherError> {
    let mut key = Zeroizing::new([0; 32]);
    let parts = [info];
    let derived = salt.extract(secret);
    let derived = derived.expand(&parts, HKDF_SHA256).and_then(|derived| derived.fill(&mut *key));
    derived
        .and_then(|()| UnboundKey::new(&CHACHA20_POLY1305, &*key))
        .map(LessSafeKey::new)
        .map_err(|_| CipherError::Failed)
}
