//! Address of a bucket.

use url::{Host, Url};

use super::url::S3Url;
use crate::aws::Domains;

/// Address of a bucket, and whether its host has the name of the bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BucketAddress {
    /// URL, with the bucket in its host or without the bucket.
    pub(super) url: String,
    /// The bucket is in the host.
    pub(super) is_virtual_hosted: bool,
}

/// Settings of the environment and the profile.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EndpointSettings<'a> {
    /// Base URL that replaces those of AWS.
    pub(super) endpoint: Option<&'a str>,
    /// Endpoints with an IPv6 address too.
    pub(super) dualstack: bool,
    /// Endpoints with FIPS 140 cryptography.
    pub(super) fips: bool,
}

impl BucketAddress {
    pub(super) fn new(url: &S3Url, region: &str, settings: EndpointSettings<'_>) -> Self {
        match settings.endpoint {
            Some(endpoint) => Self::at(url, endpoint),
            None => Self::of_amazon(url, region, settings),
        }
    }

    fn at(url: &S3Url, endpoint: &str) -> Self {
        let parsed = Url::parse(endpoint).ok();
        let host = parsed.as_ref().and_then(Url::host);
        let has_subdomains = matches!(host, Some(Host::Domain(domain)) if domain != "localhost");
        let is_secure = endpoint.starts_with("https:");
        let is_virtual_hosted = has_subdomains
            && !url.path_style
            && !url.parameters.hostname_immutable
            && is_host_label(&url.bucket, is_secure);
        let url = match endpoint.split_once("://") {
            Some((scheme, rest)) if is_virtual_hosted => format!("{scheme}://{}.{rest}", url.bucket),
            _ => endpoint.to_owned(),
        };
        Self { url, is_virtual_hosted }
    }

    fn of_amazon(url: &S3Url, region: &str, settings: EndpointSettings<'_>) -> Self {
        let scheme = if url.disable_https { "http" } else { "https" };
        let dualstack = if settings.dualstack { ".dualstack" } else { "" };
        // With an IPv6 address too, the hosts of S3 have the same domain.
        let suffix = Domains::of(region).standard;
        let host = if url.accelerate {
            format!("s3-accelerate{dualstack}.{suffix}")
        } else {
            let fips = if settings.fips { "-fips" } else { "" };
            format!("s3{fips}{dualstack}.{region}.{suffix}")
        };
        let is_virtual_hosted = !url.path_style && is_host_label(&url.bucket, !url.disable_https);
        let bucket = if is_virtual_hosted { format!("{}.", url.bucket) } else { String::new() };
        Self { url: format!("{scheme}://{bucket}{host}"), is_virtual_hosted }
    }
}

/// Returns whether a bucket can be part of a host. The certificates of the service have one label before its host.
fn is_host_label(bucket: &str, is_secure: bool) -> bool {
    let is_edge = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let bytes = bucket.as_bytes();
    let is_allowed =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-' || *byte == b'.' && !is_secure;
    (3..=63).contains(&bytes.len()) && bytes.iter().all(is_allowed) && is_edge(bytes.first()) && is_edge(bytes.last())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn bucket_is_in_the_host_where_that_is_possible() {
        let cases = [
            ("s3://reef", "eu-west-1", "https://reef.s3.eu-west-1.amazonaws.com"),
            ("s3://reef?use_path_style=true", "eu-west-1", "https://s3.eu-west-1.amazonaws.com"),
            ("s3://reef.eu", "eu-west-1", "https://s3.eu-west-1.amazonaws.com"),
            ("s3://reef.eu?disable_https=true", "eu-west-1", "http://reef.eu.s3.eu-west-1.amazonaws.com"),
            ("s3://Old_Bucket", "us-east-1", "https://s3.us-east-1.amazonaws.com"),
            (
                "s3://reef?fips=true&dualstack=true",
                "us-east-1",
                "https://reef.s3-fips.dualstack.us-east-1.amazonaws.com",
            ),
            ("s3://reef?accelerate=true", "us-east-1", "https://reef.s3-accelerate.amazonaws.com"),
            ("s3://reef", "cn-north-1", "https://reef.s3.cn-north-1.amazonaws.com.cn"),
            ("s3://reef?endpoint=https://storage.example.org/base", "r", "https://reef.storage.example.org/base"),
            (
                "s3://reef?endpoint=https://storage.example.org&s3ForcePathStyle=true",
                "r",
                "https://storage.example.org",
            ),
            (
                "s3://reef?endpoint=https://storage.example.org&hostname_immutable=true",
                "r",
                "https://storage.example.org",
            ),
            ("s3://reef?endpoint=http://127.0.0.1:9000", "r", "http://127.0.0.1:9000"),
            ("s3://reef?endpoint=http://localhost:9000", "r", "http://localhost:9000"),
            ("s3://reef?endpoint=http://[::1]:9000", "r", "http://[::1]:9000"),
        ];
        for (url, region, expected) in cases {
            let url = S3Url::parse(url, &BTreeMap::new()).unwrap();
            let settings = EndpointSettings {
                endpoint: url.parameters.endpoint.as_deref(),
                dualstack: url.parameters.dualstack,
                fips: url.parameters.fips,
            };
            let address = BucketAddress::new(&url, region, settings);
            assert_eq!(address.url, expected, "{url:?}");
            assert_eq!(address.is_virtual_hosted, address.url.contains(&format!("//{}.", url.bucket)), "{url:?}");
        }
    }
}
