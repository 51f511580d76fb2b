//! Class of a failed call, and what the provider has said about it (docs/spec/provider-protocol.md#6).

use std::fmt;
use std::time::Duration;

use super::check::CheckFailure;

/// Class of a failed call, which says what may remedy it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// The same call may succeed later.
    Transient,
    /// The request is invalid: its inputs must change.
    BadInput,
    /// The resource, or another object that the request names, does not exist.
    NotFound,
    /// The credentials are missing or invalid, or lack a permission.
    Unauthorised,
    /// The state of the resource or of another object forbids the request.
    Conflict,
    /// A quota or a limit on the rate of requests is exceeded.
    Quota,
    /// The provider, or the service that it calls, cannot be reached.
    Unavailable,
    /// No other class: the provider gave no reason that `sc` knows.
    Unexpected,
}

impl ErrorClass {
    /// Returns the name in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::BadInput => "bad-input",
            Self::NotFound => "not-found",
            Self::Unauthorised => "unauthorised",
            Self::Conflict => "conflict",
            Self::Quota => "quota",
            Self::Unavailable => "unavailable",
            Self::Unexpected => "unexpected",
        }
    }
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Details of a failed call. The texts come from the provider: receivers mask secrets in them, and escape them for
/// terminals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorDetails {
    /// Class of the error.
    pub class: ErrorClass,
    /// Reasons in words, beside the message.
    pub reasons: Vec<String>,
    /// Invalid inputs.
    pub violations: Vec<CheckFailure>,
    /// Pages with help.
    pub links: Vec<HelpLink>,
    /// Time that the provider asks to wait before the call is repeated; `None` if it does not say that the call may be
    /// repeated.
    pub retry_after: Option<Duration>,
    /// Reason why `sc` does not repeat the call although the provider asks for it; `None` if it does not ask.
    pub not_repeated: Option<String>,
}

impl ErrorDetails {
    /// Creates details that hold only a class.
    pub fn new(class: ErrorClass) -> Self {
        Self {
            class,
            reasons: Vec::new(),
            violations: Vec::new(),
            links: Vec::new(),
            retry_after: None,
            not_repeated: None,
        }
    }

    /// Returns each text of the provider, for receivers that mask secrets or cut long texts.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let violations =
            self.violations.iter_mut().flat_map(|failure| failure.property.iter_mut().chain([&mut failure.reason]));
        let links = self.links.iter_mut().flat_map(|link| [&mut link.description, &mut link.url]);
        self.reasons.iter_mut().chain(violations).chain(links)
    }
}

/// Page with help on an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelpLink {
    /// Description of the page; may be empty.
    pub description: String,
    /// Address of the page.
    pub url: String,
}
