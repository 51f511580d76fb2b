//! Errors of encrypting and decrypting secrets.

use bridge::error::Hint;
use bridge::message_text::MessageText;

use super::key_hints::key_hint;
use super::key_service::KeyError;

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
    /// The key is in a service that is not supported, or its URL names no service.
    #[error("{}", unsupported_key(url))]
    UnsupportedKey {
        /// URL of the key.
        url: String,
    },
    /// The encrypted data key of a state or a stack file is malformed.
    #[error("the data key that is encrypted with {url} is malformed")]
    DataKey {
        /// URL of the key.
        url: String,
    },
    /// The key that protects the secrets has not been created yet.
    #[error("the key that protects the secrets of the stack has not been created yet")]
    KeyNotCreated,
    /// A key management service did not encrypt or decrypt the data key.
    #[error(transparent)]
    Key(Box<KeyError>),
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
    fn hint(&self) -> Option<MessageText> {
        let hint = match self {
            Self::WrongPassphrase | Self::NoPassphrase => {
                "the passphrase is `passPhrase` of the secrets provider in server.yaml, else PULUMI_CONFIG_PASSPHRASE"
            }
            Self::UnknownManager(_) => {
                "`pulumi stack change-secrets-provider passphrase` protects the secrets by a passphrase; \
                 `sc stack export` needs no key"
            }
            Self::UnsupportedKey { .. } => {
                "supported are a passphrase, `awskms://…`, `gcpkms://…`, `azurekeyvault://…` and `hashivault://…`; \
                 `pulumi stack change-secrets-provider` moves the secrets of a stack to one of them"
            }
            Self::DataKey { .. } => {
                "restore an earlier state with `sc stack restore`, or the data key in the state or in the stack file"
            }
            Self::KeyNotCreated => "`sc provision` creates it before the stack",
            Self::Key(error) => return key_hint(&error.url, error.failure.kind).map(MessageText::from),
            _ => return None,
        };
        Some(hint.into())
    }
}

fn unsupported_key(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, _)) => format!("the key {url} is in a service of unknown type {scheme:?}"),
        None => format!("{url:?} is not the URL of a key"),
    }
}
