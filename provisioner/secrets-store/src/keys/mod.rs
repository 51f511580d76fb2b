//! SSH keys: public keys of recipients, private keys, and the keys of a profile.
//!
//! Input: texts of keys. Output: keys that the ciphers use, RSA and Ed25519. Excluded: encryption of files.

mod error;
mod found;
mod generate;
mod legacy_pem;
mod own;
mod private;
mod public;

pub use error::KeyError;
pub use found::has_private_key;
pub(crate) use found::private_keys;
pub use generate::KeyPair;
pub(crate) use own::key_file;
pub use own::{KeyConfig, OwnKeys};
pub use private::PrivateKey;
pub(crate) use private::{agreement_scalar, public_part};
pub use public::{PublicKey, Recipient};

/// Converts the bytes of a positive number, most significant byte first.
fn number(bytes: &[u8]) -> Option<rsa::BoxedUint> {
    rsa::BoxedUint::from_be_slice(bytes, u32::try_from(bytes.len() * 8).ok()?).ok()
}
