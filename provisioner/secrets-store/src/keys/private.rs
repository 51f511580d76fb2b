//! Private keys: PEM of PKCS#1 and PKCS#8, and the format of OpenSSH, with and without a passphrase.

use std::fmt;

use curve25519_dalek::edwards::EdwardsPoint;
use rsa::pkcs1::DecodeRsaPrivateKey as _;
use rsa::pkcs8::{DecodePrivateKey as _, PrivateKeyInfoRef};
use sha2::{Digest as _, Sha512};
use ssh_key::private::{KeypairData, RsaKeypair};
use zeroize::{Zeroize as _, Zeroizing};

use super::error::KeyError;
use super::legacy_pem::{self, LegacyError};
use super::number;
use super::public::Recipient;

/// Object identifiers of the types in PKCS#8.
const RSA: &str = "1.2.840.113549.1.1.1";
const ED25519: &str = "1.3.101.112";

/// A private key. `Debug` shows its type only.
#[derive(Clone)]
pub enum PrivateKey {
    /// RSA
    Rsa(Box<rsa::PrivateKey>),
    /// The seed of an Ed25519 key.
    Ed25519(Zeroizing<[u8; 32]>),
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rsa(_) => "PrivateKey::Rsa",
            Self::Ed25519(_) => "PrivateKey::Ed25519",
        })
    }
}

impl PrivateKey {
    /// Parses the text of a key. `name` is its file or field, for errors.
    ///
    /// # Errors
    /// [`KeyError`]: [`KeyError::PassphraseMissing`] if the key is encrypted and there is no passphrase.
    pub fn parse(text: &str, passphrase: Option<&str>, name: &str) -> Result<Self, KeyError> {
        let errors = Errors { name };
        let block = pem::parse(text).map_err(|_| errors.not_private())?;
        let headers = block.headers();
        if headers.get("Proc-Type").is_some_and(|kind| kind.contains("ENCRYPTED")) {
            let passphrase = passphrase.ok_or_else(|| errors.missing())?;
            let info = headers.get("DEK-Info").unwrap_or_default();
            let content = legacy_pem::decrypt(info, block.contents(), passphrase.as_bytes());
            let content = content.map_err(|error| match error {
                LegacyError::Cipher(cipher) => errors.encryption(cipher),
                LegacyError::Passphrase => errors.wrong(),
            })?;
            // A wrong passphrase may leave a valid padding.
            return errors.der(block.tag(), &content).map_err(|error| match error {
                KeyError::NotPrivate { .. } => errors.wrong(),
                other => other,
            });
        }
        match (block.tag(), passphrase) {
            ("OPENSSH PRIVATE KEY", _) => errors.openssh(block.contents(), passphrase),
            ("ENCRYPTED PRIVATE KEY", _) => Err(errors.encryption("PKCS#8")),
            (_, Some(_)) => Err(KeyError::NeedlessPassphrase { name: name.to_owned() }),
            (tag, None) => errors.der(tag, block.contents()),
        }
    }

    /// Returns the public key of the pair.
    ///
    /// # Errors
    /// [`KeyError`] if the key is of no use.
    pub fn recipient(&self) -> Result<Recipient, KeyError> {
        match self {
            Self::Rsa(key) => Ok(Recipient::Rsa(key.to_public_key())),
            Self::Ed25519(seed) => {
                let public = EdwardsPoint::mul_base_clamped(*agreement_scalar(seed)).compress().0;
                Recipient::of_ed25519(public).ok_or(KeyError::NotPublic(String::new()))
            }
        }
    }
}

/// Returns the public key of a private one in PEM; `None` if that needs another passphrase, or the key is of no use. The
/// format of OpenSSH has the public key in plaintext.
pub(crate) fn public_part(text: &str, passphrase: Option<&str>) -> Option<Recipient> {
    let block = pem::parse(text).ok()?;
    if block.tag() == "OPENSSH PRIVATE KEY" {
        let key = ssh_key::PrivateKey::from_bytes(block.contents()).ok()?;
        return Recipient::of_key_data(key.public_key().key_data(), &key.public_key().to_string()).ok();
    }
    let key = PrivateKey::parse(text, None, "").or_else(|_| PrivateKey::parse(text, passphrase, ""));
    key.ok()?.recipient().ok()
}

/// Returns the scalar of an Ed25519 seed, which is that of X25519, too; the caller clamps it.
pub(crate) fn agreement_scalar(seed: &[u8; 32]) -> Zeroizing<[u8; 32]> {
    let mut hash = Sha512::digest(seed);
    let mut scalar = Zeroizing::new([0; 32]);
    scalar.copy_from_slice(&hash[..32]);
    hash.as_mut_slice().zeroize();
    scalar
}

/// Makes the errors of one key.
struct Errors<'n> {
    name: &'n str,
}

impl Errors<'_> {
    fn not_private(&self) -> KeyError {
        KeyError::NotPrivate { name: self.name.to_owned() }
    }

    fn missing(&self) -> KeyError {
        KeyError::PassphraseMissing { name: self.name.to_owned() }
    }

    fn wrong(&self) -> KeyError {
        KeyError::WrongPassphrase { name: self.name.to_owned() }
    }

    fn kind(&self, kind: impl Into<String>) -> KeyError {
        KeyError::UnsupportedPrivate { name: self.name.to_owned(), kind: kind.into() }
    }

    fn encryption(&self, cipher: impl Into<String>) -> KeyError {
        KeyError::UnsupportedEncryption { name: self.name.to_owned(), cipher: cipher.into() }
    }

    /// Reads the binary form of a key, by the tag of its PEM block.
    fn der(&self, tag: &str, content: &[u8]) -> Result<PrivateKey, KeyError> {
        match tag {
            "RSA PRIVATE KEY" => {
                let key = rsa::PrivateKey::from_pkcs1_der(content).map_err(|_| self.not_private())?;
                Ok(PrivateKey::Rsa(Box::new(key)))
            }
            "PRIVATE KEY" => self.pkcs8(content),
            other => match other.strip_suffix(" PRIVATE KEY") {
                Some(kind) => Err(self.kind(kind)),
                None => Err(self.not_private()),
            },
        }
    }

    fn pkcs8(&self, content: &[u8]) -> Result<PrivateKey, KeyError> {
        let info = PrivateKeyInfoRef::try_from(content).map_err(|_| self.not_private())?;
        match info.algorithm.oid.to_string().as_str() {
            RSA => {
                let key = rsa::PrivateKey::from_pkcs8_der(content).map_err(|_| self.not_private())?;
                Ok(PrivateKey::Rsa(Box::new(key)))
            }
            // The key is an octet string of 32 bytes inside of another one (RFC 8410).
            ED25519 => match info.private_key.as_bytes() {
                [4, 32, seed @ ..] => {
                    let seed: [u8; 32] = seed.try_into().map_err(|_| self.not_private())?;
                    Ok(PrivateKey::Ed25519(Zeroizing::new(seed)))
                }
                _ => Err(self.not_private()),
            },
            "1.2.840.10045.2.1" => Err(self.kind("EC")),
            other => Err(self.kind(other)),
        }
    }

    fn openssh(&self, content: &[u8], passphrase: Option<&str>) -> Result<PrivateKey, KeyError> {
        let key = ssh_key::PrivateKey::from_bytes(content).map_err(|error| self.of_ssh(&error))?;
        let key = match (key.is_encrypted(), passphrase) {
            (false, None) => key,
            (false, Some(_)) => return Err(KeyError::NeedlessPassphrase { name: self.name.to_owned() }),
            (true, None) => return Err(self.missing()),
            (true, Some(passphrase)) => key.decrypt(passphrase).map_err(|error| match error {
                // The check of two equal numbers at the start of the key fails.
                ssh_key::Error::Crypto => self.wrong(),
                other => self.of_ssh(&other),
            })?,
        };
        match key.key_data() {
            KeypairData::Ed25519(pair) => Ok(PrivateKey::Ed25519(Zeroizing::new(pair.private.to_bytes()))),
            KeypairData::Rsa(pair) => Ok(PrivateKey::Rsa(Box::new(rsa_of_openssh(pair).ok_or(KeyError::InvalidRsa)?))),
            other => Err(self.kind(other.algorithm().map_or_else(|_| "unknown".to_owned(), |kind| kind.to_string()))),
        }
    }

    fn of_ssh(&self, error: &ssh_key::Error) -> KeyError {
        match error {
            ssh_key::Error::AlgorithmUnsupported { algorithm } => self.kind(algorithm.as_str()),
            ssh_key::Error::AlgorithmUnknown => self.kind("unknown"),
            _ => self.not_private(),
        }
    }
}

fn rsa_of_openssh(pair: &RsaKeypair) -> Option<rsa::PrivateKey> {
    let (public, private) = (pair.public(), pair.private());
    let value = |number_: &ssh_key::Mpint| number(number_.as_positive_bytes()?);
    let primes = vec![value(private.p())?, value(private.q())?];
    rsa::PrivateKey::from_components(value(public.n())?, value(public.e())?, value(private.d())?, primes).ok()
}
