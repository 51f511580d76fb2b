//! Secrets managers: keys, and the encryption of the secrets of a stack.
//!
//! Input: a passphrase, and the description of a secrets manager in a state. Output: a [`Crypter`]. Excluded: the
//! meaning of a secret's text, the environment, a prompt.

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
