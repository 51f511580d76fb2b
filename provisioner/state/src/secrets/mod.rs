//! Secrets managers: keys, and the encryption of the secrets of a stack.
//!
//! Input: a passphrase or the services of keys, and the description of a secrets manager in a state. Output: a
//! [`Crypter`]. Excluded: the meaning of a secret's text, the protocols of the services, the environment, a prompt.

mod cloud;
mod error;
mod key_hints;
mod key_service;
mod keyring;
mod manager;
mod marker;
mod passphrase;
mod provider;
mod reuse;
mod symmetric;

pub(super) use cloud::describe as describe_cloud;
pub use error::SecretsError;
pub use key_service::{KeyAction, KeyError, KeyFailure, KeyFailureKind, KeyService};
pub use keyring::Keyring;
pub use manager::{Crypter, SecretsManager};
pub use marker::MarkerManager;
pub use passphrase::{DerivationReport, Passphrase, PassphraseManager};
pub use provider::Provider;
pub use reuse::CiphertextReuse;
pub(super) use reuse::ReusePass;
pub use symmetric::SymmetricCrypter;
