//! URLs of keys.

use percent_encoding::percent_decode_str;
use state::secrets::{KeyFailure, KeyFailureKind};
use url::form_urlencoded;

use super::services::failure;

/// Parsed URL of a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KeyUrl {
    /// Text between the scheme and the parameters, decoded, without a leading slash.
    pub(super) key: String,
    /// Decoded parameters in the order of the URL.
    pub(super) parameters: Vec<(String, String)>,
}

pub(super) fn scheme(url: &str) -> &str {
    url.split_once("://").map_or("", |(scheme, _)| scheme)
}

impl KeyUrl {
    /// Parses the URL of a key.
    ///
    /// # Errors
    /// [`KeyFailureKind::Url`] if the key is missing or its text is no UTF-8.
    pub(super) fn parse(url: &str) -> Result<Self, KeyFailure> {
        let rest = url.split_once("://").map_or("", |(_, rest)| rest);
        let (key, query) = rest.split_once('?').unwrap_or((rest, ""));
        let decoded = percent_decode_str(key).decode_utf8();
        let key = decoded.map_err(|_| failure(KeyFailureKind::Url, "the name of the key is not UTF-8"))?;
        let key = key.trim_start_matches('/').trim_end_matches('/');
        if key.is_empty() {
            return Err(failure(KeyFailureKind::Url, "the name of the key is missing"));
        }
        let pairs = form_urlencoded::parse(query.as_bytes());
        let parameters = pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
        Ok(Self { key: key.to_owned(), parameters })
    }
}

pub(super) fn unknown_parameter(name: &str) -> KeyFailure {
    let name = bridge::error::shorten(name);
    failure(KeyFailureKind::Url, format!("unknown parameter {name:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_and_parameters_are_split_and_decoded() {
        let cases = [
            ("awskms://1234abcd-12ab?region=eu-north-1", "1234abcd-12ab", vec![("region", "eu-north-1")]),
            ("awskms://alias/reef", "alias/reef", vec![]),
            ("awskms:///arn:aws:kms:r:1:key/k?context_a=b%26c", "arn:aws:kms:r:1:key/k", vec![("context_a", "b&c")]),
            ("awskms:///alias%2Freef/?a=1&a=2", "alias/reef", vec![("a", "1"), ("a", "2")]),
            ("gcpkms://projects/p/cryptoKeys/k", "projects/p/cryptoKeys/k", vec![]),
        ];
        for (url, key, parameters) in cases {
            let parameters = parameters.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            assert_eq!(KeyUrl::parse(url).unwrap(), KeyUrl { key: key.to_owned(), parameters }, "{url}");
        }
        for url in ["awskms://", "awskms:///?region=r", "awskms://%ff", "reef"] {
            assert_eq!(KeyUrl::parse(url).unwrap_err().kind, KeyFailureKind::Url, "{url}");
        }
    }
}
