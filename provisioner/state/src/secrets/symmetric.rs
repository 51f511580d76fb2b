//! Encryption with AES-256-GCM: `v1:` nonce `:` ciphertext with tag, both in base64
//! (docs/spec/state-and-secrets.md#5.1).

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use zeroize::Zeroizing;

use super::error::SecretsError;
use super::manager::Crypter;

/// Length of a key in bytes.
pub(super) const KEY_LENGTH: usize = 32;

/// Encrypts and decrypts with one AES-256 key.
pub struct SymmetricCrypter {
    key: LessSafeKey,
}

impl SymmetricCrypter {
    /// Creates a crypter with a key.
    pub fn new(key: &Zeroizing<[u8; KEY_LENGTH]>) -> Self {
        let key = UnboundKey::new(&AES_256_GCM, &**key).expect("an AES-256 key has 32 bytes");
        Self { key: LessSafeKey::new(key) }
    }

    fn encrypt_with_nonce(&self, plaintext: &str, nonce: [u8; NONCE_LEN]) -> Result<String, SecretsError> {
        let mut ciphertext = plaintext.as_bytes().to_vec();
        self.key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut ciphertext)
            .map_err(|_| SecretsError::Encrypt)?;
        let mut text = String::with_capacity(20 + ciphertext.len().div_ceil(3) * 4);
        text.push_str("v1:");
        BASE64.encode_string(nonce, &mut text);
        text.push(':');
        BASE64.encode_string(ciphertext, &mut text);
        Ok(text)
    }

    fn try_decrypt(&self, ciphertext: &str) -> Option<String> {
        let (nonce, encrypted) = ciphertext.strip_prefix("v1:")?.split_once(':')?;
        let nonce: [u8; NONCE_LEN] = BASE64.decode(nonce).ok()?.try_into().ok()?;
        let mut plaintext = BASE64.decode(encrypted).ok()?;
        let length =
            self.key.open_in_place(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut plaintext).ok()?.len();
        plaintext.truncate(length);
        String::from_utf8(plaintext).ok()
    }
}

impl fmt::Debug for SymmetricCrypter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SymmetricCrypter")
    }
}

impl Crypter for SymmetricCrypter {
    fn encrypt(&self, plaintext: &str) -> Result<String, SecretsError> {
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(|_| SecretsError::Encrypt)?;
        self.encrypt_with_nonce(plaintext, nonce)
    }

    fn decrypt(&self, ciphertext: &str) -> Result<String, SecretsError> {
        self.try_decrypt(ciphertext).ok_or(SecretsError::Decrypt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Key of the vectors in docs/spec/state-and-secrets.md#5.3: passphrase `tide-pool 42`, salt `obLD1OX2Bxg=`.
    const KEY: [u8; KEY_LENGTH] = [
        0x1d, 0x6a, 0x68, 0xff, 0x4c, 0xdc, 0xea, 0xca, 0xb0, 0xda, 0x56, 0x3a, 0x9c, 0x2a, 0x97, 0x97, 0x7d, 0x27,
        0x58, 0x18, 0x14, 0xba, 0xe5, 0xbf, 0xd5, 0x1a, 0xb8, 0xec, 0xef, 0x72, 0xb3, 0xb6,
    ];

    fn nonce(first: u8) -> [u8; NONCE_LEN] {
        std::array::from_fn(|index| first + u8::try_from(index).unwrap())
    }

    #[test]
    fn published_vectors_are_reproduced() {
        let crypter = SymmetricCrypter::new(&Zeroizing::new(KEY));
        let vectors = [
            ("\"otter\\u003c7\\u003e\"", 0x0c, "v1:DA0ODxAREhMUFRYX:yHvrvTMK9skYxs9/ie92x9vSH+bMVt2NEDvwXKxRpM+XNpy5"),
            (
                "{\"pin\":7,\"user\":\"ada\"}",
                0x18,
                "v1:GBkaGxwdHh8gISIj:Ro2hMXtw1DhQRGkJBe+nxyNVyVakq44zZr7j7xREd814xeRs5vY=",
            ),
            ("pulumi", 0, "v1:AAECAwQFBgcICQoL:4k5vYY3TEksuSLXK3QiRhRl15zgSzw=="),
            ("otter<7>", 0x24, "v1:JCUmJygpKissLS4v:bX8xQC+hZHc5O1Yf91a20+1eoB22bpV/"),
        ];
        for (plaintext, first, ciphertext) in vectors {
            assert_eq!(crypter.encrypt_with_nonce(plaintext, nonce(first)).unwrap(), ciphertext);
            assert_eq!(crypter.decrypt(ciphertext).unwrap(), plaintext);
        }
        let cloud = SymmetricCrypter::new(&Zeroizing::new(std::array::from_fn(|index| u8::try_from(index).unwrap())));
        let ciphertext = cloud.encrypt_with_nonce("\"otter\\u003c7\\u003e\"", nonce(0x0c)).unwrap();
        assert_eq!(ciphertext, "v1:DA0ODxAREhMUFRYX:upEdrBoEoCYHGnu2ptdT12UwiMxxmShRV1Aclabxk5KmvqUK");
    }

    #[test]
    fn same_text_is_encrypted_differently_each_time() {
        let crypter = SymmetricCrypter::new(&Zeroizing::new(KEY));
        let [first, second] = [(); 2].map(|()| crypter.encrypt("twice").unwrap());
        assert_ne!(first, second);
        assert_eq!(crypter.decrypt(&first).unwrap(), crypter.decrypt(&second).unwrap());
    }

    #[test]
    fn damaged_ciphertexts_are_refused() {
        let crypter = SymmetricCrypter::new(&Zeroizing::new(KEY));
        let ciphertext = crypter.encrypt("text").unwrap();
        let other = SymmetricCrypter::new(&Zeroizing::new([7; KEY_LENGTH]));
        assert_eq!(other.decrypt(&ciphertext), Err(SecretsError::Decrypt));
        for damaged in
            ["", "v1:", "v1::", "v2:AAAA:AAAA", "v1:AAAA:AAAA", "text", &format!("{ciphertext}:"), &ciphertext[..30]]
        {
            assert_eq!(crypter.decrypt(damaged), Err(SecretsError::Decrypt), "{damaged}");
        }
    }
}
