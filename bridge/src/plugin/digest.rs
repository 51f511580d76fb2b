//! SHA-256 digests.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::PluginValueError;

/// The prefix that names the algorithm.
const PREFIX: &str = "sha256:";

/// A SHA-256 digest. Reads `sha256:<64 hex>` and bare `<64 hex>` in either case; writes `sha256:<64 lower-case hex>`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sha256Digest([u8; 32]);

impl Sha256Digest {
    /// The digest made of these bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 64 lower-case hexadecimal digits, without a prefix.
    pub fn to_hex(self) -> String {
        let mut text = String::with_capacity(64);
        for byte in self.0 {
            write!(text, "{byte:02x}").expect("writing to a string cannot fail");
        }
        text
    }
}

impl FromStr for Sha256Digest {
    type Err = PluginValueError;

    fn from_str(text: &str) -> Result<Self, PluginValueError> {
        let error = || PluginValueError::Digest(text.to_owned());
        let hex = text.strip_prefix(PREFIX).unwrap_or(text);
        if hex.len() != 64 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(error());
        }
        let mut bytes = [0; 32];
        for (byte, index) in bytes.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&hex[index..index + 2], 16).map_err(|_| error())?;
        }
        Ok(Self(bytes))
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
    fn a_digest_reads_with_and_without_its_prefix_and_in_either_case() {
        for text in
            [HEX.to_owned(), format!("sha256:{HEX}"), HEX.to_uppercase(), format!("sha256:{}", HEX.to_uppercase())]
        {
            assert_eq!(text.parse::<Sha256Digest>().unwrap().to_string(), format!("sha256:{HEX}"));
        }
    }

    #[test]
    fn anything_else_is_refused() {
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
