//! How the secrets of a stack are kept: who holds the key, and how a text is sealed with it.
//!
//! Enters: a passphrase, a description found in a state. Leaves: a [`Crypter`]. Never here: what a secret's text means, the
//! environment, a prompt.

mod keyring;
mod marker;
mod passphrase;
mod reuse;
mod symmetric;

use std::sync::Arc;

use async_trait::async_trait;

use super::snapshot::SecretsDescription;

pub use keyring::Keyring;
pub use marker::MarkerManager;
pub use passphrase::{Passphrase, PassphraseManager};
pub use reuse::CiphertextReuse;
pub(super) use reuse::ReusePass;
pub use symmetric::SymmetricCrypter;

/// Holds the key to the secrets of one stack, or knows how to get it.
#[async_trait]
pub trait SecretsManager: Send + Sync {
    /// How the manager is named in a state.
    fn describe(&self) -> SecretsDescription;

    /// Begins to make the key ready, where that takes a while: it is likely to be asked for. Must be called within a runtime.
    fn prepare(&self) {}

    /// The key in use. May take a while the first time.
    ///
    /// # Errors
    /// [`SecretsError`] if the key cannot be had.
    async fn crypter(&self) -> Result<Arc<dyn Crypter>, SecretsError>;
}

/// Seals and opens texts.
pub trait Crypter: Send + Sync {
    /// Seals a text. Two calls with the same text give different results.
    ///
    /// # Errors
    /// [`SecretsError::Encrypt`] if the system has no randomness to give.
    fn encrypt(&self, plaintext: &str) -> Result<String, SecretsError>;

    /// Opens a sealed text.
    ///
    /// # Errors
    /// [`SecretsError::Decrypt`] if it was not sealed with this key.
    fn decrypt(&self, ciphertext: &str) -> Result<String, SecretsError>;
}

/// Why a secret could not be sealed or opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretsError {
    /// The passphrase does not open the stack.
    #[error("incorrect passphrase")]
    WrongPassphrase,
    /// Nobody gave a passphrase.
    #[error("the stack is protected by a passphrase, and none was given")]
    NoPassphrase,
    /// The salt of a stack is not one.
    #[error("the encryption salt {0:?} is malformed (expected v1:SALT:v1:NONCE:TEXT)")]
    Salt(String),
    /// A state names a secrets manager that we do not have.
    #[error("the secrets of the stack are kept by {0:?}, which is not supported")]
    UnknownManager(String),
    /// A state names a secrets manager without saying enough about it.
    #[error("the state does not say how to find the key of its secrets manager {0:?}")]
    Undescribed(String),
    /// A secret turned up where nobody has the key at hand.
    #[error("a secret cannot be read or written without the stack's key")]
    KeyNeeded,
    /// A sealed text is damaged, or was sealed with another key.
    #[error("a secret cannot be decrypted with the stack's key")]
    Decrypt,
    /// No randomness.
    #[error("a secret cannot be encrypted: the system gives no random numbers")]
    Encrypt,
    /// The derivation of the key was cut off.
    #[error("the derivation of the stack's key was interrupted")]
    Interrupted,
}

impl SecretsError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::WrongPassphrase | Self::NoPassphrase => Some(
                "the passphrase is `passPhrase` of the secrets provider in server.yaml, else PULUMI_CONFIG_PASSPHRASE",
            ),
            Self::UnknownManager(_) => Some(
                "`pulumi stack change-secrets-provider passphrase` has a passphrase keep them; `sc stack export` needs no key",
            ),
            _ => None,
        }
    }
}
