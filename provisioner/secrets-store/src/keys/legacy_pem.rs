//! Encryption of PEM by headers, as OpenSSL wrote keys before PKCS#8 (RFC 1421): `DEK-Info: AES-128-CBC,<IV>`.

use aes::cipher::block_padding::Pkcs7;
use aes::cipher::{BlockModeDecrypt, KeyIvInit};
use md5::{Digest as _, Md5};
use zeroize::{Zeroize as _, Zeroizing};

/// Reason why a text cannot be decrypted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LegacyError {
    /// The cipher is not known.
    Cipher(String),
    /// The passphrase is incorrect, as far as the padding shows it.
    Passphrase,
}

/// Decrypts the content of a PEM block with the value of its header `DEK-Info`.
pub(super) fn decrypt(info: &str, content: &[u8], passphrase: &[u8]) -> Result<Zeroizing<Vec<u8>>, LegacyError> {
    let (cipher, iv) = info.split_once(',').unwrap_or((info, ""));
    let block = Block { cipher: cipher.trim(), iv: hex::decode(iv.trim()).unwrap_or_default(), content, passphrase };
    match block.cipher {
        "AES-128-CBC" => block.decrypt::<cbc::Decryptor<aes::Aes128>>(16),
        "AES-192-CBC" => block.decrypt::<cbc::Decryptor<aes::Aes192>>(24),
        "AES-256-CBC" => block.decrypt::<cbc::Decryptor<aes::Aes256>>(32),
        "DES-EDE3-CBC" => block.decrypt::<cbc::Decryptor<des::TdesEde3>>(24),
        "DES-CBC" => block.decrypt::<cbc::Decryptor<des::Des>>(8),
        _ => Err(block.unknown()),
    }
}

/// An encrypted block, with the passphrase.
struct Block<'a> {
    cipher: &'a str,
    iv: Vec<u8>,
    content: &'a [u8],
    passphrase: &'a [u8],
}

impl Block<'_> {
    fn decrypt<D: KeyIvInit + BlockModeDecrypt>(&self, key_bytes: usize) -> Result<Zeroizing<Vec<u8>>, LegacyError> {
        let salt = self.iv.first_chunk().ok_or_else(|| self.unknown())?;
        let key = derive_key(self.passphrase, salt, key_bytes);
        let cipher = D::new_from_slices(&key, &self.iv).map_err(|_| self.unknown())?;
        let plain = cipher.decrypt_padded_vec::<Pkcs7>(self.content).map_err(|_| LegacyError::Passphrase)?;
        Ok(Zeroizing::new(plain))
    }

    fn unknown(&self) -> LegacyError {
        LegacyError::Cipher(self.cipher.to_owned())
    }
}

/// Derives a key as OpenSSL does (`EVP_BytesToKey` with MD5 and one round): the first 8 bytes of the IV are the salt.
fn derive_key(passphrase: &[u8], salt: &[u8; 8], length: usize) -> Zeroizing<Vec<u8>> {
    let mut key = Zeroizing::new(Vec::with_capacity(length + 16));
    let mut digest = Vec::new();
    while key.len() < length {
        let mut hash = Md5::new();
        hash.update(&digest);
        hash.update(passphrase);
        hash.update(salt);
        digest.zeroize();
        digest = hash.finalize().to_vec();
        key.extend_from_slice(&digest);
    }
    digest.zeroize();
    key.truncate(length);
    key
}
