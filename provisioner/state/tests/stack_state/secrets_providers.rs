//! Selection of the secrets manager with which a state is written.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use state::secrets::{KeyFailure, KeyFailureKind, KeyService, Keyring, Passphrase, Provider, SecretsError};
use state::{SecretsChange, SecretsDescription, Snapshot, StackAccess, StackState, StackView, StateError};
use zeroize::Zeroizing;

use crate::fixture::{Fixture, holder, secret_resource};

/// Encrypts a data key as the URL of the key, a line break and the data key, and counts the requests.
#[derive(Default)]
struct MarkingService {
    encryptions: AtomicUsize,
    decryptions: AtomicUsize,
    disabled: Mutex<Option<String>>,
}

impl MarkingService {
    fn check(&self, url: &str) -> Result<(), KeyFailure> {
        if self.disabled.lock().unwrap().as_deref() == Some(url) {
            return Err(KeyFailure { kind: KeyFailureKind::Disabled, message: "DisabledException".to_owned() });
        }
        Ok(())
    }

    /// Returns the numbers of encryptions and decryptions since the previous call.
    fn requests(&self) -> [usize; 2] {
        [&self.encryptions, &self.decryptions].map(|count| count.swap(0, Ordering::Relaxed))
    }
}

#[async_trait]
impl KeyService for MarkingService {
    async fn encrypt(&self, url: &str, data_key: &[u8]) -> Result<Vec<u8>, KeyFailure> {
        self.encryptions.fetch_add(1, Ordering::Relaxed);
        self.check(url)?;
        Ok([format!("{url}\n").as_bytes(), data_key].concat())
    }

    async fn decrypt(&self, url: &str, encrypted: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeyFailure> {
        self.decryptions.fetch_add(1, Ordering::Relaxed);
        self.check(url)?;
        let data_key = encrypted.strip_prefix(format!("{url}\n").as_bytes());
        let message = "InvalidCiphertextException".to_owned();
        let other = KeyFailure { kind: KeyFailureKind::OtherKey, message };
        data_key.map(|key| Zeroizing::new(key.to_vec())).ok_or(other)
    }
}

const REEF: &str = "awskms://alias/reef?region=eu-north-1&context_team=reef";
const SHORE: &str = "gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/shore";

struct Stack {
    fixture: Fixture,
    service: Arc<MarkingService>,
}

impl Stack {
    async fn new() -> Self {
        Self { fixture: Fixture::new().await, service: Arc::default() }
    }

    fn access(&self, provider: Option<Provider>, substitute: Option<&str>) -> StackAccess {
        let service = Arc::clone(&self.service) as Arc<dyn KeyService>;
        let keyring =
            Keyring::new(Some(Passphrase::new("tide-pool 42"))).with_key_service(service, "organization/reef/dev");
        let keyring = match provider {
            Some(provider) => keyring.with_provider(provider),
            None => keyring,
        };
        let keyring = Arc::new(keyring.with_substitute(substitute.map(str::to_owned)));
        StackAccess { keyring, configured_secrets: None, ..self.fixture.access.clone() }
    }

    /// Makes a run that saves a secret. Returns the change of the secrets manager.
    async fn run(&self, access: &StackAccess) -> Result<Option<SecretsChange>, StateError> {
        let state = StackState::open(access.clone(), &holder()).await?;
        let change = state.secrets_change().cloned();
        let snapshot = Snapshot { resources: vec![secret_resource("a")], ..state.snapshot().clone() };
        state.close(snapshot, None).await?;
        Ok(change)
    }

    /// Returns the secrets manager that the state names, after it has read the secret.
    async fn description(&self, access: &StackAccess) -> SecretsDescription {
        let snapshot = StackView::open(access).await.unwrap().snapshot.unwrap();
        assert_eq!(snapshot.resources[0].inputs, secret_resource("a").inputs);
        snapshot.secrets.unwrap()
    }

    async fn text(&self) -> String {
        self.fixture.access.store.text(&self.fixture.stack).await.unwrap().unwrap()
    }
}

fn key(url: &str) -> Option<Provider> {
    Some(Provider::Key { url: url.to_owned() })
}

#[tokio::test]
async fn state_keeps_its_provider_and_a_new_one_waits_until_the_key_is_created() {
    let stack = Stack::new().await;
    let awaiting = || {
        let keyring = Arc::new(Keyring::new(Some(Passphrase::new("tide-pool 42"))).awaiting_key());
        StackAccess { keyring, ..stack.access(None, None) }
    };
    let error = stack.run(&awaiting()).await.unwrap_err();
    assert!(matches!(error, StateError::Secrets(SecretsError::KeyNotCreated)), "{error}");
    assert_eq!(stack.fixture.access.store.text(&stack.fixture.stack).await.unwrap(), None);
    assert_eq!(stack.fixture.access.store.locks(&stack.fixture.stack).await.unwrap(), []);
    stack.run(&stack.access(Some(Provider::Passphrase), None)).await.unwrap();
    let described = stack.description(&awaiting()).await;
    assert_eq!(stack.run(&awaiting()).await.unwrap(), None);
    assert_eq!(stack.description(&awaiting()).await, described);
}

/// Shows: state.md#secrets "A run sends at most one request for the data key. It keeps the data key of the state"
#[tokio::test]
async fn data_key_of_a_state_is_kept_and_decrypted_once_in_each_run() {
    let stack = Stack::new().await;
    assert_eq!(stack.run(&stack.access(key(REEF), None)).await.unwrap(), None);
    assert_eq!(stack.service.requests(), [1, 0], "a new data key is not decrypted");
    let text = stack.text().await;
    assert!(text.contains(r#"{"type":"cloud","state":{"url":"awskms://alias/reef?region=eu-north-1\u0026context_team=reef","encryptedkey":"#), "{text}");

    let access = stack.access(key(REEF), None);
    let first = stack.description(&access).await;
    assert_eq!(stack.run(&access).await.unwrap(), None);
    assert_eq!(stack.description(&access).await, first);
    assert_eq!(stack.service.requests(), [0, 1], "all reads and writes of a run share one decryption");
}

#[tokio::test]
async fn state_without_secrets_needs_no_key() {
    let stack = Stack::new().await;
    for expected in [[1, 0], [0, 0], [0, 0]] {
        let access = stack.access(key(REEF), None);
        let state = StackState::open(access.clone(), &holder()).await.unwrap();
        let snapshot = state.snapshot().clone();
        state.close(snapshot, None).await.unwrap();
        StackView::open(&access).await.unwrap();
        assert_eq!(stack.service.requests(), expected);
    }
}

/// Shows: state.md#secrets "If the state has another one, all secrets are encrypted anew with the next save, and `sc`
///   says so."
#[tokio::test]
async fn state_of_another_provider_is_encrypted_anew_and_the_change_is_reported() {
    let stack = Stack::new().await;
    let providers = [Some(Provider::Passphrase), key(REEF), key(SHORE), Some(Provider::Passphrase)];
    let mut before: Option<SecretsDescription> = None;
    for provider in providers {
        let access = stack.access(provider.clone(), None);
        let change = stack.run(&access).await.unwrap();
        let after = stack.description(&access).await;
        assert_eq!(Provider::of(&after), provider);
        assert_eq!(change, before.map(|from| SecretsChange { from, to: after.clone() }));
        before = Some(after);
        // Without a choice the state keeps its provider.
        let unchanged = stack.access(None, None);
        assert_eq!(stack.run(&unchanged).await.unwrap(), None);
        assert_eq!(Some(stack.description(&unchanged).await), before);
    }
}

/// Shows: server-yaml.md#secrets-provider "`PULUMI_CLOUD_SECRET_OVERRIDE` replaces the URL of a key for one run."
#[tokio::test]
async fn substitute_replaces_a_key_for_one_run_and_no_passphrase() {
    let stack = Stack::new().await;
    stack.run(&stack.access(key(REEF), None)).await.unwrap();
    let substituted = stack.access(key(REEF), Some(SHORE));
    assert!(stack.run(&substituted).await.unwrap().is_some());
    let first = stack.description(&substituted).await;
    assert_eq!(Provider::of(&first), key(SHORE));
    let again = stack.access(key(REEF), Some(SHORE));
    assert_eq!(stack.run(&again).await.unwrap(), None);
    assert_eq!(stack.description(&again).await, first, "the data key is kept while the URL is the same");
    assert!(stack.run(&stack.access(key(REEF), None)).await.unwrap().is_some());

    let passphrase = stack.access(Some(Provider::Passphrase), Some(SHORE));
    stack.run(&passphrase).await.unwrap();
    assert_eq!(Provider::of(&stack.description(&passphrase).await), Some(Provider::Passphrase));
}

/// Shows: state.md#secrets "The provider is that of `Pulumi.<stack>.yaml` if that file names one"
#[tokio::test]
async fn manager_of_the_stack_file_is_used_for_writing() {
    let stack = Stack::new().await;
    stack.run(&stack.access(key(REEF), None)).await.unwrap();
    let in_state = stack.description(&stack.access(None, None)).await;
    let with_file = |description: SecretsDescription| StackAccess {
        configured_secrets: Some(description),
        ..stack.access(Some(Provider::Passphrase), None)
    };
    let described = |url: &str, key: &str| {
        let state = serde_json::json!({ "url": url, "encryptedkey": key });
        SecretsDescription { kind: "cloud".to_owned(), state }
    };
    // A file with the key of the state and without a data key.
    let access = with_file(described(REEF, ""));
    assert_eq!(stack.run(&access).await.unwrap(), None);
    assert_eq!(stack.description(&access).await, in_state);
    // A file with another key and without a data key.
    let access = with_file(described(SHORE, ""));
    assert!(stack.run(&access).await.unwrap().is_some());
    let moved = stack.description(&access).await;
    assert_eq!(Provider::of(&moved), key(SHORE));
    // A file with a data key of its own.
    stack.run(&stack.access(key(REEF), None)).await.unwrap();
    let access = with_file(moved.clone());
    assert!(stack.run(&access).await.unwrap().is_some());
    assert_eq!(stack.description(&access).await, moved);
}

/// Shows: state.md#secrets "name the stack, the URL of the key and the words of the service"
/// Shows: state.md#secrets "The state is unchanged then."
#[tokio::test]
async fn failing_key_leaves_the_state_unchanged() {
    let stack = Stack::new().await;
    stack.run(&stack.access(key(REEF), None)).await.unwrap();
    let before = stack.text().await;
    for disabled in [REEF, SHORE] {
        *stack.service.disabled.lock().unwrap() = Some(disabled.to_owned());
        let error = stack.run(&stack.access(key(SHORE), None)).await.err().unwrap();
        let mut error: &dyn std::error::Error = &error;
        while let Some(source) = error.source() {
            error = source;
        }
        let expected = if disabled == REEF { "decrypted" } else { "encrypted" };
        let text = error.to_string();
        let expected = format!(
            "the data key of stack organization/reef/dev cannot be {expected} with the key {disabled}: the key is disabled: DisabledException"
        );
        assert_eq!(text, expected);
        assert_eq!(stack.text().await, before);
    }
    *stack.service.disabled.lock().unwrap() = None;
    assert!(stack.fixture.access.store.locks(&stack.fixture.stack).await.unwrap().is_empty());
    stack.description(&stack.access(None, None)).await;
}
