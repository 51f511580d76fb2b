//! Errors of the ciphers.
//!
//! Length: both ciphers have it.

/// Reason why an entry of the store cannot be decrypted, or a text not be encrypted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CipherError {
    /// An element is not base64.
    #[error("element {0} is not base64")]
    NotBase64(usize),
    /// An element is not one of the key, or was changed.
    #[error("element {0} was encrypted for another key, or it was changed")]
    Element(usize),
    /// The version of an element is not known.
    #[error("unsupported x25519 blob version: {0}")]
    Version(u8),
    /// The number of elements is wrong.
    #[error("ed25519 decryption expects exactly one chunk, but there are {0}")]
    Elements(usize),
    /// The key is too short for a text.
    #[error("the key is too short")]
    TooShort,
    /// The system has no random bytes, or the library refuses to work.
    #[error("the text cannot be encrypted")]
    Failed,
}
