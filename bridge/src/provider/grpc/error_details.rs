//! Class and details of a failed status, from its code and the details of google.rpc.
//!
//! If they contradict each other, the first of these decides the class: BadRequest, QuotaFailure, PreconditionFailure,
//! RetryInfo, the status code. ErrorInfo and Help add words only. A detail that cannot be decoded is skipped, and so is
//! one without an entry.

use std::time::Duration;

use prost::Message as _;
use prost_types::Any;
use pulumi_proto::google_rpc::{BadRequest, ErrorInfo, Help, PreconditionFailure, QuotaFailure, RetryInfo};
use tonic::Code;

use crate::error::shorten_to;
use crate::provider::{CheckFailure, ErrorClass, ErrorDetails, HelpLink};

/// Maximum number of reasons, of violations and of links that are kept: a status may hold megabytes.
const MAX_ENTRIES: usize = 50;
/// Maximum number of characters of a text that are kept.
const MAX_TEXT: usize = 2_000;

/// Details of google.rpc that decide the class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Kinds {
    bad_request: bool,
    quota: bool,
    precondition: bool,
    retry: bool,
}

/// Returns the class and the details of a failed status.
pub(super) fn error_details(code: Code, details: &[Any]) -> ErrorDetails {
    let mut kinds = Kinds::default();
    let mut found = ErrorDetails::new(ErrorClass::Unexpected);
    for any in details {
        add_detail(any, &mut found, &mut kinds);
    }
    found.class = class(code, kinds);
    found
}

fn class(code: Code, kinds: Kinds) -> ErrorClass {
    if kinds.bad_request {
        return ErrorClass::BadInput;
    }
    if kinds.quota {
        return ErrorClass::Quota;
    }
    if kinds.precondition {
        return ErrorClass::Conflict;
    }
    match code {
        // RetryInfo says no more than these codes do.
        Code::ResourceExhausted => ErrorClass::Quota,
        Code::Unavailable => ErrorClass::Unavailable,
        _ if kinds.retry => ErrorClass::Transient,
        Code::InvalidArgument | Code::OutOfRange => ErrorClass::BadInput,
        Code::NotFound => ErrorClass::NotFound,
        Code::Unauthenticated | Code::PermissionDenied => ErrorClass::Unauthorised,
        Code::AlreadyExists | Code::FailedPrecondition | Code::Aborted => ErrorClass::Conflict,
        Code::DeadlineExceeded => ErrorClass::Transient,
        Code::Ok | Code::Cancelled | Code::Unknown | Code::Unimplemented | Code::Internal | Code::DataLoss => {
            ErrorClass::Unexpected
        }
    }
}

/// Adds a detail. Only the name after the last `/` of the type URL is compared.
fn add_detail(any: &Any, found: &mut ErrorDetails, kinds: &mut Kinds) {
    let bytes = any.value.as_slice();
    match any.type_url.rsplit('/').next().unwrap_or_default() {
        "google.rpc.RetryInfo" => {
            if let Ok(info) = RetryInfo::decode(bytes) {
                kinds.retry = true;
                let delay = info.retry_delay.map_or(Duration::ZERO, positive);
                found.retry_after = Some(found.retry_after.map_or(delay, |other| other.max(delay)));
            }
        }
        "google.rpc.BadRequest" => {
            let violations = BadRequest::decode(bytes).map(|detail| detail.field_violations).unwrap_or_default();
            kinds.bad_request |= !violations.is_empty();
            let failures = violations
                .into_iter()
                .map(|violation| CheckFailure::new(cut(&violation.field), cut(&violation.description)));
            extend(&mut found.violations, failures);
        }
        "google.rpc.QuotaFailure" => {
            let violations = QuotaFailure::decode(bytes).map(|detail| detail.violations).unwrap_or_default();
            kinds.quota |= !violations.is_empty();
            let reasons = violations.iter().map(|violation| reason(&[&violation.subject], &violation.description));
            extend(&mut found.reasons, reasons);
        }
        "google.rpc.PreconditionFailure" => {
            let violations = PreconditionFailure::decode(bytes).map(|detail| detail.violations).unwrap_or_default();
            kinds.precondition |= !violations.is_empty();
            let reasons = violations
                .iter()
                .map(|violation| reason(&[&violation.r#type, &violation.subject], &violation.description));
            extend(&mut found.reasons, reasons);
        }
        "google.rpc.ErrorInfo" => {
            if let Ok(info) = ErrorInfo::decode(bytes) {
                let domain = if info.domain.is_empty() { String::new() } else { format!("({})", info.domain) };
                let words = [info.reason.as_str(), &domain].map(str::trim);
                extend(&mut found.reasons, [cut(words.join(" ").trim())].into_iter().filter(|text| !text.is_empty()));
            }
        }
        "google.rpc.Help" => {
            let links = Help::decode(bytes).map(|detail| detail.links).unwrap_or_default();
            let links = links.into_iter().filter(|link| !link.url.is_empty());
            extend(
                &mut found.links,
                links.map(|link| HelpLink { description: cut(&link.description), url: cut(&link.url) }),
            );
        }
        _ => {}
    }
}

fn extend<T>(list: &mut Vec<T>, items: impl Iterator<Item = T>) {
    let left = MAX_ENTRIES.saturating_sub(list.len());
    list.extend(items.take(left));
}

fn cut(text: &str) -> String {
    shorten_to(text, MAX_TEXT).into_owned()
}

/// Returns a reason as `kind subject: description`, without the parts that are empty.
fn reason(names: &[&str], description: &str) -> String {
    let names: Vec<&str> = names.iter().copied().filter(|name| !name.is_empty()).collect();
    let parts = [names.join(" "), description.to_owned()];
    let parts: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    cut(&parts.join(": "))
}

/// Returns a duration of protobuf; zero if it is negative.
fn positive(duration: prost_types::Duration) -> Duration {
    let nanos = u32::try_from(duration.nanos).unwrap_or_default().min(999_999_999);
    u64::try_from(duration.seconds).map_or(Duration::ZERO, |seconds| Duration::new(seconds, nanos))
}

#[cfg(test)]
mod tests {
    use pulumi_proto::google_rpc::{bad_request, help, precondition_failure, quota_failure};

    use super::*;

    fn any(name: &str, message: &impl prost::Message) -> Any {
        Any { type_url: format!("example.org/google.rpc.{name}"), value: message.encode_to_vec() }
    }

    fn retry(seconds: i64, nanos: i32) -> Any {
        any("RetryInfo", &RetryInfo { retry_delay: Some(prost_types::Duration { seconds, nanos }) })
    }

    fn bad_request() -> Any {
        let violation =
            bad_request::FieldViolation { field: "bucket.name".into(), description: "must be lower-case".into() };
        any("BadRequest", &BadRequest { field_violations: vec![violation] })
    }

    fn quota() -> Any {
        let violation = quota_failure::Violation { subject: "project:a".into(), description: "9 of 9 disks".into() };
        any("QuotaFailure", &QuotaFailure { violations: vec![violation] })
    }

    fn precondition() -> Any {
        let violation = precondition_failure::Violation {
            r#type: "TOS".into(),
            subject: "account".into(),
            description: "not accepted".into(),
        };
        any("PreconditionFailure", &PreconditionFailure { violations: vec![violation] })
    }

    /// Shows: events.md#errors-of-plugins "The class follows from the first of these that the status has"
    #[test]
    fn class_of_each_status_code() {
        use ErrorClass::*;
        // Code, class without details, class with RetryInfo.
        for (code, plain, with_retry_info) in [
            (Code::Ok, Unexpected, Transient),
            (Code::Cancelled, Unexpected, Transient),
            (Code::Unknown, Unexpected, Transient),
            (Code::InvalidArgument, BadInput, Transient),
            (Code::DeadlineExceeded, Transient, Transient),
            (Code::NotFound, NotFound, Transient),
            (Code::AlreadyExists, Conflict, Transient),
            (Code::PermissionDenied, Unauthorised, Transient),
            (Code::ResourceExhausted, Quota, Quota),
            (Code::FailedPrecondition, Conflict, Transient),
            (Code::Aborted, Conflict, Transient),
            (Code::OutOfRange, BadInput, Transient),
            (Code::Unimplemented, Unexpected, Transient),
            (Code::Internal, Unexpected, Transient),
            (Code::Unavailable, Unavailable, Unavailable),
            (Code::DataLoss, Unexpected, Transient),
            (Code::Unauthenticated, Unauthorised, Transient),
        ] {
            assert_eq!(error_details(code, &[]).class, plain, "{code:?}");
            assert_eq!(error_details(code, &[retry(1, 0)]).class, with_retry_info, "{code:?} and RetryInfo");
        }
    }

    /// Shows: events.md#errors-of-plugins "The class follows from the first of these that the status has"
    #[test]
    fn class_of_each_combination_of_details() {
        use ErrorClass::*;
        for bits in 0..16_u8 {
            let has = |bit: u8| bits & bit != 0;
            let all = [(8, bad_request()), (4, quota()), (2, precondition()), (1, retry(1, 0))];
            let details: Vec<Any> = all.into_iter().filter(|(bit, _)| has(*bit)).map(|(_, any)| any).collect();
            let reversed: Vec<Any> = details.iter().rev().cloned().collect();
            // bad request, quota, precondition, retry
            let expected = [
                NotFound, Transient, Conflict, Conflict, Quota, Quota, Quota, Quota, BadInput, BadInput, BadInput,
                BadInput, BadInput, BadInput, BadInput, BadInput,
            ][usize::from(bits)];
            for details in [details, reversed] {
                let found = error_details(Code::NotFound, &details);
                assert_eq!((found.class, found.retry_after.is_some()), (expected, has(1)), "{bits:04b}");
            }
        }
    }

    #[test]
    fn details_decide_the_class_whatever_the_status_code_is() {
        for code in (0..=16).map(Code::from) {
            for (detail, expected) in [
                (bad_request(), ErrorClass::BadInput),
                (quota(), ErrorClass::Quota),
                (precondition(), ErrorClass::Conflict),
            ] {
                for details in [vec![detail.clone()], vec![retry(1, 0), detail.clone()]] {
                    let found = error_details(code, &details);
                    assert_eq!((found.class, found.retry_after.is_some()), (expected, details.len() > 1), "{code:?}");
                }
            }
        }
    }

    #[test]
    fn reasons_violations_and_links_are_kept_in_words() {
        let info = any("ErrorInfo", &ErrorInfo { reason: "API_DISABLED".into(), domain: "example.org".into() });
        let link = help::Link { description: "enable it".into(), url: "https://example.org/enable".into() };
        let found =
            error_details(Code::Unknown, &[info, any("Help", &Help { links: vec![link] }), quota(), precondition()]);
        assert_eq!(
            found.reasons,
            ["API_DISABLED (example.org)", "project:a: 9 of 9 disks", "TOS account: not accepted"]
        );
        assert_eq!(
            found.links,
            [HelpLink { description: "enable it".into(), url: "https://example.org/enable".into() }]
        );
        assert_eq!(
            error_details(Code::Unknown, &[bad_request()]).violations,
            [CheckFailure::new("bucket.name".into(), "must be lower-case".into())]
        );
    }

    /// Shows: events.md#errors-of-plugins "A detail without an entry, or one that cannot be decoded, is ignored."
    #[test]
    fn details_that_cannot_be_decoded_or_are_empty_are_skipped() {
        let names = ["RetryInfo", "BadRequest", "QuotaFailure", "PreconditionFailure", "ErrorInfo", "Help"];
        let hostile = [vec![0x0a, 2, 0xc3, 0x28], vec![0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f], vec![0x0b; 4_000]];
        let plain = ErrorDetails::new(ErrorClass::NotFound);
        for name in names {
            for value in &hostile {
                let detail = Any { type_url: format!("x/google.rpc.{name}"), value: value.clone() };
                assert_eq!(error_details(Code::NotFound, &[detail]), plain, "{name}");
            }
            if name != "RetryInfo" {
                let detail = Any { type_url: format!("x/google.rpc.{name}"), value: Vec::new() };
                assert_eq!(error_details(Code::NotFound, &[detail]), plain, "{name}");
            }
        }
    }

    #[test]
    fn details_are_bounded_in_number_and_length() {
        let violation = bad_request::FieldViolation { field: "é".repeat(100_000), description: "x".repeat(100_000) };
        let detail = any("BadRequest", &BadRequest { field_violations: vec![violation; 200] });
        let mut found = error_details(Code::Unknown, &[detail.clone(), detail]);
        assert_eq!(found.violations.len(), MAX_ENTRIES);
        assert!(found.texts_mut().all(|text| text.chars().count() <= MAX_TEXT + 100));
    }

    #[test]
    fn delay_is_never_negative_and_the_longest_of_several_counts() {
        for (seconds, nanos, expected) in [
            (1, 500_000_000, Duration::from_millis(1_500)),
            (-1, 0, Duration::ZERO),
            (0, -5, Duration::ZERO),
            (1, i32::MAX, Duration::new(1, 999_999_999)),
            (365 * 24 * 60 * 60, 0, Duration::from_secs(365 * 24 * 60 * 60)),
            (i64::MAX, 0, Duration::from_secs(i64::MAX.unsigned_abs())),
            (i64::MIN, i32::MIN, Duration::ZERO),
        ] {
            assert_eq!(error_details(Code::Aborted, &[retry(seconds, nanos)]).retry_after, Some(expected));
        }
        let several = [retry(2, 0), retry(5, 0), retry(1, 0)];
        assert_eq!(error_details(Code::Aborted, &several).retry_after, Some(Duration::from_secs(5)));
        let without_delay = any("RetryInfo", &RetryInfo { retry_delay: None });
        assert_eq!(error_details(Code::Aborted, &[without_delay]).retry_after, Some(Duration::ZERO));
    }
}
