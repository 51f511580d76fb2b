use super::*;

fn parse(url: &str) -> Result<S3Url, S3UrlError> {
    S3Url::parse(url, &BTreeMap::new())
}

fn refusal(url: &str) -> String {
    parse(url).unwrap_err().to_string()
}

#[test]
fn path_is_the_prefix_of_keys() {
    let cases = [
        ("s3://reef", "reef", "", "s3://reef"),
        ("s3://reef/", "reef", "", "s3://reef"),
        ("s3://reef?region=eu-west-1", "reef", "", "s3://reef"),
        ("s3://reef/team", "reef", "team/", "s3://reef/team"),
        ("s3://reef/team/", "reef", "team/", "s3://reef/team"),
        ("s3://reef//team/a", "reef", "team/a/", "s3://reef/team/a"),
        ("s3://reef/team%20a/%C3%A4", "reef", "team a/ä/", "s3://reef/team a/ä"),
        ("s3://Old_Bucket.eu/x?profile=ada&fips=true", "Old_Bucket.eu", "x/", "s3://Old_Bucket.eu/x"),
    ];
    for (url, bucket, prefix, location) in cases {
        let parsed = parse(url).unwrap();
        assert_eq!((parsed.bucket.as_str(), parsed.prefix.as_str()), (bucket, prefix), "{url}");
        assert_eq!(parsed.location(None), location, "{url}");
        assert_eq!(parsed.base(), format!("s3://{bucket}/{prefix}"), "{url}");
    }
}

/// Shows: state.md#in-s3 "or of another service with its interface, with Pulumi's parameters"
/// Shows: state.md#in-s3 "response_checksum_validation=when_supported` and directory buckets are refused"
#[test]
fn older_parameters_are_translated() {
    let cases = [
        ("endpoint=minio:9000", "https://minio:9000", false),
        ("endpoint=minio:9000&disableSSL=true", "http://minio:9000", true),
        ("disableSSL=true&endpoint=minio:9000", "http://minio:9000", true),
        ("endpoint=minio:9000&disable_https=true", "https://minio:9000", true),
        ("endpoint=http://minio:9000&disableSSL=false&disable_https=true", "http://minio:9000", false),
    ];
    for (query, endpoint, disable_https) in cases {
        let parsed = parse(&format!("s3://reef?{query}")).unwrap();
        assert_eq!(parsed.parameters.endpoint.as_deref(), Some(endpoint), "{query}");
        assert_eq!(parsed.disable_https, disable_https, "{query}");
    }
    assert!(parse("s3://reef?s3ForcePathStyle=true").unwrap().path_style);
    assert!(parse("s3://reef?use_path_style=1&s3ForcePathStyle=false").unwrap().path_style);
    assert!(parse("s3://reef?awssdk=v1").is_ok());
}

#[test]
fn checksums_are_sent_to_amazon_unless_they_are_switched_off() {
    let cases = [
        ("", None, true),
        ("endpoint=https://minio", None, false),
        ("endpoint=https://minio&request_checksum_calculation=when_supported", None, true),
        ("request_checksum_calculation=when_required", Some("when_supported"), false),
        ("endpoint=https://minio", Some("WHEN_SUPPORTED"), true),
        ("", Some("when_required"), false),
        ("", Some(""), true),
    ];
    for (query, variable, expected) in cases {
        let environment: BTreeMap<_, _> = variable
            .map(|value| ("AWS_REQUEST_CHECKSUM_CALCULATION".to_owned(), value.to_owned()))
            .into_iter()
            .collect();
        let parsed = S3Url::parse(&format!("s3://reef?{query}"), &environment).unwrap();
        assert_eq!(parsed.sends_checksums, expected, "{query} {variable:?}");
    }
}

#[test]
fn encryption_is_that_of_the_parameters() {
    let key = || Some("alias/state".to_owned());
    let cases = [
        ("", None),
        ("ssetype=AES256", Some(S3Encryption::S3)),
        ("ssetype=aes256", Some(S3Encryption::S3)),
        ("ssetype=aws:kms", Some(S3Encryption::Kms(None))),
        ("kmskeyid=alias/state&ssetype=aws:kms", Some(S3Encryption::Kms(key()))),
        ("ssetype=aws:kms:dsse&kmskeyid=alias/state", Some(S3Encryption::DualLayerKms(key()))),
    ];
    for (query, expected) in cases {
        assert_eq!(parse(&format!("s3://reef?{query}")).unwrap().encryption, expected, "{query}");
    }
}

/// Shows: state.md#in-s3 "or of another service with its interface, with Pulumi's parameters"
/// Shows: state.md#in-s3 "response_checksum_validation=when_supported` and directory buckets are refused"
#[test]
fn invalid_urls_are_refused_without_credentials() {
    let cases = [
        ("gs://reef", "the URL of a bucket begins with `s3://`"),
        (
            "s3://AKIA:secret@reef",
            "a URL has no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or use a profile",
        ),
        ("s3://", "`` is no name of a bucket: expected `s3://BUCKET/PREFIX`"),
        ("s3:///team", "`` is no name of a bucket: expected `s3://BUCKET/PREFIX`"),
        ("s3://minio:9000/reef", "`minio:9000` is no name of a bucket: expected `s3://BUCKET/PREFIX`"),
        (
            "s3://reef--use1-az4--x-s3",
            "`reef--use1-az4--x-s3` is a directory bucket (S3 Express One Zone), which is not supported: use a general \
             purpose bucket",
        ),
        ("s3://reef/a//b", "`a//b` is no prefix of keys: two slashes follow each other"),
        ("s3://reef/a/../b", "`a/../b` is no prefix of keys: a folder is `.` or `..`"),
        ("s3://reef/a%0Ab", "`a%0Ab` is no prefix of keys: it has a control character"),
        ("s3://reef/%FF", "`%FF` is no prefix of keys: it is not UTF-8"),
        ("s3://reef/a#b", "`a#b` is no prefix of keys: write `#` as `%23`"),
        ("s3://reef?access_key=hidden", "the URL of a bucket has no parameter `access_key`"),
        ("s3://reef?disableSSL=maybe", "parameter `disableSSL` cannot be `maybe`: expected `true` or `false`"),
        ("s3://reef?accelerate=", "parameter `accelerate` cannot be ``: expected `true` or `false`"),
        (
            "s3://reef?ssetype=aws:fsx",
            "parameter `ssetype` cannot be `aws:fsx`: expected `AES256`, `aws:kms` or `aws:kms:dsse`",
        ),
        (
            "s3://reef?kmskeyid=alias/state",
            "the parameter `kmskeyid` needs `ssetype=aws:kms` or `ssetype=aws:kms:dsse`",
        ),
        (
            "s3://reef?kmskeyid=alias/state&ssetype=AES256",
            "the parameter `kmskeyid` needs `ssetype=aws:kms` or `ssetype=aws:kms:dsse`",
        ),
        ("s3://reef?endpoint=minio&fips=true", "the parameters `endpoint` and `fips` exclude each other"),
        (
            "s3://reef?accelerate=true&use_path_style=true",
            "the parameters `accelerate` and `use_path_style` exclude each other",
        ),
        (
            "s3://reef.eu?accelerate=true",
            "parameter `accelerate` cannot be `true`: the name of an accelerated bucket has no dots",
        ),
        (
            "s3://reef?response_checksum_validation=when_supported",
            "parameter `response_checksum_validation` cannot be `when_supported`: checksums of received content are not \
             checked; remove the parameter",
        ),
        (
            "s3://reef?rate_limiter_capacity=20",
            "parameter `rate_limiter_capacity` cannot be `20`: repeated requests are limited by their time, not by their \
             number; remove the parameter",
        ),
    ];
    for (url, expected) in cases {
        assert_eq!(refusal(url), expected, "{url}");
    }
    let environment = BTreeMap::from([("AWS_REQUEST_CHECKSUM_CALCULATION".to_owned(), "never".to_owned())]);
    assert_eq!(
        S3Url::parse("s3://reef", &environment).unwrap_err().to_string(),
        "AWS_REQUEST_CHECKSUM_CALCULATION cannot be `never`: expected `when_supported` or `when_required`"
    );
}
