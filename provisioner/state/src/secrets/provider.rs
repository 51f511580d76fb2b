//! Secrets providers: the kinds of keys that protect the secrets of a stack.

use std::fmt;

use super::{cloud, passphrase};
use crate::snapshot::SecretsDescription;

/// Secrets provider: the kind of key that protects the secrets of a stack, without the part that belongs to one stack
/// (a salt, an encrypted data key).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Provider {
    /// A passphrase.
    Passphrase,
    /// A key in a key management service.
    Key {
        /// Pulumi's URL of the key, verbatim.
        url: String,
    },
}

impl Provider {
    /// Returns the provider of a secrets manager; `None` for one that needs neither a passphrase nor a key.
    pub fn of(description: &SecretsDescription) -> Option<Self> {
        match description.kind.as_str() {
            passphrase::KIND => Some(Self::Passphrase),
            cloud::KIND => cloud::url(description).map(|url| Self::Key { url: url.to_owned() }),
            _ => None,
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passphrase => f.write_str("a passphrase"),
            Self::Key { url } => write!(f, "the key {url}"),
        }
    }
}
