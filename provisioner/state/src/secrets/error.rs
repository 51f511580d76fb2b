//! Errors of encrypting and decrypting secrets.

use std::borrow::Cow;

use bridge::error::Hint;

/// Reason why a secret could not be encrypted or decrypted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretsError {
    /// The passphrase does not match the salt of the stack.
    #[error("incorrect passphrase")]
    WrongPassphrase,
    /// No passphrase was given.
    #[error("the stack is protected by a passphrase, and none was given")]
    NoPassphrase,
    /// The salt of a stack is malformed.
    #[error("the encryption salt {0:?} is malformed (expected v1:SALT:v1:NONCE:TEXT)")]
    Salt(String),
    /// The state names an unsupported secrets manager.
    #[error("the secrets manager {0:?} of the stack is not supported")]
    UnknownManager(String),
    /// The description of the secrets manager in the state is incomplete.
    #[error("the description of the secrets manager {0:?} in the state is incomplete")]
    IncompleteDescription(String),
    /// A secret has to be read or written, and the key is not loaded.
    #[error("a secret cannot be read or written without the stack's key")]
    KeyNeeded,
    /// A ciphertext is damaged, or was encrypted with another key.
    #[error("a secret cannot be decrypted with the stack's key")]
    Decrypt,
    /// The system returned no random numbers.
    #[error("a secret cannot be encrypted: the system gives no random numbers")]
    Encrypt,
    /// The derivation of the key was interrupted.
    #[error("the derivation of the stack's key was interrupted")]
    Interrupted,
}

impl Hint for SecretsError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        let hint = match self {
            Self::WrongPassphrase | Self::NoPassphrase => {
                "the passphrase is `passPhrase` of the secrets provider in server.yaml, else PULUMI_CONFIG_PASSPHRASE"
            }
            Self::UnknownManager(_) => {
                "`pulumi stack change-secrets-provider passphrase` protects the secrets by a passphrase; \
                 `sc stack export` needs no key"
            }
            _ => return None,
        };
        Some(hint.into())
    }
}
