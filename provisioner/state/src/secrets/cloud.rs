//! Secrets manager whose key is a data key that a key management service encrypts
//! (docs/spec/state-and-secrets.md#5.4).

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use tokio::task::JoinSet;
use zeroize::Zeroizing;

use super::error::SecretsError;
use super::key_service::{KeyAction, KeyError, KeyFailure, KeyService};
use super::manager::{Crypter, SecretsManager};
use super::symmetric::{KEY_LENGTH, SymmetricCrypter};
use crate::snapshot::SecretsDescription;

/// Name of the manager in a state.
pub(super) const KIND: &str = "cloud";
/// Schemes of the URLs of keys that are supported.
const SCHEMES: [&str; 4] = ["awskms", "gcpkms", "azurekeyvault", "hashivault"];

/// Services for the keys of one stack.
#[derive(Clone)]
pub(super) struct StackKeys {
    /// Services of the keys.
    pub(super) service: Arc<dyn KeyService>,
    /// Name of the stack, for errors.
    pub(super) stack: Arc<str>,
}

impl StackKeys {
    /// Returns the function that completes the reason of a failure.
    fn failed(&self, url: &str, action: KeyAction) -> impl FnOnce(KeyFailure) -> SecretsError + use<> {
        let (stack, url) = (self.stack.to_string(), url.to_owned());
        move |failure| SecretsError::Key(Box::new(KeyError { stack, url, action, failure }))
    }
}

type Decrypted = Result<Arc<SymmetricCrypter>, SecretsError>;

/// Decryption of a data key, not begun, running or finished.
type Decryption = Shared<BoxFuture<'static, Decrypted>>;

/// Secrets manager whose key a key management service decrypts, at most once.
pub(super) struct CloudManager {
    url: String,
    /// Encrypted data key in base64, as states and stack files contain it.
    encrypted_key: String,
    decryption: Decryption,
    /// Drives the decryption that [`SecretsManager::prepare`] begins. Aborted when the manager is dropped.
    background: Mutex<JoinSet<()>>,
}

impl CloudManager {
    /// Creates the manager that a state or a stack file describes. Sends no request.
    ///
    /// # Errors
    /// [`SecretsError`] if the description is incomplete or names a service that is not supported. `crypter` reports a
    /// failure of the service.
    pub(super) fn open_described(keys: StackKeys, description: &SecretsDescription) -> Result<Self, SecretsError> {
        let incomplete = || SecretsError::IncompleteDescription(KIND.to_owned());
        let url = url(description).ok_or_else(incomplete)?.to_owned();
        check_scheme(&url)?;
        let encrypted_key = encrypted_key(description).ok_or_else(incomplete)?.to_owned();
        let encrypted = BASE64.decode(&encrypted_key).map_err(|_| SecretsError::DataKey { url: url.clone() })?;
        let key_url = url.clone();
        let decryption = async move {
            let decrypted = keys.service.decrypt(&key_url, &encrypted).await;
            let decrypted = decrypted.map_err(keys.failed(&key_url, KeyAction::Decrypt))?;
            let key: &[u8; KEY_LENGTH] =
                decrypted.as_slice().try_into().map_err(|_| SecretsError::DataKey { url: key_url })?;
            Ok(Arc::new(SymmetricCrypter::new(&Zeroizing::new(*key))))
        };
        Ok(Self { url, encrypted_key, decryption: decryption.boxed().shared(), background: Mutex::default() })
    }

    /// Creates the manager of a stack that has no data key yet, with a new data key.
    ///
    /// # Errors
    /// [`SecretsError`] if the service is not supported or does not encrypt the data key, or the system returns no random
    /// numbers.
    pub(super) async fn create(keys: &StackKeys, url: &str) -> Result<Self, SecretsError> {
        check_scheme(url)?;
        let mut key = Zeroizing::new([0; KEY_LENGTH]);
        getrandom::fill(&mut *key).map_err(|_| SecretsError::Encrypt)?;
        let encrypted = keys.service.encrypt(url, &*key).await.map_err(keys.failed(url, KeyAction::Encrypt))?;
        let crypter = Arc::new(SymmetricCrypter::new(&key));
        Ok(Self {
            url: url.to_owned(),
            encrypted_key: BASE64.encode(encrypted),
            decryption: std::future::ready(Ok(crypter)).boxed().shared(),
            background: Mutex::default(),
        })
    }
}

#[async_trait]
impl SecretsManager for CloudManager {
    fn describe(&self) -> SecretsDescription {
        describe(&self.url, &self.encrypted_key)
    }

    fn prepare(&self) {
        let mut background = self.background.lock().unwrap_or_else(PoisonError::into_inner);
        if background.is_empty() && self.decryption.peek().is_none() {
            background.spawn(self.decryption.clone().map(drop));
        }
    }

    async fn crypter(&self) -> Result<Arc<dyn Crypter>, SecretsError> {
        let crypter: Arc<dyn Crypter> = self.decryption.clone().await?;
        Ok(crypter)
    }
}

/// Returns the description of a manager in a state. `encrypted_key` is in base64.
pub(crate) fn describe(url: &str, encrypted_key: &str) -> SecretsDescription {
    let state = serde_json::json!({ "url": url, "encryptedkey": encrypted_key });
    SecretsDescription { kind: KIND.to_owned(), state }
}

/// Returns the URL of the key in a description.
pub(super) fn url(description: &SecretsDescription) -> Option<&str> {
    description.state.get("url")?.as_str().filter(|url| !url.is_empty())
}

/// Returns the encrypted data key in a description, in base64. A stack file without one has an empty text.
pub(super) fn encrypted_key(description: &SecretsDescription) -> Option<&str> {
    description.state.get("encryptedkey")?.as_str().filter(|key| !key.is_empty())
}

/// Checks that the service of a key is supported.
fn check_scheme(url: &str) -> Result<(), SecretsError> {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    if SCHEMES.contains(&scheme) {
        return Ok(());
    }
    Err(SecretsError::UnsupportedKey { url: url.to_owned() })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::key_service::KeyFailureKind;
    use super::*;

    /// Inverts the bits of data keys, and counts the requests.
    #[derive(Default)]
    struct InvertingService {
        encryptions: AtomicUsize,
        decryptions: AtomicUsize,
        is_disabled: bool,
    }

    #[async_trait]
    impl KeyService for InvertingService {
        async fn encrypt(&self, _: &str, data_key: &[u8]) -> Result<Vec<u8>, KeyFailure> {
            self.encryptions.fetch_add(1, Ordering::Relaxed);
            Ok(data_key.iter().map(|byte| !byte).collect())
        }

        async fn decrypt(&self, _: &str, encrypted: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeyFailure> {
            self.decryptions.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
            if self.is_disabled {
                let message = "DisabledException: k is disabled".to_owned();
                return Err(KeyFailure { kind: KeyFailureKind::Disabled, message });
            }
            Ok(Zeroizing::new(encrypted.iter().map(|byte| !byte).collect()))
        }
    }

    fn keys(service: &Arc<InvertingService>) -> StackKeys {
        StackKeys { service: Arc::clone(service) as Arc<dyn KeyService>, stack: "organization/reef/dev".into() }
    }

    fn described(service: &Arc<InvertingService>, url: &str, encrypted: &[u8]) -> Result<CloudManager, SecretsError> {
        CloudManager::open_described(keys(service), &describe(url, &BASE64.encode(encrypted)))
    }

    #[tokio::test]
    async fn published_vector_is_decrypted_with_the_data_key() {
        let service = Arc::default();
        let encrypted: Vec<u8> = (0..32).map(|byte: u8| !byte).collect();
        let manager = described(&service, "awskms://reef?region=r&awssdk=v2", &encrypted).unwrap();
        let ciphertext = "v1:DA0ODxAREhMUFRYX:upEdrBoEoCYHGnu2ptdT12UwiMxxmShRV1Aclabxk5KmvqUK";
        let crypter = manager.crypter().await.unwrap();
        assert_eq!(crypter.decrypt(ciphertext).unwrap(), "\"otter\\u003c7\\u003e\"");
    }

    /// Shows: state.md#secrets "A run sends at most one request for the data key. It keeps the data key of the state"
    #[tokio::test]
    async fn data_key_is_decrypted_once_and_only_on_demand() {
        let service = Arc::new(InvertingService::default());
        let manager = Arc::new(described(&service, "awskms://reef", &[0; 32]).unwrap());
        assert_eq!(service.decryptions.load(Ordering::Relaxed), 0);
        manager.prepare();
        manager.prepare();
        let crypters = futures_util::future::join_all((0..5).map(|_| manager.crypter())).await;
        assert!(crypters.iter().all(Result::is_ok));
        manager.prepare();
        assert_eq!(service.decryptions.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn prepared_data_key_is_decrypted_in_the_background() {
        let service = Arc::new(InvertingService::default());
        let manager = described(&service, "gcpkms://k", &[0; 32]).unwrap();
        manager.prepare();
        while manager.decryption.peek().is_none() {
            tokio::task::yield_now().await;
        }
        assert_eq!(service.decryptions.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn new_data_key_is_encrypted_once_and_never_decrypted() {
        let service = Arc::new(InvertingService::default());
        let created = CloudManager::create(&keys(&service), "awskms://reef").await.unwrap();
        let ciphertext = created.crypter().await.unwrap().encrypt("otter").unwrap();
        assert_eq!([&service.encryptions, &service.decryptions].map(|count| count.load(Ordering::Relaxed)), [1, 0]);
        let opened = CloudManager::open_described(keys(&service), &created.describe()).unwrap();
        assert_eq!(opened.crypter().await.unwrap().decrypt(&ciphertext).unwrap(), "otter");
        let other = CloudManager::create(&keys(&service), "awskms://reef").await.unwrap();
        assert_ne!(created.describe(), other.describe());
    }

    #[tokio::test]
    async fn failure_of_the_service_names_stack_and_key() {
        let service = Arc::new(InvertingService { is_disabled: true, ..InvertingService::default() });
        let manager = described(&service, "awskms://reef?region=r", &[0; 32]).unwrap();
        for _ in 0..2 {
            let error = manager.crypter().await.err().unwrap();
            assert_eq!(
                error.to_string(),
                "the data key of stack organization/reef/dev cannot be decrypted with the key awskms://reef?region=r: the \
                 key is disabled: DisabledException: k is disabled"
            );
        }
        assert_eq!(service.decryptions.load(Ordering::Relaxed), 1, "a failed request is not repeated");
    }

    #[tokio::test]
    async fn descriptions_that_cannot_be_used_are_refused() {
        let service = Arc::default();
        let error = |url, key| {
            let opened = CloudManager::open_described(keys(&service), &describe(url, key));
            opened.err().unwrap().to_string()
        };
        assert_eq!(
            [
                error("", "AAAA"),
                error("awskms://reef", ""),
                error("awskms://reef", "no base64!"),
                error("otherkms://reef", "AAAA"),
                error("reef", "AAAA"),
            ],
            [
                "the description of the secrets manager \"cloud\" in the state is incomplete",
                "the description of the secrets manager \"cloud\" in the state is incomplete",
                "the data key that is encrypted with awskms://reef is malformed",
                "the key otherkms://reef is in a service of unknown type \"otherkms\"",
                "\"reef\" is not the URL of a key",
            ]
        );
        let short = described(&service, "awskms://reef", &[0; 16]).unwrap().crypter().await.err().unwrap();
        assert_eq!(short.to_string(), "the data key that is encrypted with awskms://reef is malformed");
    }
}
