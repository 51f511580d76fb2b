//! How the secrets of a stack are kept: who holds the key, and how a text is sealed with it.
//!
//! Enters: a passphrase, a description found in a state. Leaves: a [`Crypter`]. Never here: what a secret's text means, the
//! environment, a prompt.

mod error;
mod keyring;
mod manager;
mod marker;
mod passphrase;
mod reuse;
mod symmetric;

pub use error::SecretsError;
pub use keyring::Keyring;
pub use manager::{Crypter, SecretsManager};
pub use marker::MarkerManager;
pub use passphrase::{Passphrase, PassphraseManager};
pub use reuse::CiphertextReuse;
pub(super) use reuse::ReusePass;
pub use symmetric::SymmetricCrypter;
