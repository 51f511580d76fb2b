//! Failures of requests for access tokens.

use std::error::Error;
use std::time::Duration;

use bridge::error::shorten_to;
use google_cloud_auth::errors::CredentialsError;

/// Maximum number of characters of a reason; it may have a whole reply.
const MAX_REASON: usize = 600;
/// Beginnings of texts that say less than their causes.
const GENERAL: [&str; 2] = ["Request to fetch the token failed", "Fetching the token resulted in"];
/// Remarks at the end of the client's texts.
const REMARKS: [&str; 2] = [" and future attempts will not succeed", " but future attempts may succeed"];

/// Reason why there is no access token, with the source of the credentials. Contains no part of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the credentials of {source_name}: {reason}")]
pub struct TokenFailure {
    source_name: String,
    reason: String,
}

impl TokenFailure {
    /// Describes an error of the client.
    pub fn of(source: &str, error: &CredentialsError) -> Self {
        let causes = std::iter::successors(Some(error as &dyn Error), |&cause| cause.source());
        let reason = describe(&causes.map(ToString::to_string).collect::<Vec<_>>());
        Self { source_name: source.to_owned(), reason }
    }

    /// Describes a token that did not come in time.
    pub fn timeout(source: &str, limit: Duration) -> Self {
        Self { source_name: source.to_owned(), reason: format!("no access token within {} s", limit.as_secs()) }
    }
}

/// Joins the texts of an error and its causes, without those that repeat the next one, and without the client's remarks
/// on later requests.
fn describe(texts: &[String]) -> String {
    let texts = texts.iter().map(|text| {
        let text = REMARKS.iter().fold(text.as_str(), |text, remark| text.trim_end_matches(remark));
        text.trim_end_matches('.')
    });
    let texts = texts.collect::<Vec<_>>();
    let is_repeated = |at: usize| texts.get(at + 1).is_some_and(|next| texts[at].contains(next));
    let is_general = |at: usize| at + 1 < texts.len() && GENERAL.iter().any(|general| texts[at].starts_with(general));
    let kept = (0..texts.len()).filter(|&at| !is_repeated(at) && !is_general(at)).map(|at| texts[at]);
    shorten_to(&kept.collect::<Vec<_>>().join(": "), MAX_REASON).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_has_each_cause_once() {
        let causes = [
            "Request to fetch the token failed. Subsequent calls with this credential will also fail. and future attempts \
             will not succeed",
            "cannot create the authentication headers failed to refresh, body=<{}> and future attempts will not succeed",
            "failed to refresh, body=<{}> and future attempts will not succeed",
            "HTTP status client error (400 Bad Request)",
        ];
        let describe = |causes: &[&str]| describe(&causes.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(describe(&causes), "failed to refresh, body=<{}>: HTTP status client error (400 Bad Request)");
        assert_eq!(
            describe(&causes[..1]),
            "Request to fetch the token failed. Subsequent calls with this credential will also fail"
        );
    }
}
