//! Errors of the store. No message holds a secret.

use bridge::error::Hint;
use bridge::fs::FileError;
use bridge::message_text::MessageText;
use bridge::shell::operand;

use crate::ciphers::CipherError;
use crate::keys::{KeyError, PublicKey};
use crate::paths::{PathError, STORE_PATH};
use crate::store::ReadError;

/// Reason why the store cannot be read or edited. Nothing was changed, unless a variant says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum SecretsStoreError {
    /// The text of the store is not that of a store.
    #[error("{}", unreadable(.0))]
    Unreadable(ReadError),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A path is not one of a secret file.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The store has nothing for the key of the profile.
    #[error("current public key ({key}) is not found in secrets: no decryption can be made")]
    NotRecipient {
        /// Key of the profile.
        key: PublicKey,
        /// True if the store has no recipients at all.
        is_empty: bool,
    },
    /// An entry cannot be decrypted.
    #[error("failed to decrypt secret file {path:?} with configured public key {:?}", key.short())]
    Decrypt {
        /// Path of the file.
        path: String,
        /// Key of the profile.
        key: PublicKey,
        /// Cause.
        #[source]
        source: CipherError,
    },
    /// A file cannot be encrypted for a recipient.
    #[error("failed to encrypt secret file {path:?} with public key {:?}", key.short())]
    Encrypt {
        /// Path of the file.
        path: String,
        /// Key of the recipient.
        key: PublicKey,
        /// Cause.
        #[source]
        source: CipherError,
    },
    /// The key of a recipient in the store has no cipher.
    #[error("nothing can be encrypted for the public key {:?}", key.short())]
    Recipient {
        /// Key of the recipient.
        key: PublicKey,
        /// Cause.
        #[source]
        source: KeyError,
    },
    /// A registered file is not on the disk.
    #[error("failed to read secret file {path:?}")]
    MissingFile {
        /// Path of the file.
        path: String,
        /// Cause.
        #[source]
        source: FileError,
    },
    /// A path is not registered.
    #[error("{path:?} is not in the store")]
    NotRegistered {
        /// The path.
        path: String,
        /// Registered paths.
        known: Vec<String>,
    },
    /// A file that is to be edited has another text on the disk.
    #[error("{path:?} has another text on the disk than in the store")]
    DiffersOnDisk {
        /// Path of the file.
        path: String,
    },
    /// A key is not one of a recipient.
    #[error("public key {:?} not found in secrets", key.as_str())]
    UnknownRecipient {
        /// The key.
        key: PublicKey,
    },
    /// The key is that of the profile, which removes no access of its own.
    #[error("the key {:?} is that of the profile", key.short())]
    OwnKey {
        /// The key.
        key: PublicKey,
    },
    /// The store has keys without a meaning, which an edit would drop.
    #[error("{STORE_PATH} has keys that this sc does not know: {}", .0.join(", "))]
    UnknownKeys(Vec<String>),
    /// The store was changed while the edit was prepared.
    #[error("{STORE_PATH} was changed by another program meanwhile")]
    Conflict,
}

fn unreadable(error: &ReadError) -> String {
    match (error, error.position()) {
        (_, Some((line, column, problem))) => format!("{STORE_PATH}:{line}:{column}: {problem}"),
        (ReadError::TooNew { .. }, None) => format!("{STORE_PATH} was written by a newer program: {error}"),
        (ReadError::Malformed(_) | ReadError::Incomplete { .. }, None) => format!("{STORE_PATH}: {error}"),
    }
}

impl Hint for SecretsStoreError {
    fn hint(&self) -> Option<MessageText> {
        let hint = match self {
            Self::Unreadable(ReadError::TooNew { .. }) => {
                "use a version of sc that supports it; the store was left as it is".to_owned()
            }
            Self::Unreadable(ReadError::Malformed(_) | ReadError::Incomplete { .. }) => {
                "correct the file, or restore it from git; it was not taken for an empty store".to_owned()
            }
            Self::Key(error) => return error.hint(),
            Self::Recipient { key, source } => match source {
                KeyError::RsaSize(_) => {
                    format!("remove the recipient: sc secrets disallow {}", operand(&key.to_string()))
                }
                other => return other.hint(),
            },
            Self::Path(PathError::Outside(_) | PathError::Invalid(_)) => {
                "give the path of a file in the repository; it starts at the root of the repository".to_owned()
            }
            Self::Path(PathError::Reserved(_)) => "give the path of another file".to_owned(),
            Self::Path(PathError::Profile(path) | PathError::PrivateKey(path)) => format!(
                "whoever reads it can decrypt all files of the store: keep it out of the store. If the store names it, find out \
                 who has registered it, and remove it: `sc secrets delete {}`",
                operand(path)
            ),
            Self::NotRecipient { is_empty: true, .. } => {
                "the store is empty: `sc secrets add PATH` adds a file and the key of the profile".to_owned()
            }
            Self::NotRecipient { key, .. } => {
                format!(
                    "somebody who can reveal the secrets adds the key: sc secrets allow {}",
                    operand(&key.to_string())
                )
            }
            Self::Decrypt { .. } => {
                "restore the entry from the history of git, or let another recipient delete and add the file".to_owned()
            }
            Self::MissingFile { .. } => {
                "`sc secrets reveal` writes the files that are registered; paths start at the root of the repository"
                    .to_owned()
            }
            Self::NotRegistered { known, .. } if known.is_empty() => "the store has no files".to_owned(),
            Self::NotRegistered { known, .. } => format!("the store has: {}", known.join(", ")),
            Self::DiffersOnDisk { .. } => {
                "`sc secrets hide` encrypts the text on the disk, `sc secrets reveal` writes that of the store"
                    .to_owned()
            }
            Self::UnknownRecipient { .. } => "`sc secrets allowed-keys` lists the keys".to_owned(),
            Self::OwnKey { .. } => "let another recipient remove it, or use the profile of another key".to_owned(),
            Self::UnknownKeys(_) => {
                "use a version of sc that knows them, or remove them: an edit would drop them".to_owned()
            }
            Self::Conflict => "run the command again".to_owned(),
            Self::Encrypt { source: CipherError::TooShort, .. } => "use a longer key".to_owned(),
            Self::File(_) | Self::Encrypt { .. } => return None,
        };
        Some(hint.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_in_a_hint_quotes_the_path() {
        let hint = |path: &str| {
            let error = SecretsStoreError::Path(PathError::PrivateKey(path.to_owned()));
            error.hint().unwrap().into_string()
        };
        assert!(hint("keys/id_rsa").ends_with("`sc secrets delete keys/id_rsa`"));
        assert!(hint("-k $(id)\"").ends_with("`sc secrets delete -- '-k $(id)\"'`"));
    }
}
