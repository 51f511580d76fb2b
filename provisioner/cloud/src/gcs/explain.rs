//! Failures of requests to Google Cloud Storage, in words for the user
//! (<https://cloud.google.com/storage/docs/xml-api/reference-status>).

use async_trait::async_trait;
use state::store::{ObjectErrorKind, ObjectVersion};

use crate::bucket::{BucketService, Failure, Reply, TransportFailure};

/// Words of Google Cloud Storage.
pub(super) struct GcsService {
    /// Name of the bucket.
    pub(super) bucket: String,
    /// Host of the requests.
    pub(super) host: String,
    /// Source of the credentials; `None`: requests are anonymous.
    pub(super) source: Option<String>,
}

/// Codes of a service that has no capacity at the moment.
const BUSY: [&str; 5] = ["SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout", "UserRateLimitExceeded"];

#[async_trait]
impl BucketService for GcsService {
    fn explain(&self, operation: &'static str, failure: &Failure) -> (ObjectErrorKind, String) {
        match failure {
            Failure::Credentials(text) => (ObjectErrorKind::Credentials, text.clone()),
            Failure::Transport(failure @ TransportFailure::Certificate { .. }) => {
                let hint = "make the operating system trust its issuer, if it is your own";
                (ObjectErrorKind::Other, format!("{failure}; {hint}"))
            }
            Failure::Transport(failure @ TransportFailure::Name { .. }) => {
                let hint = "check the network, `universe_domain` and STORAGE_EMULATOR_HOST";
                (ObjectErrorKind::Unreachable, format!("{failure}; {hint}"))
            }
            Failure::Transport(failure @ (TransportFailure::NoStore { .. } | TransportFailure::TooLong { .. })) => {
                let hint = "check STORAGE_EMULATOR_HOST, and a proxy or login page on the way";
                (ObjectErrorKind::Other, format!("{failure}; {hint}"))
            }
            Failure::Transport(failure) => (ObjectErrorKind::Unreachable, format!("{failure}; check the network")),
            Failure::Reply(reply) => self.explain_reply(operation, reply),
            Failure::Condition => {
                (ObjectErrorKind::Other, "the store reports a conflict with another request".to_owned())
            }
            Failure::Other(text) => {
                (ObjectErrorKind::Other, format!("the reply of {} is not understood: {text}", self.host))
            }
        }
    }

    /// Returns `false`: the client of the credentials renews tokens before they expire.
    async fn renew_credentials(&self, _failure: &Failure) -> bool {
        false
    }

    /// Returns the generation, which identifies each content that an object ever had.
    fn version(&self, tag: Option<String>, generation: Option<String>) -> ObjectVersion {
        ObjectVersion { tag: tag.filter(|_| generation.is_none()), generation }
    }
}

impl GcsService {
    fn explain_reply(&self, operation: &'static str, reply: &Reply) -> (ObjectErrorKind, String) {
        let Self { bucket, host, .. } = self;
        let words = reply.words();
        let code = reply.code.as_deref().unwrap_or_default();
        match (code, reply.status) {
            ("NoSuchBucket", _) => {
                let text = format!("there is no bucket `{bucket}` at {host}: create it, or correct the URL ({words})");
                (ObjectErrorKind::NoStore, text)
            }
            ("UserProjectMissing", _) => {
                let text = format!("the bucket `{bucket}` bills the requester, which is not supported ({words})");
                (ObjectErrorKind::Denied, text)
            }
            ("RequestTimeTooSkewed", _) => {
                (ObjectErrorKind::Other, format!("the clock of this machine is wrong: set it ({words})"))
            }
            (_, 401) => {
                let text = match &self.source {
                    Some(source) => format!("the credentials of {source} are refused or have expired ({words})"),
                    None => format!("the bucket `{bucket}` needs credentials, and the request is anonymous ({words})"),
                };
                (ObjectErrorKind::Credentials, text)
            }
            (_, 403) => {
                let needed = needed(operation);
                let text = match &self.source {
                    Some(source) => format!("the credentials of {source} do not allow it: {needed} ({words})"),
                    None => format!("the bucket `{bucket}` does not allow it without credentials: {needed} ({words})"),
                };
                (ObjectErrorKind::Denied, text)
            }
            ("NotImplemented", _) | (_, 501) => {
                let text = format!("{host} lacks a function that is needed: use another store ({words})");
                (ObjectErrorKind::Unsupported, text)
            }
            (code, status) if BUSY.contains(&code) || matches!(status, 408 | 429) || status >= 500 => {
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
        "read" => "it needs storage.objects.get and storage.objects.list",
        // Replacing an object deletes the former one.
        "write" => "it needs storage.objects.create and storage.objects.delete",
        "copy" => "it needs storage.objects.get, storage.objects.create and storage.objects.delete",
        "remove" => "it needs storage.objects.delete",
        _ => "it needs storage.objects.list",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explain(source: Option<&str>, operation: &'static str, failure: &Failure) -> (ObjectErrorKind, String) {
        let source = source.map(str::to_owned);
        let service = GcsService { bucket: "reef".to_owned(), host: "storage.googleapis.com".to_owned(), source };
        service.explain(operation, failure)
    }

    fn reply(status: u16, code: &str) -> Failure {
        let code = Some(code.to_owned()).filter(|code| !code.is_empty());
        Failure::Reply(Reply { status, code, region: None, message: Some("Words".to_owned()) })
    }

    #[test]
    fn reply_decides_the_kind_and_the_words() {
        use ObjectErrorKind::{Credentials, Denied, NoStore, Other, Unreachable, Unsupported};
        let rows = [
            (404, "NoSuchBucket", NoStore),
            (403, "AccessDenied", Denied),
            (400, "UserProjectMissing", Denied),
            (401, "AuthenticationRequired", Credentials),
            (403, "RequestTimeTooSkewed", Other),
            (429, "SlowDown", Unreachable),
            (503, "ServiceUnavailable", Unreachable),
            (502, "", Unreachable),
            (501, "NotImplemented", Unsupported),
            (404, "", Other),
            (400, "InvalidArgument", Other),
        ];
        let mut texts = Vec::new();
        for (status, code, expected) in rows {
            let (kind, text) = explain(Some("GOOGLE_CREDENTIALS"), "read", &reply(status, code));
            assert_eq!(kind, expected, "{status} {code}");
            texts.push(text);
        }
        for operation in ["write", "copy", "remove", "list"] {
            texts.push(explain(None, operation, &reply(403, "AccessDenied")).1);
        }
        texts.push(explain(None, "read", &reply(401, "")).1);
        insta::assert_snapshot!(texts.join("\n"), @"
    there is no bucket `reef` at storage.googleapis.com: create it, or correct the URL (NoSuchBucket: Words)
    the credentials of GOOGLE_CREDENTIALS do not allow it: it needs storage.objects.get and storage.objects.list (AccessDenied: Words)
    the bucket `reef` bills the requester, which is not supported (UserProjectMissing: Words)
    the credentials of GOOGLE_CREDENTIALS are refused or have expired (AuthenticationRequired: Words)
    the clock of this machine is wrong: set it (RequestTimeTooSkewed: Words)
    storage.googleapis.com has no capacity or is out of order (SlowDown: Words)
    storage.googleapis.com has no capacity or is out of order (ServiceUnavailable: Words)
    storage.googleapis.com has no capacity or is out of order (the reply is 502 Bad Gateway, without a code of the store)
    storage.googleapis.com lacks a function that is needed: use another store (NotImplemented: Words)
    storage.googleapis.com is no store of objects, or not at this path (the reply is 404 Not Found, without a code of the store)
    InvalidArgument: Words
    the bucket `reef` does not allow it without credentials: it needs storage.objects.create and storage.objects.delete (AccessDenied: Words)
    the bucket `reef` does not allow it without credentials: it needs storage.objects.get, storage.objects.create and storage.objects.delete (AccessDenied: Words)
    the bucket `reef` does not allow it without credentials: it needs storage.objects.delete (AccessDenied: Words)
    the bucket `reef` does not allow it without credentials: it needs storage.objects.list (AccessDenied: Words)
    the bucket `reef` needs credentials, and the request is anonymous (the reply is 401 Unauthorized, without a code of the store)
    ");
    }

    #[test]
    fn generation_is_the_version() {
        let service = GcsService { bucket: String::new(), host: String::new(), source: None };
        let version = service.version(Some("\"tag\"".to_owned()), Some("7".to_owned()));
        assert_eq!(version, ObjectVersion { tag: None, generation: Some("7".to_owned()) });
    }
}
