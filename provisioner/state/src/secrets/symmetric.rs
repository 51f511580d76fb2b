//! Texts sealed with AES-256-GCM: `v1:` nonce `:` ciphertext with tag, both in base64 (spec of the state, section 5.1).

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use zeroize::Zeroizing;

use super::error::SecretsError;
use super::manager::Crypter;

/// Length of a key in bytes.
pub(super) const KEY_LENGTH: usize = 32;

/// Seals with one AES-256 key.
pub struct SymmetricCrypter {
    key: LessSafeKey,
}

impl SymmetricCrypter {
    /// Takes the key.
    pub fn new(key: &Zeroizing<[u8; KEY_LENGTH]>) -> Self {
        let key = UnboundKey::new(&AES_256_GCM, &**key).expect("an AES-256 key has 32 bytes");
        Self { key: LessSafeKey::new(key) }
    }

    fn seal(&self, plaintext: &str, nonce: [u8; NONCE_LEN]) -> Result<String, SecretsError> {
        let mut sealed = plaintext.as_bytes().to_vec();
        self.key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut sealed)
            .map_err(|_| SecretsError::Encrypt)?;
        let mut text = String::with_capacity(20 + sealed.len().div_ceil(3) * 4);
        text.push_str("v1:");
        BASE64.encode_string(nonce, &mut text);
        text.push(':');
        BASE64.encode_string(sealed, &mut text);
        Ok(text)
    }

    fn open(&self, ciphertext: &str) -> Option<String> {
        let (nonce, sealed) = ciphertext.strip_prefix("v1:")?.split_once(':')?;
        let nonce: [u8; NONCE_LEN] = BASE64.decode(nonce).ok()?.try_into().ok()?;
        let mut opened = BASE64.decode(sealed).ok()?;
        let length = self.key.open_in_place(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut opened).ok()?.len();
        opened.truncate(length);
        String::from_utf8(opened).ok()
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
        self.seal(plaintext, nonce)
    }

    fn decrypt(&self, ciphertext: &str) -> Result<String, SecretsError> {
        self.open(ciphertext).ok_or(SecretsError::Decrypt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key of the vectors in section 5.3: passphrase `tide-pool 42`, salt `obLD1OX2Bxg=`.
    const KEY: [u8; KEY_LENGTH] = [
        0x1d, 0x6a, 0x68, 0xff, 0x4c, 0xdc, 0xea, 0xca, 0xb0, 0xda, 0x56, 0x3a, 0x9c, 0x2a, 0x97, 0x97, 0x7d, 0x27,
        0x58, 0x18, 0x14, 0xba, 0xe5, 0xbf, 0xd5, 0x1a, 0xb8, 0xec, 0xef, 0x72, 0xb3, 0xb6,
    ];

    fn nonce(first: u8) -> [u8; NONCE_LEN] {
        std::array::from_fn(|index| first + u8::try_from(index).unwrap())
    }

    #[test]
    fn the_published_vectors_come_out() {
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
            assert_eq!(crypter.seal(plaintext, nonce(first)).unwrap(), ciphertext);
            assert_eq!(crypter.decrypt(ciphertext).unwrap(), plaintext);
        }
        let cloud = SymmetricCrypter::new(&Zeroizing::new(std::array::from_fn(|index| u8::try_from(index).unwrap())));
        let sealed = cloud.seal("\"otter\\u003c7\\u003e\"", nonce(0x0c)).unwrap();
        assert_eq!(sealed, "v1:DA0ODxAREhMUFRYX:upEdrBoEoCYHGnu2ptdT12UwiMxxmShRV1Aclabxk5KmvqUK");
    }

    #[test]
    fn the_same_text_is_never_sealed_the_same_way_twice() {
        let crypter = SymmetricCrypter::new(&Zeroizing::new(KEY));
        let [first, second] = [(); 2].map(|()| crypter.encrypt("twice").unwrap());
        assert_ne!(first, second);
        assert_eq!(crypter.decrypt(&first).unwrap(), crypter.decrypt(&second).unwrap());
    }

    #[test]
    fn damaged_texts_are_refused() {
        let crypter = SymmetricCrypter::new(&Zeroizing::new(KEY));
        let sealed = crypter.encrypt("text").unwrap();
        let other = SymmetricCrypter::new(&Zeroizing::new([7; KEY_LENGTH]));
        assert_eq!(other.decrypt(&sealed), Err(SecretsError::Decrypt));
        for damaged in ["", "v1:", "v1::", "v2:AAAA:AAAA", "v1:AAAA:AAAA", "text", &format!("{sealed}:"), &sealed[..30]]
        {
            assert_eq!(crypter.decrypt(damaged), Err(SecretsError::Decrypt), "{damaged}");
        }
    }
}
