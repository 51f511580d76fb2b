//! Interface of the key management services that encrypt data keys.

use std::fmt;

use async_trait::async_trait;
use zeroize::Zeroizing;

/// Encrypts and decrypts data keys with keys in key management services. A key is named by its URL
/// (docs/spec/state-and-secrets.md#5.4).
#[async_trait]
pub trait KeyService: Send + Sync {
    /// Encrypts a data key.
    ///
    /// # Errors
    /// [`KeyFailure`].
    async fn encrypt(&self, url: &str, data_key: &[u8]) -> Result<Vec<u8>, KeyFailure>;

    /// Decrypts a data key.
    ///
    /// # Errors
    /// [`KeyFailure`].
    async fn decrypt(&self, url: &str, encrypted: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeyFailure>;
}

/// Reason why a key management service did not encrypt or decrypt, with its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFailure {
    /// Kind of the failure.
    pub kind: KeyFailureKind,
    /// Text of the service, or of the connection to it. Contains no secret.
    pub message: String,
}

/// Kind of a [`KeyFailure`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFailureKind {
    /// The URL of the key is malformed, or has an unknown parameter.
    Url,
    /// The service has no such key, or not in this region.
    UnknownKey,
    /// The URL of the key, or the URL and the settings, name different regions.
    OtherRegion,
    /// The key is disabled or awaits its deletion.
    Disabled,
    /// The account may not use the key.
    Denied,
    /// The data key was encrypted with another key or in another context.
    OtherKey,
    /// No credentials were found, or they have expired.
    Credentials,
    /// There was no reply within the deadline.
    Unreachable,
    /// The server waits until somebody unseals it.
    Sealed,
    /// The program has no clients of key management services.
    NoClients,
    /// Any other failure.
    Other,
}

impl fmt::Display for KeyFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            KeyFailureKind::Url => "its URL is invalid",
            KeyFailureKind::UnknownKey => "there is no such key",
            KeyFailureKind::OtherRegion => "the key is in another region",
            KeyFailureKind::Disabled => "the key is disabled",
            KeyFailureKind::Denied => "access to the key is denied",
            KeyFailureKind::OtherKey => "the data key was encrypted with another key or in another context",
            KeyFailureKind::Credentials => "there are no valid credentials",
            KeyFailureKind::Unreachable => "the key management service does not reply",
            KeyFailureKind::Sealed => "the server is sealed",
            KeyFailureKind::NoClients => "this build of sc has no clients of key management services",
            KeyFailureKind::Other => "the key management service failed",
        };
        write!(f, "{kind}: {}", self.message)
    }
}

impl std::error::Error for KeyFailure {}

/// Use of the key of a stack that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the data key of stack {stack} cannot be {} with the key {url}: {failure}", action.participle())]
pub struct KeyError {
    /// Name of the stack.
    pub stack: String,
    /// URL of the key.
    pub url: String,
    /// Use of the key.
    pub action: KeyAction,
    /// Reason.
    pub failure: KeyFailure,
}

/// Use of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyAction {
    /// Encryption of a new data key.
    Encrypt,
    /// Decryption of the data key of a state.
    Decrypt,
}

impl KeyAction {
    fn participle(self) -> &'static str {
        match self {
            Self::Encrypt => "encrypted",
            Self::Decrypt => "decrypted",
        }
    }
}
