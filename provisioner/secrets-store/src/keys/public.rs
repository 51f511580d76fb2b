//! Public keys: lines in the format of OpenSSH.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use curve25519_dalek::edwards::CompressedEdwardsY;
use curve25519_dalek::montgomery::MontgomeryPoint;
use sha2::{Digest as _, Sha256};
use ssh_key::public::KeyData;

use super::error::KeyError;
use super::number;

/// Sizes of RSA keys that are accepted, in bits. Go accepts shorter ones too, which protect nothing.
const RSA_BITS: std::ops::RangeInclusive<usize> = 1024..=16384;

/// A public key by its text: the type and the key in base64, without the comment.
///
/// The text is the name of a recipient in the store, also of a key that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey(String);

impl PublicKey {
    /// Takes the first two fields of a text, which may be any.
    pub fn of_line(line: &str) -> Self {
        let mut fields = line.split_whitespace();
        match (fields.next(), fields.next()) {
            (Some(kind), Some(key)) => Self(format!("{kind} {key}")),
            (kind, _) => Self(kind.unwrap_or_default().to_owned()),
        }
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns a short name for messages: the type and the end of the key.
    pub fn short(&self) -> String {
        let (kind, key) = self.0.split_once(' ').unwrap_or(("", &self.0));
        let start = key.char_indices().rev().nth(11).map_or(0, |(at, _)| at);
        if start == 0 { self.0.clone() } else { format!("{kind} …{}", &key[start..]) }
    }

    /// Returns the key itself.
    ///
    /// # Errors
    /// [`KeyError`] if the text is not a key, or no cipher is known for its type.
    pub fn recipient(&self) -> Result<Recipient, KeyError> {
        let not_public = || KeyError::NotPublic(self.0.clone());
        let parsed = match ssh_key::PublicKey::from_openssh(&self.0) {
            Ok(parsed) => parsed,
            Err(_) if self.has_other_type() => return Err(KeyError::UnsupportedPublic(self.kind().to_owned())),
            Err(_) if self.0.starts_with("-----BEGIN") => return Err(KeyError::Pem),
            Err(_) => return Err(not_public()),
        };
        Recipient::of_key_data(parsed.key_data(), &self.0)
    }

    /// Returns the fingerprint of the key, as `ssh-keygen -l` shows it.
    pub fn fingerprint(&self) -> String {
        let key = self.0.split(' ').nth(1).and_then(|key| STANDARD.decode(key).ok());
        // A text that is no key has the fingerprint of the text, and nothing can be encrypted for it.
        let digest = Sha256::digest(key.as_deref().unwrap_or(self.0.as_bytes()));
        format!("SHA256:{}", STANDARD_NO_PAD.encode(digest))
    }

    /// Returns the type of the key: `ssh-ed25519`.
    pub fn kind(&self) -> &str {
        self.0.split(' ').next().unwrap_or_default()
    }

    /// Returns whether the text is a key of a type that the parser does not know: the key begins with the name of its
    /// type.
    fn has_other_type(&self) -> bool {
        let Some((kind, key)) = self.0.split_once(' ') else { return false };
        let Ok(bytes) = STANDARD.decode(key) else { return false };
        let Some((length, rest)) = bytes.split_first_chunk::<4>() else { return false };
        usize::try_from(u32::from_be_bytes(*length)).is_ok_and(|length| length == kind.len())
            && rest.starts_with(kind.as_bytes())
            && !["ssh-rsa", "ssh-ed25519"].contains(&kind)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A key that files are encrypted for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recipient {
    /// RSA
    Rsa(rsa::PublicKey),
    /// Ed25519
    Ed25519 {
        /// The key itself.
        key: [u8; 32],
        /// The same point as a key of X25519.
        agreement: MontgomeryPoint,
    },
}

impl Recipient {
    /// Converts a parsed key. `text` is its text, for errors.
    pub(super) fn of_key_data(key: &KeyData, text: &str) -> Result<Self, KeyError> {
        let not_public = || KeyError::NotPublic(text.to_owned());
        match key {
            KeyData::Ed25519(key) => Self::of_ed25519(key.0).ok_or_else(not_public),
            KeyData::Rsa(key) => {
                let numbers = (key.n().as_positive_bytes(), key.e().as_positive_bytes());
                let (Some(n), Some(e)) = numbers else { return Err(not_public()) };
                let (Some(n), Some(e)) = (number(n), number(e)) else { return Err(not_public()) };
                let bits = n.bit_width_vartime();
                rsa::PublicKey::new_with_size_limits(n, e, RSA_BITS).map(Self::Rsa).map_err(|error| match error {
                    rsa::Error::ModulusTooSmall | rsa::Error::ModulusTooLarge => KeyError::RsaSize(bits),
                    _ => KeyError::InvalidRsa,
                })
            }
            _ => Err(KeyError::UnsupportedPublic(text.split(' ').next().unwrap_or_default().to_owned())),
        }
    }

    /// Converts an Ed25519 key. `None` if its bytes are no point, or one of small order, for which any secret would
    /// be known.
    pub(super) fn of_ed25519(key: [u8; 32]) -> Option<Self> {
        let point = CompressedEdwardsY(key).decompress().filter(|point| !point.is_small_order())?;
        Some(Self::Ed25519 { key, agreement: point.to_montgomery() })
    }
}
