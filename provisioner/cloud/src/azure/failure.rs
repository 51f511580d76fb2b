//! Failures of requests for access tokens.

use bridge::error::shorten_to;

use crate::json_client::JsonError;

/// Maximum number of characters of the reason of one source.
const MAX_REASON: usize = 600;

/// Reason why there is no access token, with the sources that were tried. Contains no part of a credential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AzureTokenFailure(String);

/// Reason why a source has no token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SourceFailure {
    /// The source is not set up on this machine: the next one is tried.
    Unavailable(String),
    /// The source is set up, and cannot be used: no other is tried.
    Failed(String),
}

impl AzureTokenFailure {
    /// Describes a chain of which no source is set up. The attempts are sources with their reasons, in their order.
    pub(super) fn of_attempts(attempts: &[(&str, String)]) -> Self {
        let attempts: Vec<_> = attempts.iter().map(|(source, reason)| format!("{source}: {reason}")).collect();
        Self(format!("no credentials of Azure; tried in this order: {}", attempts.join("; ")))
    }

    /// Describes a source that is set up, and cannot be used.
    pub(super) fn of_source(source: &str, reason: &str) -> Self {
        Self(format!("the credentials of Azure ({source}) cannot be used: {reason}"))
    }

    /// Describes settings that select no source.
    pub(super) fn of_settings(reason: &str) -> Self {
        Self(reason.to_owned())
    }
}

/// Returns the words of a service about a refused request, on one line. They name the application and the request, and contain
/// no credentials.
pub(super) fn words(error: &JsonError) -> String {
    let text = match error {
        JsonError::Refused { code: Some(code), text, .. } => format!("{code}: {text}"),
        JsonError::Refused { .. } | JsonError::Unreachable(_) | JsonError::Unexpected { .. } => error.to_string(),
    };
    one_line(&text)
}

pub(super) fn one_line(text: &str) -> String {
    shorten_to(&text.split_whitespace().collect::<Vec<_>>().join(" "), MAX_REASON).into_owned()
}

#[cfg(test)]
mod tests {
    use reqwest::StatusCode;

    use super::*;

    #[test]
    fn words_of_the_service_are_one_line() {
        let refused = |code: Option<&str>| JsonError::Refused {
            status: StatusCode::UNAUTHORIZED,
            code: code.map(str::to_owned),
            text: "AADSTS7000215: Invalid client secret provided.\r\nTrace ID: 1".to_owned(),
        };
        let text = "AADSTS7000215: Invalid client secret provided. Trace ID: 1";
        assert_eq!(words(&refused(Some("invalid_client"))), format!("invalid_client: {text}"));
        assert_eq!(words(&refused(None)), format!("401 Unauthorized: {text}"));
    }
}
