//! Repetition of failed calls, for which a plugin asks with RetryInfo (docs/spec/plugin-hosts.md#C.5).

use std::fmt;
use std::time::Duration;

use bridge::provider::{ErrorClass, Method, ProviderError};

/// Maximum number of times that a call is repeated.
pub(crate) const MAX_RETRIES: u32 = 5;
/// Maximum delay before a call is repeated.
pub(crate) const MAX_DELAY: Duration = Duration::from_secs(300);
/// Upper bound of the first delay that is drawn. Each further one has twice the bound of the one before.
const FIRST_BOUND: Duration = Duration::from_secs(2);
/// Shortest time that counts as one that the plugin has named.
const NAMED: Duration = Duration::from_secs(1);

/// Failed attempt of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FailedAttempt<'a> {
    pub(crate) method: Method,
    pub(crate) error: &'a ProviderError,
    /// Number of times that the call has been repeated already.
    pub(crate) retries: u32,
    /// True if the declaration of the plugin states that a mutation that failed with RetryInfo had no effect.
    pub(crate) can_repeat_mutations: bool,
    /// Rest of the time limit of the call (`customTimeouts`); `None` if it has none.
    pub(crate) time_left: Option<Duration>,
    /// True if the run is stopped.
    pub(crate) is_stopped: bool,
    /// Random number from 0 to 1.
    pub(crate) jitter: f64,
}

/// Decision on a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetryDecision {
    /// The call has failed. The plugin does not ask to repeat it.
    Fail,
    /// The call has failed, and is not repeated although the plugin asks for it.
    Refuse(RetryRefusal),
    /// The call is repeated after this delay.
    Retry(Duration),
}

/// Reason why a call is not repeated although the plugin asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetryRefusal {
    /// The plugin names invalid inputs as well, so the same call fails again.
    InvalidInputs,
    /// The call changes a resource, and the declaration of the plugin does not allow to repeat it.
    Mutation(Method),
    /// The call changes a resource, and its status code leaves open whether it had an effect.
    UnknownOutcome,
    /// The plugin asks to wait for longer than [`MAX_DELAY`].
    TooLate,
    /// The call has been repeated [`MAX_RETRIES`] times.
    TooOften,
    /// The next attempt would begin after the time limit of the call.
    TimeLimit,
    /// The run is stopped.
    Stopped,
    /// The lock of the stack was removed, or cannot be renewed.
    LockLost,
}

/// Displays as a reason for users.
impl fmt::Display for RetryRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidInputs => f.write_str("the plugin names invalid inputs, with which the call would fail again"),
            Self::Mutation(method) => write!(
                f,
                "{method} is repeated only with `retry: {{ mutations: true }}` in the declaration of the plugin, which \
                 states that such a failure has no effect"
            ),
            Self::UnknownOutcome => f.write_str("the status code leaves open whether the call had an effect"),
            Self::TooLate => {
                let minutes = MAX_DELAY.as_secs() / 60;
                write!(f, "the plugin asks to wait for longer than {minutes} minutes, the limit of sc")
            }
            Self::TooOften => write!(f, "the call has failed {} times", MAX_RETRIES + 1),
            Self::TimeLimit => f.write_str("the next attempt would begin after the time limit in customTimeouts"),
            Self::Stopped => f.write_str("the run is being stopped"),
            Self::LockLost => f.write_str("the lock of the stack was removed, or cannot be renewed"),
        }
    }
}

/// Decides whether and when a failed call is repeated. Only one that failed with a status of the plugin is: never after a
/// lost reply, a partial failure or a failed start.
pub(crate) fn decide(attempt: FailedAttempt<'_>) -> RetryDecision {
    let ProviderError::Failed { method, details: Some(details), indeterminate, .. } = attempt.error else {
        return RetryDecision::Fail;
    };
    let Some(named) = details.retry_after.filter(|_| *method == attempt.method) else { return RetryDecision::Fail };
    let is_mutation = matches!(method, Method::Create | Method::Update | Method::Delete);
    let drawn = bound(attempt.retries).mul_f64(attempt.jitter.clamp(0.0, 1.0));
    let delay = named.max(drawn).min(longest(named));
    let refusal = if details.class == ErrorClass::BadInput {
        RetryRefusal::InvalidInputs
    } else if is_mutation && !attempt.can_repeat_mutations {
        RetryRefusal::Mutation(*method)
    } else if is_mutation && *indeterminate {
        RetryRefusal::UnknownOutcome
    } else if named > MAX_DELAY {
        RetryRefusal::TooLate
    } else if attempt.retries >= MAX_RETRIES {
        RetryRefusal::TooOften
    } else if attempt.time_left.is_some_and(|left| delay >= left) {
        RetryRefusal::TimeLimit
    } else if attempt.is_stopped {
        RetryRefusal::Stopped
    } else {
        return RetryDecision::Retry(delay);
    };
    RetryDecision::Refuse(refusal)
}

/// Returns the longest delay for a named time: twice that. A plugin that names a time knows when the call can succeed; one that names less
/// than [`NAMED`] gets the delays that grow.
fn longest(named: Duration) -> Duration {
    if named < NAMED { MAX_DELAY } else { named.saturating_mul(2).min(MAX_DELAY) }
}

/// Returns the upper bound of the delay that is drawn before the next attempt.
fn bound(retries: u32) -> Duration {
    2_u32.checked_pow(retries).map_or(MAX_DELAY, |factor| FIRST_BOUND.saturating_mul(factor)).min(MAX_DELAY)
}
