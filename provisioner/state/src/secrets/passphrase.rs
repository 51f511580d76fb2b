//! Secrets manager whose key is derived from a passphrase (docs/spec/state-and-secrets.md#5.2).

use std::any::Any;
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

/// Name of the manager in a state.
pub(super) const KIND: &str = "passphrase";
/// Plaintext of the verifier in a salt.
const VERIFIER: &str = "pulumi";
const ROUNDS: NonZeroU32 = NonZeroU32::new(1_000_000).expect("a million is not zero");
const SALT_LENGTH: usize = 8;

/// Passphrase, wiped from memory when dropped and never printed.
#[derive(Clone)]
pub struct Passphrase(Zeroizing<String>);

impl Passphrase {
    /// Wraps a passphrase verbatim; it may be empty.
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

/// Derivation of a key on a blocking thread, running or finished.
type Derivation = Shared<BoxFuture<'static, Derived>>;

/// Called when the derivation of a key begins. The returned value is dropped at the end of the derivation.
pub type DerivationReport = Arc<dyn Fn() -> Box<dyn Any + Send> + Send + Sync>;

/// Secrets manager that derives the key of a stack from a passphrase and the stack's salt.
///
/// The derivation takes some tenths of a second of one processor. The first call of `prepare` or `crypter` starts it.
pub struct PassphraseManager {
    salt: String,
    derivation: LazyLock<Derivation, Box<dyn FnOnce() -> Derivation + Send>>,
}

impl PassphraseManager {
    /// Creates the manager of a stack that has a salt (`encryptionsalt` in a stack file, `salt` in a state). `prepare`
    /// and `crypter` must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`SecretsError::Salt`] if the salt is malformed. `crypter` reports a wrong passphrase.
    pub fn open(passphrase: Passphrase, salt: &str) -> Result<Self, SecretsError> {
        Self::open_reporting(passphrase, salt, None)
    }

    /// Creates the manager as [`PassphraseManager::open`] does, and reports its derivation.
    fn open_reporting(
        passphrase: Passphrase,
        salt: &str,
        report: Option<DerivationReport>,
    ) -> Result<Self, SecretsError> {
        let malformed = || SecretsError::Salt(salt.to_owned());
        let (raw, verifier) = split_salt(salt).ok_or_else(malformed)?;
        let verifier = verifier.to_owned();
        let work = move || {
            let _deriving = report.map(|report| report());
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

    /// Creates the manager of a stack that has no salt yet, with a new salt.
    ///
    /// # Errors
    /// [`SecretsError::Encrypt`] if the system returns no random numbers.
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

    /// Creates the manager that a state describes.
    ///
    /// # Errors
    /// [`SecretsError`] if the state names another secrets manager, or has no valid salt.
    pub fn open_described(passphrase: Passphrase, description: &SecretsDescription) -> Result<Self, SecretsError> {
        Self::open_described_reporting(passphrase, description, None)
    }

    /// Creates the manager as [`PassphraseManager::open_described`] does, and reports its derivation.
    pub(super) fn open_described_reporting(
        passphrase: Passphrase,
        description: &SecretsDescription,
        report: Option<DerivationReport>,
    ) -> Result<Self, SecretsError> {
        if description.kind != KIND {
            return Err(SecretsError::UnknownManager(description.kind.clone()));
        }
        let salt = description.state.get("salt").and_then(serde_json::Value::as_str);
        let salt = salt.ok_or_else(|| SecretsError::IncompleteDescription(KIND.to_owned()))?;
        Self::open_reporting(passphrase, salt, report)
    }

    /// Returns the salt with its verifier, as stack files and states contain it.
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

/// Splits a salt into the raw salt and the encrypted verifier.
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
    async fn published_salt_matches_its_passphrase() {
        let manager = PassphraseManager::open(Passphrase::new("tide-pool 42"), SALT).unwrap();
        assert_eq!(manager.describe().state["salt"], SALT);
        let ciphertext = "v1:DA0ODxAREhMUFRYX:yHvrvTMK9skYxs9/ie92x9vSH+bMVt2NEDvwXKxRpM+XNpy5";
        for _ in 0..2 {
            assert_eq!(manager.crypter().await.unwrap().decrypt(ciphertext).unwrap(), "\"otter\\u003c7\\u003e\"");
        }
    }

    /// Shows: performance.md#performance "A run that changes nothing and has no secrets does not derive the key"
    #[test]
    fn key_is_derived_only_on_demand() {
        // There is no runtime: a started derivation would panic.
        assert_eq!(PassphraseManager::open(Passphrase::new("tide-pool 42"), SALT).unwrap().salt(), SALT);
    }

    #[tokio::test]
    async fn wrong_passphrase_is_reported_at_each_request_of_the_key() {
        let manager = PassphraseManager::open(Passphrase::new("wrong"), SALT).unwrap();
        for _ in 0..2 {
            assert_eq!(manager.crypter().await.err(), Some(SecretsError::WrongPassphrase));
        }
    }

    #[tokio::test]
    async fn new_salt_matches_its_passphrase() {
        let created = PassphraseManager::create(Passphrase::new("")).await.unwrap();
        let ciphertext = created.crypter().await.unwrap().encrypt("text").unwrap();
        let opened = PassphraseManager::open_described(Passphrase::new(""), &created.describe()).unwrap();
        assert_eq!(opened.crypter().await.unwrap().decrypt(&ciphertext).unwrap(), "text");
    }

    #[tokio::test]
    async fn malformed_salt_is_refused_when_the_manager_is_created() {
        for salt in ["", "v1:", "v1:!!:v1:x:y", "v2:obLD1OX2Bxg=:v1:a:b"] {
            let refused = PassphraseManager::open(Passphrase::new("x"), salt).err();
            assert_eq!(refused, Some(SecretsError::Salt(salt.to_owned())));
        }
    }

    #[test]
    fn passphrase_is_not_printed() {
        assert_eq!(format!("{:?}", Passphrase::new("tide-pool 42")), "[passphrase]");
    }
}
