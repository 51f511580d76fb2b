//! Query parameters that the URLs of all services of AWS share (docs/spec/state-and-secrets.md#1).

use url::{Url, form_urlencoded};

/// Parameters of a URL that select region, credentials and endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AwsParameters {
    /// Region; `None`: that of the keys, the environment, the profile or the instance.
    pub region: Option<String>,
    /// Profile of the shared files; its credentials precede those of the environment.
    pub profile: Option<String>,
    /// Base URL of the service, with scheme.
    pub endpoint: Option<String>,
    /// ARN of a role to assume with the credentials that are found.
    pub role: Option<String>,
    /// Sends requests without a signature.
    pub anonymous: bool,
    /// Uses endpoints that have an IPv6 address too.
    pub dualstack: bool,
    /// Uses endpoints with FIPS 140 cryptography.
    pub fips: bool,
    /// Never changes the host of `endpoint`: a bucket is part of the path.
    pub hostname_immutable: bool,
    /// Checksums of sent content; `None`: the default of the service.
    pub request_checksum_calculation: Option<ChecksumMode>,
    /// Checks of the checksums of received content; `None`: the default of the service.
    pub response_checksum_validation: Option<ChecksumMode>,
}

/// Extent to which checksums are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksumMode {
    /// Wherever the service has them.
    WhenSupported,
    /// Only where the service demands them.
    WhenRequired,
}

/// Parameter with an invalid or unsupported value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("parameter `{name}` cannot be `{value}`: {expected}")]
pub struct ParameterError {
    /// Name of the parameter.
    pub name: String,
    /// Value of the parameter, without credentials.
    pub value: String,
    /// Accepted values, or the reason why this one is not supported.
    pub expected: &'static str,
}

impl AwsParameters {
    /// Takes one parameter over. Returns `false` if it is none of these: the caller refuses it, or it is its own. An
    /// empty region, profile or endpoint is the same as a missing one.
    ///
    /// # Errors
    /// [`ParameterError`] if the value is invalid.
    pub fn set(&mut self, name: &str, value: &str) -> Result<bool, ParameterError> {
        let text = || (!value.is_empty()).then(|| value.to_owned());
        match name {
            "region" => self.region = text(),
            "profile" => self.profile = text(),
            "endpoint" => self.endpoint = text().map(|endpoint| check_endpoint(&endpoint)).transpose()?,
            "role" if value.starts_with("arn:") => self.role = text(),
            "role" => return Err(ParameterError::new(name, value, "expected the ARN of a role (`arn:…`)")),
            "anonymous" => self.anonymous = parse_bool(name, value)?,
            "dualstack" => self.dualstack = parse_bool(name, value)?,
            "fips" => self.fips = parse_bool(name, value)?,
            "hostname_immutable" => self.hostname_immutable = parse_bool(name, value)?,
            "rate_limiter_capacity" => check_capacity(value)?,
            "request_checksum_calculation" => self.request_checksum_calculation = Some(parse_mode(name, value)?),
            "response_checksum_validation" => self.response_checksum_validation = Some(parse_mode(name, value)?),
            // It named the version of Pulumi's own client.
            "awssdk" => {}
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl ParameterError {
    /// Creates the error of a value.
    pub fn new(name: &str, value: &str, expected: &'static str) -> Self {
        Self { name: name.to_owned(), value: value.to_owned(), expected }
    }
}

/// Returns the decoded parameters of a query in their order; of a repeated one, like Pulumi, only the first.
pub fn first_values(query: &str) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        if !pairs.iter().any(|(known, _)| *known == name) {
            pairs.push((name.into_owned(), value.into_owned()));
        }
    }
    pairs
}

/// Parses a bool like Go's `strconv.ParseBool`.
pub(crate) fn parse_bool(name: &str, value: &str) -> Result<bool, ParameterError> {
    match value {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(ParameterError::new(name, value, "expected `true` or `false`")),
    }
}

fn parse_mode(name: &str, value: &str) -> Result<ChecksumMode, ParameterError> {
    match value.to_ascii_lowercase().as_str() {
        "when_supported" => Ok(ChecksumMode::WhenSupported),
        "when_required" => Ok(ChecksumMode::WhenRequired),
        _ => Err(ParameterError::new(name, value, "expected `when_supported` or `when_required`")),
    }
}

/// Accepts a capacity that switches the limit off, which is the default.
fn check_capacity(value: &str) -> Result<(), ParameterError> {
    let expected = match value.parse::<i32>() {
        Ok(..=0) => return Ok(()),
        Ok(_) => "repeated requests are limited by their time, not by their number; remove the parameter",
        Err(_) => "expected an integer",
    };
    Err(ParameterError::new("rate_limiter_capacity", value, expected))
}

/// Returns an endpoint without a slash at its end.
pub(crate) fn check_endpoint(endpoint: &str) -> Result<String, ParameterError> {
    let refuse = |value: &str, expected| Err(ParameterError::new("endpoint", value, expected));
    let expected = "expected a URL such as `https://storage.example.org:9000`";
    let Ok(url) = Url::parse(endpoint) else {
        // A text with an `@` may have a password.
        return refuse(if endpoint.contains('@') { "…@…" } else { endpoint }, expected);
    };
    if !url.username().is_empty() || url.password().is_some() {
        let host = format!("{}://…@{}", url.scheme(), url.host_str().unwrap_or_default());
        return refuse(&host, "an endpoint has no user name and no password");
    }
    let is_web = matches!(url.scheme(), "http" | "https") && url.host_str().is_some();
    if !is_web || url.query().is_some() || url.fragment().is_some() {
        return refuse(endpoint, expected);
    }
    Ok(endpoint.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str) -> Result<AwsParameters, String> {
        let mut parameters = AwsParameters::default();
        for (name, value) in first_values(query) {
            match parameters.set(&name, &value) {
                Ok(true) => {}
                Ok(false) => return Err(format!("unknown: {name}")),
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(parameters)
    }

    #[test]
    fn parameters_are_taken_over() {
        let none = AwsParameters::default();
        let some = |text: &str| Some(text.to_owned());
        let cases = [
            ("", none.clone()),
            ("region=eu-west-1", AwsParameters { region: some("eu-west-1"), ..none.clone() }),
            ("region=a&region=b", AwsParameters { region: some("a"), ..none.clone() }),
            ("region=&profile=&endpoint=", none.clone()),
            ("profile=team%20a", AwsParameters { profile: some("team a"), ..none.clone() }),
            (
                "endpoint=http%3A%2F%2Fminio%3A9000%2F",
                AwsParameters { endpoint: some("http://minio:9000"), ..none.clone() },
            ),
            ("endpoint=https://h/base", AwsParameters { endpoint: some("https://h/base"), ..none.clone() }),
            ("role=arn:aws:iam::1:role/r", AwsParameters { role: some("arn:aws:iam::1:role/r"), ..none.clone() }),
            (
                "anonymous=1&fips=T&dualstack=TRUE&hostname_immutable=true",
                AwsParameters {
                    anonymous: true,
                    dualstack: true,
                    fips: true,
                    hostname_immutable: true,
                    ..none.clone()
                },
            ),
            ("anonymous=f&awssdk=v2&rate_limiter_capacity=0", none.clone()),
            (
                "request_checksum_calculation=WHEN_REQUIRED&response_checksum_validation=when_supported",
                AwsParameters {
                    request_checksum_calculation: Some(ChecksumMode::WhenRequired),
                    response_checksum_validation: Some(ChecksumMode::WhenSupported),
                    ..none
                },
            ),
        ];
        for (query, expected) in cases {
            assert_eq!(parse(query), Ok(expected), "{query}");
        }
    }

    #[test]
    fn invalid_values_are_refused_without_credentials() {
        let cases = [
            ("colour=red", "unknown: colour"),
            ("anonymous=", "parameter `anonymous` cannot be ``: expected `true` or `false`"),
            ("fips=yes", "parameter `fips` cannot be `yes`: expected `true` or `false`"),
            ("role=admin", "parameter `role` cannot be `admin`: expected the ARN of a role (`arn:…`)"),
            ("rate_limiter_capacity=many", "parameter `rate_limiter_capacity` cannot be `many`: expected an integer"),
            (
                "rate_limiter_capacity=20",
                "parameter `rate_limiter_capacity` cannot be `20`: repeated requests are limited by their time, not by their \
                 number; remove the parameter",
            ),
            (
                "request_checksum_calculation=never",
                "parameter `request_checksum_calculation` cannot be `never`: expected `when_supported` or `when_required`",
            ),
            (
                "endpoint=minio:9000",
                "parameter `endpoint` cannot be `minio:9000`: expected a URL such as `https://storage.example.org:9000`",
            ),
            (
                "endpoint=ftp://minio",
                "parameter `endpoint` cannot be `ftp://minio`: expected a URL such as `https://storage.example.org:9000`",
            ),
            (
                "endpoint=https://ada:secret@minio",
                "parameter `endpoint` cannot be `https://…@minio`: an endpoint has no user name and no password",
            ),
            (
                "endpoint=https://ada:secret@minio:90000000",
                "parameter `endpoint` cannot be `…@…`: expected a URL such as `https://storage.example.org:9000`",
            ),
        ];
        for (query, expected) in cases {
            assert_eq!(parse(query), Err(expected.to_owned()), "{query}");
        }
    }
}
