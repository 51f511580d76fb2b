//! Errors of encrypting and decrypting secrets.

use std::borrow::Cow;

use bridge::error::Hint;

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

impl Hint for SecretsError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        let hint = match self {
            Self::WrongPassphrase | Self::NoPassphrase => {
                "the passphrase is `passPhrase` of the secrets provider in server.yaml, else PULUMI_CONFIG_PASSPHRASE"
            }
            Self::UnknownManager(_) => {
                "`pulumi stack change-secrets-provider passphrase` has a passphrase keep them; `sc stack export` needs no key"
            }
            _ => return None,
        };
        Some(hint.into())
    }
}
