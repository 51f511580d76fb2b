//! Encryption for RSA keys: OAEP with SHA-256, in pieces.

use getrandom::SysRng;
use rsa::Oaep;
use rsa::traits::PublicKeyParts as _;
use sha2::Sha256;
use zeroize::Zeroizing;

use super::error::CipherError;

/// Bytes of a piece that OAEP needs: two hashes and two bytes.
const OVERHEAD: usize = 2 * 32 + 2;

/// Encrypts each piece of a text.
pub(super) fn encrypt(text: &[u8], key: &rsa::PublicKey) -> Result<Vec<Vec<u8>>, CipherError> {
    let pieces = pieces(text, key.size()).ok_or(CipherError::TooShort)?;
    let encrypt = |piece: &&[u8]| key.encrypt(&mut SysRng, Oaep::<Sha256>::new(), piece);
    pieces.iter().map(encrypt).collect::<Result<_, _>>().map_err(|_| CipherError::Failed)
}

/// Decrypts and joins the pieces of a text.
pub(super) fn decrypt(pieces: &[Vec<u8>], key: &rsa::PrivateKey) -> Result<Zeroizing<Vec<u8>>, CipherError> {
    let mut text = Zeroizing::new(Vec::new());
    for (at, piece) in pieces.iter().enumerate() {
        let decrypted = key.decrypt_blinded(&mut SysRng, Oaep::<Sha256>::new(), piece);
        text.extend_from_slice(&Zeroizing::new(decrypted.map_err(|_| CipherError::Element(at + 1))?));
    }
    Ok(text)
}

/// Cuts a text into pieces for a modulus of so many bytes: where the Go program cuts it, at half as many characters,
/// but never into more bytes than OAEP takes. A character is not cut; a byte that is no UTF-8 counts as one. `None`
/// if the key is too short for a character.
pub(super) fn pieces(text: &[u8], modulus_bytes: usize) -> Option<Vec<&[u8]>> {
    let characters = modulus_bytes / 2;
    let bytes = modulus_bytes.checked_sub(OVERHEAD).filter(|bytes| *bytes >= 4)?;
    if text.len() <= characters.min(bytes) {
        return Some(vec![text]);
    }
    let mut pieces = Vec::new();
    let (mut start, mut end, mut count) = (0, 0, 0);
    for length in character_lengths(text) {
        if count == characters || end + length - start > bytes {
            pieces.push(&text[start..end]);
            (start, count) = (end, 0);
        }
        end += length;
        count += 1;
    }
    pieces.push(&text[start..]);
    Some(pieces)
}

fn character_lengths(text: &[u8]) -> impl Iterator<Item = usize> + '_ {
    text.utf8_chunks().flat_map(|chunk| {
        let valid = chunk.valid().chars().map(char::len_utf8);
        valid.chain(chunk.invalid().iter().map(|_| 1))
    })
}
