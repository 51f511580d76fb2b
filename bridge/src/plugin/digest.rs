//! SHA-256 digests.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::PluginValueError;

/// Prefix that names the algorithm.
const PREFIX: &str = "sha256:";

/// SHA-256 digest. Parses `sha256:<64 hex>` and `<64 hex>` in upper and lower case; displays `sha256:<64 lower-case
/// hex>`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sha256Digest([u8; 32]);

impl Sha256Digest {
    /// Creates a digest from its bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Computes the digest of a content.
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        Self::finish(Sha256::new_with_prefix(bytes))
    }

    /// The digest of a hasher.
    pub fn finish(hasher: Sha256) -> Self {
        Self(hasher.finalize().into())
    }

    /// Returns 64 lower-case hexadecimal digits, without a prefix.
    pub fn to_hex(self) -> String {
        hex::encode(self.0)
    }
}

impl FromStr for Sha256Digest {
    type Err = PluginValueError;

    fn from_str(text: &str) -> Result<Self, PluginValueError> {
        let mut bytes = [0; 32];
        let read = hex::decode_to_slice(text.strip_prefix(PREFIX).unwrap_or(text), &mut bytes);
        read.map(|()| Self(bytes)).map_err(|_| PluginValueError::Digest(text.to_owned()))
    }
}

impl TryFrom<String> for Sha256Digest {
    type Error = PluginValueError;

    fn try_from(text: String) -> Result<Self, PluginValueError> {
        text.parse()
    }
}

impl From<Sha256Digest> for String {
    fn from(digest: Sha256Digest) -> Self {
        digest.to_string()
    }
}

impl fmt::Display for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.to_hex())
    }
}

impl fmt::Debug for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEX: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn digest_is_parsed_with_and_without_prefix_in_any_case() {
        for text in
            [HEX.to_owned(), format!("sha256:{HEX}"), HEX.to_uppercase(), format!("sha256:{}", HEX.to_uppercase())]
        {
            assert_eq!(text.parse::<Sha256Digest>().unwrap().to_string(), format!("sha256:{HEX}"));
        }
    }

    #[test]
    fn invalid_digest_is_refused() {
        for bad in [
            "",
            "sha256:",
            &HEX[1..],
            &format!("{HEX}0"),
            &format!("md5:{HEX}"),
            &HEX.replace('e', "g"),
            &HEX.replace("e3", "é"),
        ] {
            assert_eq!(bad.parse::<Sha256Digest>(), Err(PluginValueError::Digest(bad.to_owned())));
        }
    }
}
