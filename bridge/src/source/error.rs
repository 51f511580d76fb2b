//! Errors of package sources, and hints for the user.

use std::time::{Duration, SystemTime};

use crate::error::Hint;
use crate::message_text::MessageText;

/// Longest time for which a server may ask to wait before a request is repeated.
pub(super) const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// Error of a request to a package source.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The item does not exist, or the request has no access to it.
    #[error("{item} not found at {host} ({})", sent(credential.as_deref()))]
    NotFound {
        /// Requested item, in words.
        item: String,
        /// Host or address of the source.
        host: String,
        /// Name of the credential that was sent, if one was.
        credential: Option<String>,
    },
    /// The server denied access: the token is missing or insufficient.
    #[error("{host} refuses access to {item} ({status}; {}): {message}", sent(credential.as_deref()))]
    AccessDenied {
        /// Requested item, in words.
        item: String,
        /// Host or address of the source.
        host: String,
        /// Status of the response.
        status: u16,
        /// Message in the response.
        message: String,
        /// Name of the credential that was sent, if one was.
        credential: Option<String>,
    },
    /// The rate limit of the server is exceeded.
    #[error("{host} accepts no more requests{}: {message}", reset_suffix(*reset))]
    RateLimited {
        /// Host or address of the source.
        host: String,
        /// Message in the response.
        message: String,
        /// End of the rate limit, if the server sent it.
        reset: Option<SystemTime>,
        /// Time until the server accepts the next request, if the server sent it and it is not over.
        retry_after: Option<Duration>,
        /// Name of the credential that was sent, if one was.
        credential: Option<String>,
    },
    /// The server returned an unexpected status.
    #[error("{host} returned status {status} for {item}: {message}")]
    UnexpectedStatus {
        /// Requested item, in words.
        item: String,
        /// Host or address of the source.
        host: String,
        /// Status of the response.
        status: u16,
        /// Message in the response.
        message: String,
        /// Time after which the server asks for the next request, if it does.
        retry_after: Option<Duration>,
    },
    /// The server could not be reached, or the connection was lost.
    #[error("cannot fetch {item} from {host}: {message}")]
    Network {
        /// Requested item, in words.
        item: String,
        /// Host or address of the source.
        host: String,
        /// Message with all causes. Text instead of a source error, because the causes quote URLs that may be signed.
        message: String,
    },
    /// The download was aborted because it was too slow.
    #[error("{item} arrives too slowly from {host}: {reason}")]
    TooSlow {
        /// Downloaded item, in words.
        item: String,
        /// Host of the source.
        host: String,
        /// Limit that is not reached, in words.
        reason: String,
    },
    /// The content would arrive without encryption and has no checksum.
    #[error("{address} is not encrypted, and no checksum is declared: the plugin could be replaced on its way")]
    PlainText {
        /// Address without credentials.
        address: String,
    },
    /// The download is shorter or longer than announced.
    #[error("{item} should have {expected} bytes, but {host} sent {received}")]
    LengthMismatch {
        /// Downloaded item, in words.
        item: String,
        /// Host of the source.
        host: String,
        /// Expected length in bytes.
        expected: u64,
        /// Received or announced length in bytes.
        received: u64,
    },
    /// The item exceeds the size limits for packages.
    #[error("{item} of {host} is too large: {reason}")]
    TooLarge {
        /// Downloaded item, in words.
        item: String,
        /// Address of the source.
        host: String,
        /// Limit that is exceeded, in words.
        reason: &'static str,
    },
    /// The address is invalid or not supported.
    #[error("cannot use the address {address:?}: {reason}")]
    InvalidAddress {
        /// Address without credentials.
        address: String,
        /// Reason, in words.
        reason: String,
    },
    /// The token is invalid, or would be sent insecurely.
    #[error("cannot use the token for {host}: {reason}")]
    UnusableToken {
        /// Host or address that would receive the token.
        host: String,
        /// Reason, in words.
        reason: &'static str,
    },
    /// The program that fetches is not installed.
    #[error("{program} is missing")]
    ProgramMissing {
        /// Name of the program.
        program: &'static str,
    },
    /// The program that fetches is too old.
    #[error("{version} is too old")]
    ProgramTooOld {
        /// Output of its `version` command.
        version: String,
    },
    /// A `git` command failed.
    #[error("git {action} failed ({status}): {output}")]
    Git {
        /// Name of the git command, without options.
        action: &'static str,
        /// Exit status, or the time limit.
        status: String,
        /// Last lines of its standard error output.
        output: String,
    },
    /// `git` could not be started.
    #[error(transparent)]
    Spawn(#[from] crate::process::SpawnError),
    /// A file could not be read or written.
    #[error(transparent)]
    Path(#[from] crate::fs::FileError),
}

impl FetchError {
    /// Returns true if a retry may succeed.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Network { .. } | Self::LengthMismatch { .. } => true,
            Self::UnexpectedStatus { status, retry_after, .. } => *status >= 500 || retry_after.is_some(),
            Self::RateLimited { retry_after, .. } => retry_after.is_some(),
            _ => false,
        }
    }

    /// Returns the pause before the request is repeated: the time for which the server asks, at least `backoff`; `None` if
    /// that is longer than [`MAX_RETRY_AFTER`].
    pub(super) fn retry_delay(&self, backoff: Duration) -> Option<Duration> {
        match self {
            Self::UnexpectedStatus { retry_after: Some(asked), .. }
            | Self::RateLimited { retry_after: Some(asked), .. } => {
                (*asked <= MAX_RETRY_AFTER).then(|| backoff.max(*asked))
            }
            _ => Some(backoff),
        }
    }

    /// Returns true if `git fetch` of a single commit failed although the server was reached and did not deny access.
    /// The server may have refused to serve the commit by its id; a fetch of all branches and tags may then succeed.
    pub(super) fn is_refused_commit(&self) -> bool {
        const REFUSALS: [&str; 4] = ["Authentication failed", "could not read", "Permission denied", "No space left"];
        match self {
            Self::Git { output, .. } => {
                !self.is_unreachable() && !REFUSALS.iter().any(|refusal| output.contains(refusal))
            }
            _ => false,
        }
    }

    /// Returns true if the source cannot be reached now. A package from the cache may be used instead.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::Network { .. } | Self::TooSlow { .. } | Self::RateLimited { .. } => true,
            Self::UnexpectedStatus { status, .. } => *status >= 500,
            Self::Git { output, .. } => {
                const SIGNS: [&str; 11] = [
                    "Could not resolve host",
                    "Failed to connect",
                    "Couldn't connect",
                    "Connection refused",
                    "Connection timed out",
                    "Network is unreachable",
                    "No route to host",
                    "Could not resolve proxy",
                    "Operation timed out",
                    "Operation too slow",
                    "returned error: 5",
                ];
                SIGNS.iter().any(|sign| output.contains(sign))
            }
            _ => false,
        }
    }
}

/// Returns which credential was sent, in words.
fn sent(credential: Option<&str>) -> String {
    credential.map_or("no token was sent".to_owned(), |name| format!("with the token of {name}"))
}

/// Advice for an address that is not encrypted.
const PLAIN_TEXT_HINT: &str = "use an https address, or declare source.checksum; `insecure: true` accepts it as it is";

impl Hint for FetchError {
    fn hint(&self) -> Option<MessageText> {
        const OFFLINE: &str = "packages in the cache need no network; HTTPS_PROXY and NO_PROXY are respected";
        let hint = match self {
            Self::NotFound { credential: None, .. } | Self::AccessDenied { credential: None, .. } => {
                "check the spelling; if the repository is private, set source.token"
            }
            Self::NotFound { .. } => "the token may not have access to this repository, or the name is misspelt",
            Self::AccessDenied { .. } => "the token may be wrong, expired, or lack the right to read this",
            Self::RateLimited { credential: None, .. } => "a token in source.token has a higher rate limit",
            Self::RateLimited { .. } => "run the command again then; packages in the cache need no requests",
            // The words of the HTTP library for an answer other than 200 to CONNECT.
            Self::Network { message, .. } if message.contains("tunnel error") => {
                "a proxy refused the connection: check the address and the password in HTTPS_PROXY; hosts in NO_PROXY are reached without it"
            }
            Self::Network { .. } | Self::TooSlow { .. } => OFFLINE,
            Self::PlainText { .. } => PLAIN_TEXT_HINT,
            Self::Git { .. } if self.is_unreachable() => OFFLINE,
            Self::Git { output, .. } if output.contains("Permission denied (") => {
                "the server accepts none of your ssh keys (`ssh-add -l` lists those of the agent); with an https address, source.token is used"
            }
            Self::Git { output, .. } if output.contains("Host key verification failed") => {
                "connect once with ssh and accept the key of the host, or add it to known_hosts"
            }
            Self::Git { output, .. }
                if output.contains("Authentication failed") || output.contains("could not read") =>
            {
                "git's own credential helpers and ssh keys are used; source.token takes precedence"
            }
            Self::Git { output, .. } if output.contains("not found") || output.contains("does not appear to be") => {
                "check the address; a private repository needs a token in source.token or one of your ssh keys"
            }
            Self::ProgramTooOld { .. } => "git 2.31 or later is required",
            Self::ProgramMissing { .. } => "install git and put it on PATH: sources of type git are fetched with it",
            Self::UnusableToken { .. } => "use an https address",
            Self::TooLarge { .. } => "set source.repository to a repository that contains only the plugin",
            _ => return None,
        };
        Some(hint.into())
    }
}

/// Returns ` until 14:05:00 UTC (in 12 min)`, a suffix of the rate limit message. Empty without a time, and for one that is
/// over.
fn reset_suffix(reset: Option<SystemTime>) -> String {
    let Some(reset) = reset else { return String::new() };
    let Ok(wait) = reset.duration_since(SystemTime::now()) else { return String::new() };
    let wait = match wait.as_secs() {
        0..60 => format!("{} s", wait.as_millis().div_ceil(1000)),
        seconds => format!("{} min", seconds.div_ceil(60)),
    };
    let seconds = reset.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs() % 86_400;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!(" until {hour:02}:{minute:02}:{second:02} UTC (in {wait})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_limit_message_contains_its_end() {
        let far = SystemTime::UNIX_EPOCH + Duration::from_secs(4_000_000_000);
        assert!(reset_suffix(Some(far)).starts_with(" until 07:06:40 UTC (in "), "{}", reset_suffix(Some(far)));
        for (seconds, words) in [(90, "(in 2 min)"), (45, "(in 45 s)")] {
            let soon = SystemTime::now() + Duration::from_secs(seconds);
            assert!(reset_suffix(Some(soon)).ends_with(words), "{}", reset_suffix(Some(soon)));
        }
        assert_eq!(reset_suffix(Some(SystemTime::UNIX_EPOCH)), "");
        assert_eq!(reset_suffix(None), "");
    }

    /// Shows: plugins.md#slow-downloads "waits for as long as the server asks, up to a minute"
    #[test]
    fn request_is_repeated_when_the_server_asks_for_it_within_the_limit() {
        let backoff = Duration::from_millis(100);
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        let limited = |retry_after| FetchError::RateLimited {
            host: "h".to_owned(),
            message: "slow down".to_owned(),
            reset: None,
            retry_after,
            credential: None,
        };
        let status = |status, retry_after| FetchError::UnexpectedStatus {
            item: "i".to_owned(),
            host: "h".to_owned(),
            status,
            message: String::new(),
            retry_after,
        };
        for (error, expected) in [
            (limited(None), None),
            (limited(seconds(0)), Some(backoff)),
            (limited(seconds(1)), seconds(1)),
            (limited(seconds(60)), seconds(60)),
            (limited(seconds(61)), None),
            (status(503, None), Some(backoff)),
            (status(503, seconds(2)), seconds(2)),
            (status(503, seconds(600)), None),
            (status(429, seconds(2)), seconds(2)),
            (status(418, None), None),
        ] {
            let delay = error.is_transient().then(|| error.retry_delay(backoff)).flatten();
            assert_eq!(delay, expected, "{error}");
        }
    }
}
