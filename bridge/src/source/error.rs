//! Why a place did not give what it was asked for, and what to do about it.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use crate::error::Hint;

/// Why a place did not give what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// It has no such thing, or hides it from us.
    #[error("{what} not found at {host}{}", if *authenticated { "" } else { " (asked without a token)" })]
    NotFound {
        /// What was asked for.
        what: String,
        /// Who was asked.
        host: String,
        /// Whether a token was shown.
        authenticated: bool,
    },
    /// It wants a token, or another one.
    #[error("{host} refuses access to {what} ({status}): {message}")]
    Refused {
        /// What was asked for.
        what: String,
        /// Who was asked.
        host: String,
        /// The status it answered.
        status: u16,
        /// Its words.
        message: String,
        /// Whether a token was shown.
        authenticated: bool,
    },
    /// It was asked too often.
    #[error("{host} takes no more requests{}: {message}", resets(*reset))]
    RateLimited {
        /// Who was asked.
        host: String,
        /// Its words.
        message: String,
        /// When it takes requests again, if it said so.
        reset: Option<SystemTime>,
        /// Whether a token was shown.
        authenticated: bool,
    },
    /// It answered something else.
    #[error("{host} answered {status} when asked for {what}: {message}")]
    Answered {
        /// What was asked for.
        what: String,
        /// Who was asked.
        host: String,
        /// The status it answered.
        status: u16,
        /// Its words.
        message: String,
    },
    /// It could not be reached, or fell silent.
    #[error("cannot fetch {what} from {host}: {message}")]
    Network {
        /// What was asked for.
        what: String,
        /// Who was asked.
        host: String,
        /// What went wrong, with all causes: a text and no source, because the causes quote URLs that may be signed.
        message: String,
    },
    /// What arrived is shorter or longer than it should be.
    #[error("{what} should have {expected} bytes, and {received} arrived from {host}")]
    Length {
        /// What was fetched.
        what: String,
        /// From whom.
        host: String,
        /// How many bytes it should have.
        expected: u64,
        /// How many arrived, or would have.
        received: u64,
    },
    /// It would fill the disk.
    #[error("{what} of {host} is too large: {reason}")]
    TooLarge {
        /// What was fetched.
        what: String,
        /// From where.
        host: String,
        /// Why nobody wants it.
        reason: &'static str,
    },
    /// The address cannot be used.
    #[error("cannot use the address {address:?}: {reason}")]
    Address {
        /// The address, without credentials.
        address: String,
        /// Why not.
        reason: String,
    },
    /// The token cannot be used.
    #[error("cannot use the token for {host}: {reason}")]
    Token {
        /// Where it would go.
        host: String,
        /// Why not.
        reason: &'static str,
    },
    /// A program that fetches is not there.
    #[error("{program} is missing")]
    NoProgram {
        /// The program.
        program: &'static str,
    },
    /// A program that fetches is too old.
    #[error("{said} is too old")]
    OldProgram {
        /// What it says of itself.
        said: String,
    },
    /// `git` could not do what it was asked to.
    #[error("git {action} failed ({status}): {output}")]
    Git {
        /// The command, without its options.
        action: &'static str,
        /// How it ended.
        status: String,
        /// Its last words.
        output: String,
    },
    /// `git` could not be started.
    #[error(transparent)]
    Spawn(#[from] crate::process::SpawnError),
    /// A file could not be written.
    #[error(transparent)]
    Path(#[from] crate::fs::PathError),
}

impl FetchError {
    /// Whether another try may help.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Network { .. } | Self::Length { .. } => true,
            Self::Answered { status, .. } => *status >= 500,
            _ => false,
        }
    }

    /// Whether git could ask, and was told something else than that it may not: there may be another way to ask.
    pub(super) fn is_answer_of_git(&self) -> bool {
        const REFUSALS: [&str; 4] = ["Authentication failed", "could not read", "Permission denied", "No space left"];
        match self {
            Self::Git { output, .. } => {
                !self.is_unreachable() && !REFUSALS.iter().any(|refusal| output.contains(refusal))
            }
            _ => false,
        }
    }

    /// Whether nobody could be asked: what is known already is the best there is.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::Network { .. } | Self::RateLimited { .. } => true,
            Self::Answered { status, .. } => *status >= 500,
            Self::Git { output, .. } => {
                const SIGNS: [&str; 10] = [
                    "Could not resolve host",
                    "Failed to connect",
                    "Couldn't connect",
                    "Connection refused",
                    "Connection timed out",
                    "Network is unreachable",
                    "No route to host",
                    "Could not resolve proxy",
                    "Operation timed out",
                    "returned error: 5",
                ];
                SIGNS.iter().any(|sign| output.contains(sign))
            }
            _ => false,
        }
    }
}

impl Hint for FetchError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        const OFFLINE: &str = "what is in the cache already needs no network; HTTPS_PROXY and NO_PROXY are respected";
        let hint = match self {
            Self::NotFound { authenticated: false, .. } | Self::Refused { authenticated: false, .. } => {
                "check how it is spelt; if the repository is private, give a token in source.token"
            }
            Self::NotFound { .. } => "the token may not see this repository, or the name is misspelt",
            Self::Refused { .. } => "the token in source.token may be wrong, expired, or lack the right to read this",
            Self::RateLimited { authenticated: false, .. } => "a token in source.token is allowed many more requests",
            Self::Network { .. } => OFFLINE,
            Self::Git { .. } if self.is_unreachable() => OFFLINE,
            Self::Git { output, .. }
                if output.contains("Authentication failed") || output.contains("could not read") =>
            {
                "git's own credential helpers and ssh keys are used; source.token goes before them"
            }
            Self::Git { output, .. } if output.contains("not found") || output.contains("does not appear to be") => {
                "check the address; a private repository wants a token in source.token, or a key of yours"
            }
            Self::OldProgram { .. } => "git 2.31 and later are used",
            Self::NoProgram { .. } => "install git and put it on PATH: sources of type git are fetched with it",
            Self::Token { .. } => "use an https address",
            Self::TooLarge { .. } => "point source.repository at one that holds the plugin alone",
            _ => return None,
        };
        Some(hint.into())
    }
}

/// `until 14:05:00 UTC (in 12 minutes)`, to follow "takes no more requests".
fn resets(reset: Option<SystemTime>) -> String {
    let Some(reset) = reset else { return String::new() };
    let minutes = reset.duration_since(SystemTime::now()).unwrap_or(Duration::ZERO).as_secs().div_ceil(60);
    let seconds = reset.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs() % 86_400;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!(" until {hour:02}:{minute:02}:{second:02} UTC (in {minutes} min)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_limit_says_when_it_ends() {
        let reset = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        assert_eq!(resets(Some(reset)), " until 22:13:20 UTC (in 0 min)");
        let soon = SystemTime::now() + Duration::from_secs(90);
        assert!(resets(Some(soon)).ends_with("(in 2 min)"), "{}", resets(Some(soon)));
        assert_eq!(resets(None), "");
    }
}
