//! Errors of keys. No message quotes a private key or a passphrase.

use bridge::error::{Hint, shorten};
use bridge::fs::FileError;
use bridge::message_text::MessageText;

/// Reason why a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// A text is not a line with a public key.
    #[error("failed to parse public key: {:?}: it is not an OpenSSH public key", shorten(.0))]
    NotPublic(String),
    /// A text is the beginning of a PEM file, which is hardly a public key.
    #[error("failed to parse public key: a file that begins with `-----BEGIN` is not one, and may be a private key")]
    Pem,
    /// The type of a public key has no cipher.
    #[error("unsupported key type for encryption: {0}")]
    UnsupportedPublic(String),
    /// The size of an RSA key is not supported.
    #[error("an RSA key with {0} bits is not supported")]
    RsaSize(u32),
    /// The numbers of an RSA key do not fit each other.
    #[error("the numbers of the RSA key are invalid")]
    InvalidRsa,
    /// A text is not a private key.
    #[error("{name} is not a private key in the format of OpenSSH or PEM")]
    NotPrivate {
        /// File or field of the key.
        name: String,
    },
    /// The type of a private key has no cipher.
    #[error("unsupported private key type: {kind} in {name}")]
    UnsupportedPrivate {
        /// File or field of the key.
        name: String,
        /// Type of the key.
        kind: String,
    },
    /// The encryption of a private key is not supported.
    #[error("{name} is encrypted with {cipher}, which is not supported")]
    UnsupportedEncryption {
        /// File or field of the key.
        name: String,
        /// Encryption of the key.
        cipher: String,
    },
    /// A private key is encrypted, and there is no passphrase.
    #[error("{name} is encrypted, and the profile has no passphrase")]
    PassphraseMissing {
        /// File or field of the key.
        name: String,
    },
    /// The passphrase does not decrypt the private key.
    #[error("the passphrase of {name} is incorrect")]
    WrongPassphrase {
        /// File or field of the key.
        name: String,
    },
    /// The private key is not encrypted, but the profile has a passphrase.
    #[error("{name} is not encrypted, but the profile has a passphrase")]
    NeedlessPassphrase {
        /// File or field of the key.
        name: String,
    },
    /// The profile has a private key and a path of one.
    #[error("both private key path and private key are configured")]
    BothPrivate,
    /// The profile has no public key.
    #[error("public key is not configured")]
    NoPublic,
    /// The profile has no private key.
    #[error("private key is not configured")]
    NoPrivate,
    /// The file of a key cannot be read.
    #[error("the file of `{field}` cannot be used")]
    File {
        /// Field of the profile.
        field: &'static str,
        /// Cause.
        #[source]
        source: FileError,
    },
    /// The file of a key is a path of a user who does not exist.
    #[error("the home folder in the path {0:?} is unknown")]
    NoHome(String),
    /// The private key belongs to another public key.
    #[error("{name} does not belong to the public key of the profile")]
    Mismatch {
        /// File or field of the private key.
        name: String,
    },
}

impl Hint for KeyError {
    fn hint(&self) -> Option<MessageText> {
        let hint = match self {
            Self::NotPublic(_) | Self::Pem => {
                "give the line of a file such as ~/.ssh/id_ed25519.pub: the type and the key"
            }
            Self::UnsupportedPublic(_) | Self::UnsupportedPrivate { .. } | Self::RsaSize(_) | Self::InvalidRsa => {
                "use an Ed25519 key, or an RSA key with 2048 bits or more: `ssh-keygen -t ed25519`"
            }
            Self::NotPrivate { .. } => {
                "`privateKeyPath` names the file of a private key; `privateKey` is the text of one, from its line `-----BEGIN` on"
            }
            Self::UnsupportedEncryption { .. } => {
                "convert the key with `ssh-keygen -p -f FILE`, which writes the format of OpenSSH"
            }
            Self::PassphraseMissing { .. } => "set `privateKeyPassword` in the profile",
            Self::WrongPassphrase { .. } => "correct `privateKeyPassword` in the profile",
            Self::NeedlessPassphrase { .. } => "remove `privateKeyPassword` from the profile",
            Self::BothPrivate => "remove `privateKeyPath` or `privateKey` from the profile",
            Self::NoPublic => "set `publicKeyPath` or `publicKey` in the profile, or run `sc secrets init`",
            Self::NoPrivate => "set `privateKeyPath` or `privateKey` in the profile",
            Self::File { .. } | Self::NoHome(_) => {
                "correct the path in the profile: a relative path starts at the root of the repository"
            }
            Self::Mismatch { .. } => "both keys of the profile must be of one pair",
        };
        Some(hint.into())
    }
}
