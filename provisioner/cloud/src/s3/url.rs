//! `s3://` URLs of stores (docs/spec/state-and-secrets.md#1).

use std::collections::BTreeMap;

use crate::aws::{AwsParameters, ChecksumMode, ParameterError, first_values, parse_bool};
use crate::bucket::parse_prefix;

/// Content of an `s3://` URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Url {
    /// Name of the bucket.
    pub bucket: String,
    /// Beginning of all keys: empty, or with a slash at its end.
    pub prefix: String,
    /// Region, credentials and endpoint.
    pub parameters: AwsParameters,
    /// Uses `http` for the endpoints of AWS.
    pub disable_https: bool,
    /// Keeps the bucket in the path instead of the host.
    pub path_style: bool,
    /// Uses the endpoint for transfer acceleration.
    pub accelerate: bool,
    /// Encryption by the service that each write requests; `None`: that of the bucket.
    pub encryption: Option<S3Encryption>,
    /// Sends a checksum (SHA-256) with each content, as buckets with object lock demand.
    pub sends_checksums: bool,
}

/// Encryption by the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum S3Encryption {
    /// Key of S3 (`AES256`).
    S3,
    /// Key of KMS (`aws:kms`); `None`: that of the account.
    Kms(Option<String>),
    /// Two layers with a key of KMS (`aws:kms:dsse`); `None`: that of the account.
    DualLayerKms(Option<String>),
}

/// Reason why a text is not the URL of a store in a bucket. It never contains a credential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum S3UrlError {
    /// Other scheme.
    #[error("the URL of a bucket begins with `s3://`")]
    Scheme,
    /// Credentials before the name of the bucket.
    #[error("a URL has no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or use a profile")]
    Credentials,
    /// Invalid name of a bucket.
    #[error("`{0}` is no name of a bucket: expected `s3://BUCKET/PREFIX`")]
    Bucket(String),
    /// Bucket of S3 Express.
    #[error("`{0}` is a directory bucket (S3 Express One Zone), which is not supported: use a general purpose bucket")]
    DirectoryBucket(String),
    /// Prefix that keys cannot have.
    #[error("`{prefix}` is no prefix of keys: {reason}")]
    Prefix {
        /// Prefix as it stands in the URL.
        prefix: String,
        /// Rule that it does not fulfil.
        reason: &'static str,
    },
    /// Unknown parameter.
    #[error("the URL of a bucket has no parameter `{0}`")]
    Unknown(String),
    /// Parameter with an invalid or unsupported value.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// Parameters that exclude each other.
    #[error("the parameters `{0}` and `{1}` exclude each other")]
    Conflict(&'static str, &'static str),
    /// `kmskeyid` without the encryption that uses it.
    #[error("the parameter `kmskeyid` needs `ssetype=aws:kms` or `ssetype=aws:kms:dsse`")]
    KeyWithoutKms,
    /// Invalid variable of the environment.
    #[error("AWS_REQUEST_CHECKSUM_CALCULATION cannot be `{0}`: expected `when_supported` or `when_required`")]
    ChecksumVariable(String),
}

impl S3Url {
    /// Parses a URL as Pulumi does, with its translations of older parameters. Of the environment, only
    /// `AWS_REQUEST_CHECKSUM_CALCULATION` is used.
    ///
    /// # Errors
    /// [`S3UrlError`]. A parameter that cannot be honoured is refused.
    pub fn parse(url: &str, environment: &BTreeMap<String, String>) -> Result<Self, S3UrlError> {
        let rest = url.strip_prefix("s3://").ok_or(S3UrlError::Scheme)?;
        let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (bucket, path) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.contains('@') {
            return Err(S3UrlError::Credentials);
        }
        if !is_bucket_name(bucket) {
            return Err(S3UrlError::Bucket(bucket.to_owned()));
        }
        if bucket.ends_with("--x-s3") {
            return Err(S3UrlError::DirectoryBucket(bucket.to_owned()));
        }
        if !fragment.is_empty() {
            let prefix = format!("{path}#{fragment}");
            return Err(S3UrlError::Prefix { prefix, reason: "write `#` as `%23`" });
        }
        let mut parsed = Self {
            bucket: bucket.to_owned(),
            prefix: parse_prefix(path).map_err(|reason| S3UrlError::Prefix { prefix: path.to_owned(), reason })?,
            parameters: AwsParameters::default(),
            disable_https: false,
            path_style: false,
            accelerate: false,
            encryption: None,
            sends_checksums: false,
        };
        parsed.set_parameters(query)?;
        parsed.check_conflicts()?;
        parsed.sends_checksums = parsed.checksums(environment)? == ChecksumMode::WhenSupported;
        Ok(parsed)
    }

    fn set_parameters(&mut self, query: &str) -> Result<(), S3UrlError> {
        let pairs = first_values(query);
        // The older name precedes the newer one.
        let disable_ssl = pairs.iter().find(|(name, _)| name == "disableSSL");
        let disable_ssl = disable_ssl.map(|(name, value)| parse_bool(name, value)).transpose()?;
        let mut encryption = None;
        let mut key = None;
        for (name, value) in &pairs {
            match name.as_str() {
                "disableSSL" => {}
                "disable_https" => self.disable_https = parse_bool(name, value)?,
                // Either of them switches it on.
                "use_path_style" | "s3ForcePathStyle" => self.path_style |= parse_bool(name, value)?,
                "accelerate" => self.accelerate = parse_bool(name, value)?,
                "ssetype" => encryption = Some(parse_encryption(name, value)?),
                "kmskeyid" if value.is_empty() => {
                    return Err(ParameterError::new(name, value, "expected the id, ARN or alias of a key").into());
                }
                "kmskeyid" => key = Some(value.clone()),
                "endpoint" if !value.is_empty() && !value.contains("://") => {
                    let scheme = if disable_ssl == Some(true) { "http" } else { "https" };
                    self.parameters.set(name, &format!("{scheme}://{value}"))?;
                }
                _ if self.parameters.set(name, value)? => {}
                _ => return Err(S3UrlError::Unknown(name.clone())),
            }
        }
        self.disable_https = disable_ssl.unwrap_or(self.disable_https);
        self.encryption = match (encryption, key) {
            (Some(S3Encryption::Kms(_)), key) => Some(S3Encryption::Kms(key)),
            (Some(S3Encryption::DualLayerKms(_)), key) => Some(S3Encryption::DualLayerKms(key)),
            (encryption, None) => encryption,
            (_, Some(_)) => return Err(S3UrlError::KeyWithoutKms),
        };
        Ok(())
    }

    fn check_conflicts(&self) -> Result<(), S3UrlError> {
        let endpoint = self.parameters.endpoint.is_some();
        let conflicts = [
            (endpoint && self.parameters.dualstack, "endpoint", "dualstack"),
            (endpoint && self.parameters.fips, "endpoint", "fips"),
            (endpoint && self.accelerate, "endpoint", "accelerate"),
            (self.accelerate && self.parameters.fips, "accelerate", "fips"),
            (self.accelerate && self.path_style, "accelerate", "use_path_style"),
        ];
        if let Some((_, one, other)) = conflicts.into_iter().find(|(is_present, ..)| *is_present) {
            return Err(S3UrlError::Conflict(one, other));
        }
        if self.accelerate && self.bucket.contains('.') {
            let expected = "the name of an accelerated bucket has no dots";
            return Err(ParameterError::new("accelerate", "true", expected).into());
        }
        if self.parameters.response_checksum_validation == Some(ChecksumMode::WhenSupported) {
            let expected = "checksums of received content are not checked; remove the parameter";
            return Err(ParameterError::new("response_checksum_validation", "when_supported", expected).into());
        }
        Ok(())
    }

    /// Returns when checksums are sent. Services with the interface of S3 may refuse them.
    fn checksums(&self, environment: &BTreeMap<String, String>) -> Result<ChecksumMode, S3UrlError> {
        if let Some(mode) = self.parameters.request_checksum_calculation {
            return Ok(mode);
        }
        let variable = environment.get("AWS_REQUEST_CHECKSUM_CALCULATION").filter(|value| !value.is_empty());
        match (variable.map(|value| value.to_ascii_lowercase()).as_deref(), &self.parameters.endpoint) {
            (Some("when_supported"), _) | (None, None) => Ok(ChecksumMode::WhenSupported),
            (Some("when_required"), _) | (None, Some(_)) => Ok(ChecksumMode::WhenRequired),
            (Some(other), _) => Err(S3UrlError::ChecksumVariable(other.to_owned())),
        }
    }

    /// Returns the URL to which a key is appended.
    pub(super) fn base(&self) -> String {
        format!("s3://{}/{}", self.bucket, self.prefix)
    }

    /// Returns the URL with those parameters that identify the store: names of buckets are unique within an endpoint.
    pub(super) fn location(&self, endpoint: Option<&str>) -> String {
        let base = self.base();
        let base = base.trim_end_matches('/');
        endpoint.map_or_else(|| base.to_owned(), |endpoint| format!("{base}?endpoint={endpoint}"))
    }
}

/// Accepts also names that only older buckets and other services have.
fn is_bucket_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    !name.is_empty() && name.len() <= 255 && name.bytes().all(is_allowed) && name != "." && name != ".."
}

fn parse_encryption(name: &str, value: &str) -> Result<S3Encryption, ParameterError> {
    match value.to_ascii_lowercase().as_str() {
        "aes256" => Ok(S3Encryption::S3),
        "aws:kms" => Ok(S3Encryption::Kms(None)),
        "aws:kms:dsse" => Ok(S3Encryption::DualLayerKms(None)),
        _ => Err(ParameterError::new(name, value, "expected `AES256`, `aws:kms` or `aws:kms:dsse`")),
    }
}

#[cfg(test)]
mod tests;
