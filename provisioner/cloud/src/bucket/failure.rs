//! Failed requests as the client of the store reports them.

use std::error::Error;

use super::reply::Reply;
use super::transport::TransportFailure;
use crate::aws::CredentialsFailure;
use crate::azure::AzureTokenFailure;
use crate::google::TokenFailure;

/// Codes of a missing object, in S3 and Google Cloud Storage, and in Azure.
const MISSING: [&str; 2] = ["NoSuchKey", "BlobNotFound"];
/// Codes of a condition that is not met, without the status of one: in S3 during another write, and in Azure of an object that is
/// there.
const CONFLICTS: [&str; 2] = ["ConditionalRequestConflict", "BlobAlreadyExists"];

/// Cause of a failed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// There are no credentials to sign the request with.
    Credentials(String),
    /// The store has replied.
    Reply(Reply),
    /// The store has not replied.
    Transport(TransportFailure),
    /// A condition is not met, and the store says no more.
    Condition,
    /// Any other failure, such as a malformed reply.
    Other(String),
}

impl Failure {
    /// Returns the cause in the chain of an error.
    pub(super) fn of(error: &object_store::Error) -> Self {
        let mut current: Option<&(dyn Error + 'static)> = Some(error);
        while let Some(cause) = current {
            if let Some(failure) = cause.downcast_ref::<CredentialsFailure>() {
                return Self::Credentials(failure.to_string());
            }
            if let Some(failure) = cause.downcast_ref::<TokenFailure>() {
                return Self::Credentials(failure.to_string());
            }
            if let Some(failure) = cause.downcast_ref::<AzureTokenFailure>() {
                return Self::Credentials(failure.to_string());
            }
            if let Some(failure) = cause.downcast_ref::<TransportFailure>() {
                return Self::Transport(failure.clone());
            }
            current = cause.source();
        }
        let text = error.to_string();
        match (Reply::find(&text), error) {
            (Some(reply), _) => Self::Reply(reply),
            (
                None,
                object_store::Error::AlreadyExists { .. }
                | object_store::Error::Precondition { .. }
                | object_store::Error::NotModified { .. },
            ) => Self::Condition,
            (None, _) => Self::Other(text),
        }
    }

    /// Returns whether the reply has a code.
    pub(crate) fn has_code(&self, code: &str) -> bool {
        matches!(self, Self::Reply(Reply { code: Some(found), .. }) if found == code)
    }

    /// Returns whether there is no object with the key.
    pub(super) fn is_missing(&self) -> bool {
        // Azure checks the source of a copy by a request of its own.
        let is_source =
            matches!(self, Self::Reply(reply) if reply.status == 404) && self.has_code("CannotVerifyCopySource");
        is_source || MISSING.iter().any(|code| self.has_code(code))
    }

    /// Returns whether the condition of a write is not met. A missing object fulfils no condition on its version.
    pub(super) fn is_condition(&self) -> bool {
        match self {
            Self::Condition => true,
            Self::Reply(reply) => {
                // In Azure, a lease of another client has the same status as a condition.
                let is_leased = reply.code.as_deref().is_some_and(|code| code.starts_with("Lease"));
                reply.status == 412 && !is_leased
                    || self.is_missing()
                    || CONFLICTS.iter().any(|code| self.has_code(code))
            }
            Self::Credentials(_) | Self::Transport(_) | Self::Other(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_about_missing_objects_and_conditions_are_recognised() {
        let failure = |status, code: &str| {
            let reply = Reply { status, code: Some(code.to_owned()), ..Reply::default() };
            (Failure::Reply(reply.clone()).is_missing(), Failure::Reply(reply).is_condition())
        };
        let cases = [
            (404, "NoSuchKey", (true, true)),
            (404, "BlobNotFound", (true, true)),
            (404, "CannotVerifyCopySource", (true, true)),
            (403, "CannotVerifyCopySource", (false, false)),
            (412, "PreconditionFailed", (false, true)),
            (412, "LeaseIdMissing", (false, false)),
            (409, "BlobAlreadyExists", (false, true)),
            (409, "ConditionalRequestConflict", (false, true)),
            (404, "NoSuchBucket", (false, false)),
        ];
        for (status, code, expected) in cases {
            assert_eq!(failure(status, code), expected, "{status} {code}");
        }
    }
}
