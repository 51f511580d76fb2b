//! Failures of requests to S3, in words for the user.

use std::sync::Arc;

use async_trait::async_trait;
use state::store::{ObjectErrorKind, ObjectVersion};

use super::credentials::ChainCredentials;
use crate::bucket::{BucketService, Failure, Reply, TransportFailure};

/// Words and credentials of S3.
pub(super) struct S3Service {
    /// Name of the bucket.
    pub(super) bucket: String,
    /// Region that requests are signed for.
    pub(super) region: String,
    /// Host of the requests.
    pub(super) host: String,
    /// Sources of credentials that are configured.
    pub(super) sources: String,
    /// Credentials; `None`: requests are anonymous.
    pub(super) credentials: Option<Arc<ChainCredentials>>,
}

/// Codes of invalid credentials, with the reason.
const CREDENTIALS: [(&str, &str); 8] = [
    ("ExpiredToken", "have expired"),
    ("ExpiredTokenException", "have expired"),
    ("TokenRefreshRequired", "have expired"),
    ("InvalidToken", "have an invalid session token"),
    ("InvalidAccessKeyId", "have an access key that does not exist"),
    ("InvalidClientTokenId", "have an access key that does not exist"),
    ("UnrecognizedClientException", "have an access key that does not exist"),
    ("SignatureDoesNotMatch", "have a secret key that does not belong to the access key"),
];

/// Codes of a request that was sent to another region than that of the bucket.
const OTHER_REGION: [&str; 5] = [
    "PermanentRedirect",
    "TemporaryRedirect",
    "AuthorizationHeaderMalformed",
    "IllegalLocationConstraintException",
    "IncorrectEndpoint",
];

/// Codes of a store that has no capacity at the moment.
const BUSY: [&str; 6] =
    ["SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout", "Throttling", "OperationAborted"];

#[async_trait]
impl BucketService for S3Service {
    fn explain(&self, operation: &'static str, failure: &Failure) -> (ObjectErrorKind, String) {
        match failure {
            Failure::Credentials(text) => (ObjectErrorKind::Credentials, text.clone()),
            Failure::Transport(failure @ TransportFailure::Certificate { .. }) => {
                let hint = "name the file of its issuer in AWS_CA_BUNDLE, if it is your own";
                (ObjectErrorKind::Other, format!("{failure}; {hint}"))
            }
            Failure::Transport(failure @ TransportFailure::Name { .. }) => {
                (ObjectErrorKind::Unreachable, format!("{failure}; check the region and the endpoint of the bucket"))
            }
            Failure::Transport(failure @ (TransportFailure::NoStore { .. } | TransportFailure::TooLong { .. })) => {
                let hint = "check the endpoint of the bucket, and a proxy or login page on the way";
                (ObjectErrorKind::Other, format!("{failure}; {hint}"))
            }
            Failure::Transport(failure) => {
                (ObjectErrorKind::Unreachable, format!("{failure}; check the network and the endpoint of the bucket"))
            }
            Failure::Reply(reply) => self.explain_reply(operation, reply),
            Failure::Condition => {
                (ObjectErrorKind::Other, "the store reports a conflict with another request".to_owned())
            }
            Failure::Other(text) => {
                (ObjectErrorKind::Other, format!("the reply of {} is not understood: {text}", self.host))
            }
        }
    }

    async fn renew_credentials(&self, failure: &Failure) -> bool {
        let is_expired = CREDENTIALS[..4].iter().any(|(code, _)| failure.has_code(code));
        match &self.credentials {
            Some(credentials) if is_expired => credentials.renew().await,
            Some(_) | None => false,
        }
    }

    fn version(&self, tag: Option<String>, _generation: Option<String>) -> ObjectVersion {
        ObjectVersion { tag, generation: None }
    }
}

impl S3Service {
    fn explain_reply(&self, operation: &'static str, reply: &Reply) -> (ObjectErrorKind, String) {
        let Self { bucket, region, host, sources, .. } = self;
        let words = reply.words();
        let code = reply.code.as_deref().unwrap_or_default();
        if let Some((_, reason)) = CREDENTIALS.iter().find(|(known, _)| *known == code) {
            return (ObjectErrorKind::Credentials, format!("the credentials of AWS ({sources}) {reason} ({words})"));
        }
        if OTHER_REGION.contains(&code) || matches!(reply.status, 301 | 307 | 308) {
            let text = match reply.region.as_ref().filter(|found| *found != region) {
                Some(found) => format!(
                    "the bucket `{bucket}` is in the region `{found}`, not in `{region}`: add `region={found}` to its URL \
                     ({words})"
                ),
                None => format!(
                    "the bucket `{bucket}` is in another region than `{region}`: add `region=…` to its URL ({words})"
                ),
            };
            return (ObjectErrorKind::Other, text);
        }
        match (code, reply.status) {
            ("NoSuchBucket", _) => {
                let text = format!("there is no bucket `{bucket}` at {host}: create it, or correct the URL ({words})");
                (ObjectErrorKind::NoStore, text)
            }
            ("RequestTimeTooSkewed" | "RequestExpired", _) => {
                (ObjectErrorKind::Other, format!("the clock of this machine is wrong: set it ({words})"))
            }
            ("NotImplemented", _) | (_, 501) => {
                let text = format!(
                    "the store lacks a function that is needed, such as conditional writes (If-Match, If-None-Match): use \
                     another store ({words})"
                );
                (ObjectErrorKind::Unsupported, text)
            }
            (_, 401) => {
                (ObjectErrorKind::Credentials, format!("the credentials of AWS ({sources}) are refused ({words})"))
            }
            (_, 403) => {
                let text =
                    format!("the credentials of AWS ({sources}) do not allow it: {} ({words})", needed(operation));
                (ObjectErrorKind::Denied, text)
            }
            (code, status) if BUSY.contains(&code) || status == 429 || status >= 500 => {
                (ObjectErrorKind::Unreachable, format!("{host} has no capacity or is out of order ({words})"))
            }
            // A server that is no store, for instance.
            ("", _) => {
                (ObjectErrorKind::Other, format!("{host} is no store of objects, or not at this path ({words})"))
            }
            _ => (ObjectErrorKind::Other, words),
        }
    }
}

/// Returns the permissions that an operation needs.
fn needed(operation: &str) -> &'static str {
    match operation {
        // Without the second one, a missing object is reported as forbidden.
        "read" => "it needs s3:GetObject and s3:ListBucket",
        "write" => "it needs s3:PutObject",
        "copy" => "it needs s3:GetObject, s3:PutObject and s3:ListBucket",
        "remove" => "it needs s3:DeleteObject",
        _ => "it needs s3:ListBucket",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explain(operation: &'static str, failure: &Failure) -> (ObjectErrorKind, String) {
        let service = S3Service {
            bucket: "reef".to_owned(),
            region: "us-east-1".to_owned(),
            host: "reef.s3.us-east-1.amazonaws.com".to_owned(),
            sources: "profile `team`".to_owned(),
            credentials: None,
        };
        service.explain(operation, failure)
    }

    fn reply(status: u16, code: &str, region: &str, message: &str) -> Failure {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Failure::Reply(Reply { status, code: text(code), region: text(region), message: text(message) })
    }

    #[test]
    fn replies_have_a_kind_and_a_way_out() {
        use ObjectErrorKind::{Credentials, Denied, NoStore, Other, Unreachable, Unsupported};
        let cases = [
            (
                reply(404, "NoSuchBucket", "", "The specified bucket does not exist"),
                NoStore,
                "there is no bucket `reef` at reef.s3.us-east-1.amazonaws.com: create it, or correct the URL (NoSuchBucket: \
                 The specified bucket does not exist)",
            ),
            (
                reply(403, "AccessDenied", "", "Access Denied"),
                Denied,
                "the credentials of AWS (profile `team`) do not allow it: it needs s3:GetObject and s3:ListBucket \
                 (AccessDenied: Access Denied)",
            ),
            (
                reply(403, "", "", ""),
                Denied,
                "the credentials of AWS (profile `team`) do not allow it: it needs s3:GetObject and s3:ListBucket (the reply \
                 is 403 Forbidden, without a code of the store)",
            ),
            (
                reply(400, "ExpiredToken", "", "The provided token has expired."),
                Credentials,
                "the credentials of AWS (profile `team`) have expired (ExpiredToken: The provided token has expired.)",
            ),
            (
                reply(403, "InvalidAccessKeyId", "", "No such key"),
                Credentials,
                "the credentials of AWS (profile `team`) have an access key that does not exist (InvalidAccessKeyId: No such \
                 key)",
            ),
            (
                reply(403, "SignatureDoesNotMatch", "", "No match"),
                Credentials,
                "the credentials of AWS (profile `team`) have a secret key that does not belong to the access key \
                 (SignatureDoesNotMatch: No match)",
            ),
            (
                reply(401, "Unauthorized", "", "Who?"),
                Credentials,
                "the credentials of AWS (profile `team`) are refused (Unauthorized: Who?)",
            ),
            (
                reply(301, "PermanentRedirect", "eu-west-1", "Use the endpoint"),
                Other,
                "the bucket `reef` is in the region `eu-west-1`, not in `us-east-1`: add `region=eu-west-1` to its URL \
                 (PermanentRedirect: Use the endpoint)",
            ),
            (
                reply(400, "AuthorizationHeaderMalformed", "eu-west-1", "Wrong region"),
                Other,
                "the bucket `reef` is in the region `eu-west-1`, not in `us-east-1`: add `region=eu-west-1` to its URL \
                 (AuthorizationHeaderMalformed: Wrong region)",
            ),
            (
                reply(301, "", "", ""),
                Other,
                "the bucket `reef` is in another region than `us-east-1`: add `region=…` to its URL (the reply is 301 Moved \
                 Permanently, without a code of the store)",
            ),
            (
                reply(503, "SlowDown", "", "Reduce your request rate"),
                Unreachable,
                "reef.s3.us-east-1.amazonaws.com has no capacity or is out of order (SlowDown: Reduce your request rate)",
            ),
            (
                reply(502, "", "", ""),
                Unreachable,
                "reef.s3.us-east-1.amazonaws.com has no capacity or is out of order (the reply is 502 Bad Gateway, without a \
                 code of the store)",
            ),
            (
                reply(501, "NotImplemented", "", "A header implies functionality"),
                Unsupported,
                "the store lacks a function that is needed, such as conditional writes (If-Match, If-None-Match): use \
                 another store (NotImplemented: A header implies functionality)",
            ),
            (
                reply(403, "RequestTimeTooSkewed", "", "The difference is too large"),
                Other,
                "the clock of this machine is wrong: set it (RequestTimeTooSkewed: The difference is too large)",
            ),
            (
                reply(404, "", "", ""),
                Other,
                "reef.s3.us-east-1.amazonaws.com is no store of objects, or not at this path (the reply is 404 Not Found, \
                 without a code of the store)",
            ),
            (reply(400, "KMS.DisabledException", "", "It is disabled"), Other, "KMS.DisabledException: It is disabled"),
        ];
        for (failure, kind, text) in cases {
            assert_eq!(explain("read", &failure), (kind, text.to_owned()), "{failure:?}");
        }
    }

    #[test]
    fn connections_that_fail_have_a_kind() {
        let host = || "reef.example.org:9000".to_owned();
        let cases = [
            (
                TransportFailure::Certificate { host: host(), reason: "unknown issuer".to_owned() },
                ObjectErrorKind::Other,
                "the certificate of reef.example.org:9000 is not trusted: unknown issuer; name the file of its issuer in \
                 AWS_CA_BUNDLE, if it is your own",
            ),
            (
                TransportFailure::Name { host: host(), reason: "not known".to_owned() },
                ObjectErrorKind::Unreachable,
                "the name of reef.example.org:9000 cannot be resolved: not known; check the region and the endpoint of the \
                 bucket",
            ),
            (
                TransportFailure::NoReply { host: host(), limit: std::time::Duration::from_secs(30) },
                ObjectErrorKind::Unreachable,
                "reef.example.org:9000 did not reply within 30 s; check the network and the endpoint of the bucket",
            ),
        ];
        for (failure, kind, text) in cases {
            assert_eq!(explain("read", &Failure::Transport(failure)), (kind, text.to_owned()));
        }
    }

    #[test]
    fn forbidden_operations_name_their_permissions() {
        for (operation, permission) in [
            ("write", "s3:PutObject"),
            ("copy", "s3:GetObject"),
            ("remove", "s3:DeleteObject"),
            ("list", "s3:ListBucket"),
        ] {
            let (_, text) = explain(operation, &reply(403, "AccessDenied", "", "Access Denied"));
            assert!(text.contains(permission), "{text}");
        }
    }
}
