//! The secrets manager whose key is derived from a passphrase (spec of the state, section 5.2).

use std::fmt;
use std::num::NonZeroU32;
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use aws_lc_rs::pbkdf2;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use zeroize::Zeroizing;

use super::error::SecretsError;
use super::manager::{Crypter, SecretsManager};
use super::symmetric::{KEY_LENGTH, SymmetricCrypter};
use crate::snapshot::SecretsDescription;

/// How the manager is named in a state.
pub(super) const KIND: &str = "passphrase";
/// What the verifier in a salt holds.
const VERIFIER: &str = "pulumi";
const ROUNDS: NonZeroU32 = NonZeroU32::new(1_000_000).expect("a million is not zero");
const SALT_LENGTH: usize = 8;

/// A passphrase. Wiped from memory when dropped; never shown.
#[derive(Clone)]
pub struct Passphrase(Zeroizing<String>);

impl Passphrase {
    /// Takes a passphrase verbatim; it may be empty.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }
}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[passphrase]")
    }
}

type Derived = Result<Arc<SymmetricCrypter>, SecretsError>;

/// What runs, or ran, on a thread of its own.
type Derivation = Shared<BoxFuture<'static, Derived>>;

/// Derives the key of a stack from a passphrase and the stack's salt.
///
/// The derivation takes some tenths of a second of one processor. It begins when the key is asked for, or expected to be.
pub struct PassphraseManager {
    salt: String,
    derivation: LazyLock<Derivation, Box<dyn FnOnce() -> Derivation + Send>>,
}

impl PassphraseManager {
    /// Opens a stack that has a salt (`encryptionsalt` in a stack file, `salt` in a state). The key must be asked for within
    /// a runtime.
    ///
    /// # Errors
    /// [`SecretsError::Salt`] if the salt is malformed. A wrong passphrase is found out when the key is asked for.
    pub fn open(passphrase: Passphrase, salt: &str) -> Result<Self, SecretsError> {
        let malformed = || SecretsError::Salt(salt.to_owned());
        let (raw, verifier) = split_salt(salt).ok_or_else(malformed)?;
        let verifier = verifier.to_owned();
        let work = move || {
            let crypter = derive(&passphrase, &raw);
            match crypter.decrypt(&verifier) {
                Ok(text) if text == VERIFIER => Ok(Arc::new(crypter)),
                Ok(_) | Err(_) => Err(SecretsError::WrongPassphrase),
            }
        };
        let begin = || {
            let thread = tokio::task::spawn_blocking(work);
            async { thread.await.unwrap_or(Err(SecretsError::Interrupted)) }.boxed().shared()
        };
        Ok(Self { salt: salt.to_owned(), derivation: LazyLock::new(Box::new(begin)) })
    }

    /// Makes a new salt, for a stack that has none.
    ///
    /// # Errors
    /// [`SecretsError::Encrypt`] if the system has no randomness to give.
    pub async fn create(passphrase: Passphrase) -> Result<Self, SecretsError> {
        let mut raw = [0; SALT_LENGTH];
        getrandom::fill(&mut raw).map_err(|_| SecretsError::Encrypt)?;
        let crypter = tokio::task::spawn_blocking(move || Arc::new(derive(&passphrase, &raw)))
            .await
            .map_err(|_| SecretsError::Interrupted)?;
        let salt = format!("v1:{}:{}", BASE64.encode(raw), crypter.encrypt(VERIFIER)?);
        let derived = || std::future::ready(Ok(crypter)).boxed().shared();
        Ok(Self { salt, derivation: LazyLock::new(Box::new(derived)) })
    }

    /// Opens the stack that a state describes.
    ///
    /// # Errors
    /// [`SecretsError`] if the state names another secrets manager, or no proper salt.
    pub fn open_described(passphrase: Passphrase, description: &SecretsDescription) -> Result<Self, SecretsError> {
        if description.kind != KIND {
            return Err(SecretsError::UnknownManager(description.kind.clone()));
        }
        let salt = description.state.get("salt").and_then(serde_json::Value::as_str);
        Self::open(passphrase, salt.ok_or_else(|| SecretsError::Undescribed(KIND.to_owned()))?)
    }

    /// The salt with its verifier, as stack files and states hold it.
    pub fn salt(&self) -> &str {
        &self.salt
    }
}

#[async_trait]
impl SecretsManager for PassphraseManager {
    fn describe(&self) -> SecretsDescription {
        SecretsDescription { kind: KIND.to_owned(), state: serde_json::json!({ "salt": self.salt }) }
    }

    fn prepare(&self) {
        LazyLock::force(&self.derivation);
    }

    async fn crypter(&self) -> Result<Arc<dyn Crypter>, SecretsError> {
        let crypter: Arc<dyn Crypter> = LazyLock::force(&self.derivation).clone().await?;
        Ok(crypter)
    }
}

/// The salt proper and the sealed verifier.
fn split_salt(salt: &str) -> Option<(Vec<u8>, &str)> {
    let (raw, verifier) = salt.strip_prefix("v1:")?.split_once(':')?;
    Some((BASE64.decode(raw).ok()?, verifier))
}

fn derive(passphrase: &Passphrase, salt: &[u8]) -> SymmetricCrypter {
    let mut key = Zeroizing::new([0; KEY_LENGTH]);
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, ROUNDS, salt, passphrase.0.as_bytes(), &mut *key);
    SymmetricCrypter::new(&key)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SALT: &str = "v1:obLD1OX2Bxg=:v1:AAECAwQFBgcICQoL:4k5vYY3TEksuSLXK3QiRhRl15zgSzw==";

    #[tokio::test]
    async fn the_published_salt_opens_with_its_passphrase() {
        let manager = PassphraseManager::open(Passphrase::new("tide-pool 42"), SALT).unwrap();
        assert_eq!(manager.describe().state["salt"], SALT);
        let sealed = "v1:DA0ODxAREhMUFRYX:yHvrvTMK9skYxs9/ie92x9vSH+bMVt2NEDvwXKxRpM+XNpy5";
        for _ in 0..2 {
            assert_eq!(manager.crypter().await.unwrap().decrypt(sealed).unwrap(), "\"otter\\u003c7\\u003e\"");
        }
    }

    #[test]
    fn nothing_is_derived_before_somebody_asks() {
        // A derivation would need a runtime.
        assert_eq!(PassphraseManager::open(Passphrase::new("tide-pool 42"), SALT).unwrap().salt(), SALT);
    }

    #[tokio::test]
    async fn a_wrong_passphrase_is_told_as_often_as_the_key_is_asked_for() {
        let manager = PassphraseManager::open(Passphrase::new("wrong"), SALT).unwrap();
        for _ in 0..2 {
            assert_eq!(manager.crypter().await.err(), Some(SecretsError::WrongPassphrase));
        }
    }

    #[tokio::test]
    async fn a_new_salt_opens_with_the_same_passphrase() {
        let created = PassphraseManager::create(Passphrase::new("")).await.unwrap();
        let sealed = created.crypter().await.unwrap().encrypt("text").unwrap();
        let opened = PassphraseManager::open_described(Passphrase::new(""), &created.describe()).unwrap();
        assert_eq!(opened.crypter().await.unwrap().decrypt(&sealed).unwrap(), "text");
    }

    #[tokio::test]
    async fn malformed_salts_are_refused_at_once() {
        for salt in ["", "v1:", "v1:!!:v1:x:y", "v2:obLD1OX2Bxg=:v1:a:b"] {
            let refused = PassphraseManager::open(Passphrase::new("x"), salt).err();
            assert_eq!(refused, Some(SecretsError::Salt(salt.to_owned())));
        }
    }

    #[test]
    fn a_passphrase_shows_nothing() {
        assert_eq!(format!("{:?}", Passphrase::new("tide-pool 42")), "[passphrase]");
    }
}
