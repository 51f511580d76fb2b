//! Failed requests as the client of the store reports them.

use std::error::Error;

use super::reply::Reply;
use super::transport::TransportFailure;
use crate::aws::CredentialsFailure;
use crate::google::TokenFailure;

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

    /// Returns whether the condition of a write is not met. A missing object fulfils no condition on its version.
    pub(super) fn is_condition(&self) -> bool {
        match self {
            Self::Condition => true,
            Self::Reply(reply) => {
                reply.status == 412 || self.has_code("ConditionalRequestConflict") || self.has_code("NoSuchKey")
            }
            Self::Credentials(_) | Self::Transport(_) | Self::Other(_) => false,
        }
    }
}
