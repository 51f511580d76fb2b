//! Table of the repetition of failed calls.

use std::time::Duration;

use bridge::provider::{ErrorClass, ErrorDetails, LostReply, Method, PartialFailure, ProviderError};

use crate::decisions::retries::*;

const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn failed(method: Method, retry_after: Option<Duration>) -> ProviderError {
    failed_as(method, ErrorClass::Transient, false, retry_after)
}

fn failed_as(method: Method, class: ErrorClass, indeterminate: bool, retry_after: Option<Duration>) -> ProviderError {
    let details = Some(Box::new(ErrorDetails { retry_after, ..ErrorDetails::new(class) }));
    ProviderError::Failed { method, message: "busy".into(), indeterminate, source: None, details }
}

fn attempt(method: Method, error: &ProviderError) -> FailedAttempt<'_> {
    FailedAttempt {
        method,
        error,
        retries: 0,
        can_repeat_mutations: false,
        time_left: None,
        is_stopped: false,
        jitter: 1.0,
    }
}

/// Shows: engine.md#repeated-calls "A call is repeated five times at most."
/// Shows: engine.md#repeated-calls "never shorter than the time that `RetryInfo` names"
#[test]
fn delay_is_drawn_below_a_doubled_bound_and_never_before_the_named_time() {
    // Retries so far, named seconds, random number, expected milliseconds.
    for (retries, named, jitter, expected) in [
        (0, 0, 1.0, 2_000),
        (1, 0, 1.0, 4_000),
        (2, 0, 1.0, 8_000),
        (3, 0, 1.0, 16_000),
        (4, 0, 1.0, 32_000),
        (0, 0, 0.0, 0),
        (0, 0, 0.25, 500),
        (4, 0, 0.5, 16_000),
        (0, 1, 0.25, 1_000),
        (0, 1, 0.75, 1_500),
        (4, 300, 1.0, 300_000),
        // At most twice the named time.
        (4, 1, 1.0, 2_000),
        (4, 10, 1.0, 20_000),
        (3, 200, 1.0, 200_000),
        (0, 0, f64::INFINITY, 2_000),
        (0, 0, -1.0, 0),
    ] {
        let error = failed(Method::Read, Some(seconds(named)));
        let decision = decide(FailedAttempt { retries, jitter, ..attempt(Method::Read, &error) });
        assert_eq!(decision, RetryDecision::Retry(Duration::from_millis(expected)), "{retries} {named} {jitter}");
    }
}

/// Shows: engine.md#repeated-calls "Check, Diff, Read, Invoke, Configure | always"
/// Shows: engine.md#repeated-calls "Create, Update, Delete | with `retry: { mutations: true }`"
#[test]
fn methods_that_change_resources_are_repeated_only_if_declared() {
    use Method::*;
    for method in [Check, Diff, Read, Invoke, Configure] {
        for can_repeat_mutations in [false, true] {
            let error = failed(method, Some(seconds(1)));
            let decision = decide(FailedAttempt { can_repeat_mutations, ..attempt(method, &error) });
            assert_eq!(decision, RetryDecision::Retry(seconds(2)), "{method}");
        }
    }
    for method in [Create, Update, Delete] {
        let error = failed(method, Some(seconds(1)));
        assert_eq!(decide(attempt(method, &error)), RetryDecision::Refuse(RetryRefusal::Mutation(method)));
        let decision = decide(FailedAttempt { can_repeat_mutations: true, ..attempt(method, &error) });
        assert_eq!(decision, RetryDecision::Retry(seconds(2)), "{method}");
    }
}

/// Shows: engine.md#repeated-calls "A failure without it is never repeated, and neither is a lost reply, a call whose
///   plugin has exited, or a resource that failed to initialize."
#[test]
fn errors_without_retry_info_and_lost_replies_are_never_repeated() {
    let lost = LostReply::ALL.map(|lost| ProviderError::ReplyLost {
        method: Method::Read,
        lost,
        message: "lost".into(),
        id: None,
        source: None,
    });
    let exited = ProviderError::PluginExited {
        plugin: "rec".into(),
        method: Method::Read,
        is_sent: true,
        status: "signal 9".into(),
        last_output: Vec::new(),
    };
    let without_details = ProviderError::Failed {
        method: Method::Read,
        message: "busy".into(),
        indeterminate: false,
        source: None,
        details: None,
    };
    let details =
        Some(Box::new(ErrorDetails { retry_after: Some(Duration::ZERO), ..ErrorDetails::new(ErrorClass::Transient) }));
    let partial = PartialFailure { details, ..PartialFailure::default() };
    let others = [
        exited,
        without_details,
        failed(Method::Read, None),
        failed_as(Method::Read, ErrorClass::Unavailable, true, None),
        ProviderError::Partial { message: "not ready".into(), failure: Box::new(partial) },
        ProviderError::MissingConfig(Vec::new()),
        ProviderError::InvalidInputs { message: "invalid".into(), failures: Vec::new() },
        ProviderError::Unimplemented { method: Method::Read },
        // The error of a call within this one, such as Initialize within Configure.
        failed(Method::Initialize, Some(Duration::ZERO)),
    ];
    for error in lost.iter().chain(&others) {
        let attempt = FailedAttempt { can_repeat_mutations: true, ..attempt(Method::Read, error) };
        assert_eq!(decide(attempt), RetryDecision::Fail, "{error:?}");
    }
}

#[test]
fn contradictory_and_late_requests_to_repeat_are_refused() {
    use ErrorClass::*;
    use RetryRefusal::*;
    let refused = |attempt: FailedAttempt<'_>| match decide(attempt) {
        RetryDecision::Refuse(refusal) => Some(refusal),
        RetryDecision::Fail | RetryDecision::Retry(_) => None,
    };
    let now = Some(Duration::ZERO);
    for (class, expected) in [
        (BadInput, Some(InvalidInputs)),
        (Transient, None),
        (NotFound, None),
        (Unauthorised, None),
        (Conflict, None),
        (Quota, None),
        (Unavailable, None),
        (Unexpected, None),
    ] {
        let error = failed_as(Method::Check, class, false, now);
        assert_eq!(refused(attempt(Method::Check, &error)), expected, "{class}");
    }
    // The status code of a query may leave its effect open: it has none.
    for (method, expected) in [(Method::Read, None), (Method::Create, Some(UnknownOutcome))] {
        let error = failed_as(method, Transient, true, now);
        let attempt = FailedAttempt { can_repeat_mutations: true, ..attempt(method, &error) };
        assert_eq!(refused(attempt), expected, "{method}");
    }
    for (named, expected) in [
        (MAX_DELAY, None),
        (MAX_DELAY + Duration::from_nanos(1), Some(TooLate)),
        (YEAR, Some(TooLate)),
        (Duration::MAX, Some(TooLate)),
    ] {
        let error = failed(Method::Read, Some(named));
        assert_eq!(refused(attempt(Method::Read, &error)), expected, "{named:?}");
    }
    let error = failed(Method::Read, Some(seconds(10)));
    let read = attempt(Method::Read, &error);
    for (retries, expected) in [(MAX_RETRIES - 1, None), (MAX_RETRIES, Some(TooOften)), (u32::MAX, Some(TooOften))] {
        assert_eq!(refused(FailedAttempt { retries, jitter: 0.0, ..read }), expected, "{retries}");
    }
    for (left, expected) in [(0, Some(TimeLimit)), (10, Some(TimeLimit)), (11, None)] {
        assert_eq!(refused(FailedAttempt { time_left: Some(seconds(left)), ..read }), expected, "{left} s");
    }
    assert_eq!(refused(FailedAttempt { is_stopped: true, ..read }), Some(Stopped));
}
