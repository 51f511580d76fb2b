//! Failures of requests to Azure Blob Storage, in words for the user
//! (<https://learn.microsoft.com/en-us/rest/api/storageservices/blob-service-error-codes>).

use std::sync::Arc;

use async_trait::async_trait;
use state::store::{ObjectErrorKind, ObjectVersion};

use super::credentials::{Signer, SignerKind};
use crate::bucket::{BucketService, Failure, Reply, TransportFailure};

/// Words of Azure Blob Storage.
pub(super) struct AzblobService {
    /// Name of the container.
    pub(super) container: String,
    /// Name of the account.
    pub(super) account: String,
    /// Host of the requests.
    pub(super) host: String,
    /// Variable with what signs the requests; empty: they have access tokens.
    pub(super) of_setting: &'static str,
    /// Signing of the requests.
    pub(super) signer: Arc<Signer>,
}

/// Codes of a container that is not there.
const NO_CONTAINER: [&str; 3] = ["ContainerNotFound", "ContainerBeingDeleted", "FilesystemNotFound"];
/// Codes of a signature or a token that is not valid. A wrong clock has the same code.
const INVALID: [&str; 4] =
    ["AuthenticationFailed", "InvalidAuthenticationInfo", "NoAuthenticationInformation", "AccountRequiresHttps"];
/// Codes of an account or a blob that nobody may use so.
const CLOSED: [(&str, &str); 5] = [
    ("AccountIsDisabled", "the account is disabled"),
    ("ContainerDisabled", "the container is disabled"),
    ("KeyBasedAuthenticationNotPermitted", "the account accepts access tokens only: unset its key"),
    ("BlobImmutableDueToPolicy", "a policy of the container protects its blobs from changes"),
    ("PublicAccessNotPermitted", "the account allows no access without credentials"),
];
/// Codes of a service that has no capacity at the moment.
const BUSY: [&str; 3] = ["ServerBusy", "OperationTimedOut", "InternalError"];

#[async_trait]
impl BucketService for AzblobService {
    fn explain(&self, operation: &'static str, failure: &Failure) -> (ObjectErrorKind, String) {
        match failure {
            Failure::Credentials(text) => (ObjectErrorKind::Credentials, text.clone()),
            Failure::Transport(failure @ TransportFailure::Certificate { .. }) => {
                let hint = "make the operating system trust its issuer, if it is your own";
                (ObjectErrorKind::Other, format!("{failure}; {hint}"))
            }
            Failure::Transport(failure @ TransportFailure::Name { .. }) => {
                let hint = format!("check the network, the name of the account `{}` and the domain", self.account);
                (ObjectErrorKind::Unreachable, format!("{failure}; {hint}"))
            }
            Failure::Transport(failure @ (TransportFailure::NoStore { .. } | TransportFailure::TooLong { .. })) => {
                let hint = "check the domain of the account, and a proxy or login page on the way";
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

    /// Returns `false`: tokens are renewed before they expire.
    async fn renew_credentials(&self, _failure: &Failure) -> bool {
        false
    }

    /// Returns the ETag: each write has another one, whatever its content is.
    fn version(&self, tag: Option<String>, _generation: Option<String>) -> ObjectVersion {
        ObjectVersion { tag, generation: None }
    }
}

impl AzblobService {
    /// Describes what signs the requests.
    fn credentials(&self) -> String {
        match self.of_setting {
            "" => format!("the credentials of Azure ({})", self.signer.source().unwrap_or("none")),
            setting => format!("the credentials of {setting}"),
        }
    }

    fn explain_reply(&self, operation: &'static str, reply: &Reply) -> (ObjectErrorKind, String) {
        let Self { container, account, host, .. } = self;
        let words = reply.words();
        let code = reply.code.as_deref().unwrap_or_default();
        if let Some((_, reason)) = CLOSED.iter().find(|(known, _)| *known == code) {
            return (ObjectErrorKind::Denied, format!("{reason} ({words})"));
        }
        match (code, reply.status) {
            (code, _) if NO_CONTAINER.contains(&code) => {
                let text = format!(
                    "there is no container `{container}` in the account `{account}` at {host}: create it, or correct the \
                     URL ({words})"
                );
                (ObjectErrorKind::NoStore, text)
            }
            (code, status) if INVALID.contains(&code) || status == 401 => {
                let credentials = self.credentials();
                let text = format!(
                    "{credentials} are refused by the account `{account}` or have expired, or the clock of this machine is \
                     wrong ({words})"
                );
                (ObjectErrorKind::Credentials, text)
            }
            ("AuthorizationFailure", _) => {
                let text = format!(
                    "{} do not allow it, or the firewall of the account `{account}` does not: {} ({words})",
                    self.credentials(),
                    self.needed(operation)
                );
                (ObjectErrorKind::Denied, text)
            }
            (_, 403) => {
                let text = format!("{} do not allow it: {} ({words})", self.credentials(), self.needed(operation));
                (ObjectErrorKind::Denied, text)
            }
            (_, 501) => {
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

    /// Returns the permission that an operation needs.
    fn needed(&self, operation: &str) -> String {
        let of_signature = match operation {
            "read" => "read (r)",
            "write" => "create (c) and write (w)",
            "copy" => "read (r), create (c) and write (w)",
            "remove" => "delete (d)",
            _ => "list (l)",
        };
        match self.signer.kind() {
            SignerKind::Key => format!("check that it is a key of the account `{}`", self.account),
            SignerKind::Signature => format!("the signature must allow {of_signature}"),
            SignerKind::Token => {
                format!("it needs the role `Storage Blob Data Contributor` on the container `{}`", self.container)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use object_store::azure::AzureAccessKey;

    use super::*;
    use crate::azblob::account::Signing;
    use crate::azure::AzureCredentials;

    fn explain(signing: Signing, operation: &'static str, failure: &Failure) -> (ObjectErrorKind, String) {
        let tokens = AzureCredentials::new(&[].into(), "https://storage.azure.com/.default");
        let service = AzblobService {
            container: "state".to_owned(),
            account: "reef".to_owned(),
            host: "HOST".to_owned(),
            of_setting: if matches!(signing, Signing::Token) { "" } else { "VARIABLE" },
            signer: Arc::new(Signer::new(signing, tokens)),
        };
        service.explain(operation, failure)
    }

    fn key() -> Signing {
        Signing::Key(AzureAccessKey::try_new("cmVlZg==").unwrap())
    }

    fn reply(status: u16, code: &str) -> Failure {
        let code = Some(code.to_owned()).filter(|code| !code.is_empty());
        Failure::Reply(Reply { status, code, region: None, message: Some("Words".to_owned()) })
    }

    #[test]
    fn reply_decides_the_kind_and_the_words() {
        use ObjectErrorKind::{Credentials, Denied, NoStore, Other, Unreachable, Unsupported};
        let rows = [
            (404, "ContainerNotFound", NoStore),
            (409, "ContainerBeingDeleted", NoStore),
            (403, "AuthenticationFailed", Credentials),
            (401, "NoAuthenticationInformation", Credentials),
            (403, "AuthorizationFailure", Denied),
            (403, "KeyBasedAuthenticationNotPermitted", Denied),
            (409, "BlobImmutableDueToPolicy", Denied),
            (503, "ServerBusy", Unreachable),
            (502, "", Unreachable),
            (501, "NotImplemented", Unsupported),
            (404, "", Other),
            (412, "LeaseIdMissing", Other),
        ];
        let mut texts = Vec::new();
        for (status, code, expected) in rows {
            let (kind, text) = explain(key(), "read", &reply(status, code));
            assert_eq!(kind, expected, "{status} {code}");
            texts.push(text);
        }
        let denied = reply(403, "AuthorizationPermissionMismatch");
        for operation in ["read", "write", "copy", "remove", "list"] {
            texts.push(explain(Signing::Signature(Vec::new()), operation, &denied).1);
        }
        texts.push(explain(Signing::Token, "read", &denied).1);
        insta::assert_snapshot!(texts.join("\n"), @"
        there is no container `state` in the account `reef` at HOST: create it, or correct the URL (ContainerNotFound: Words)
        there is no container `state` in the account `reef` at HOST: create it, or correct the URL (ContainerBeingDeleted: Words)
        the credentials of VARIABLE are refused by the account `reef` or have expired, or the clock of this machine is wrong (AuthenticationFailed: Words)
        the credentials of VARIABLE are refused by the account `reef` or have expired, or the clock of this machine is wrong (NoAuthenticationInformation: Words)
        the credentials of VARIABLE do not allow it, or the firewall of the account `reef` does not: check that it is a key of the account `reef` (AuthorizationFailure: Words)
        the account accepts access tokens only: unset its key (KeyBasedAuthenticationNotPermitted: Words)
        a policy of the container protects its blobs from changes (BlobImmutableDueToPolicy: Words)
        HOST has no capacity or is out of order (ServerBusy: Words)
        HOST has no capacity or is out of order (the reply is 502 Bad Gateway, without a code of the store)
        HOST lacks a function that is needed: use another store (NotImplemented: Words)
        HOST is no store of objects, or not at this path (the reply is 404 Not Found, without a code of the store)
        LeaseIdMissing: Words
        the credentials of VARIABLE do not allow it: the signature must allow read (r) (AuthorizationPermissionMismatch: Words)
        the credentials of VARIABLE do not allow it: the signature must allow create (c) and write (w) (AuthorizationPermissionMismatch: Words)
        the credentials of VARIABLE do not allow it: the signature must allow read (r), create (c) and write (w) (AuthorizationPermissionMismatch: Words)
        the credentials of VARIABLE do not allow it: the signature must allow delete (d) (AuthorizationPermissionMismatch: Words)
        the credentials of VARIABLE do not allow it: the signature must allow list (l) (AuthorizationPermissionMismatch: Words)
        the credentials of Azure (none) do not allow it: it needs the role `Storage Blob Data Contributor` on the container `state` (AuthorizationPermissionMismatch: Words)
        ");
    }
}
