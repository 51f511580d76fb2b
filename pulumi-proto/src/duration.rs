//! Durations in Go's format: `90s`, `1m30s`, `1.5h`, `250ms`.

use std::time::Duration;

/// Custom timeouts of a resource (`customTimeouts`). `None` selects the default of the provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// Timeout of Create.
    pub create: Option<Duration>,
    /// Timeout of Update.
    pub update: Option<Duration>,
    /// Timeout of Delete.
    pub delete: Option<Duration>,
    /// Timeout of Read.
    pub read: Option<Duration>,
}

impl Timeouts {
    /// Returns these timeouts, with those of `others` in the place of missing ones.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        Self {
            create: self.create.or(others.create),
            update: self.update.or(others.update),
            delete: self.delete.or(others.delete),
            read: self.read.or(others.read),
        }
    }
}

/// Parses a Go duration that is not negative. `0` needs no unit.
pub fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    let mut total = 0.0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let unit = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        total += number
            * match &rest[..unit] {
                "ns" => 1e-9,
                "us" | "µs" | "μs" => 1e-6,
                "ms" => 1e-3,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                _ => return None,
            };
        rest = &rest[unit..];
    }
    Duration::try_from_secs_f64(total).ok()
}

/// Formats a duration for Go. Returns an empty text for `None`.
pub fn format(duration: Option<Duration>) -> String {
    duration.map(|duration| format!("{}s", duration.as_secs_f64())).unwrap_or_default()
}

/// Converts a number of seconds from a state or message. Returns `None` for zero, which means no duration there, and
/// for an invalid number.
pub fn from_seconds(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok().filter(|duration| !duration.is_zero())
}

/// Returns a duration as a number of seconds, zero for `None`.
pub fn to_seconds(duration: Option<Duration>) -> f64 {
    duration.unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_duration_is_parsed_and_formatted() {
        let millis = |text| parse(text).map(|duration| duration.as_millis());
        assert_eq!(millis("5m"), Some(300_000));
        assert_eq!(millis("1h1m1.5s"), Some(3_661_500));
        assert_eq!((millis("0"), millis("250ms")), (Some(0), Some(250)));
        for bad in ["", "5", "m", "5 m", "-1s", "1d", "1..5s"] {
            assert_eq!(millis(bad), None, "{bad:?}");
        }
        assert_eq!((format(from_seconds(90.5)).as_str(), format(None).as_str()), ("90.5s", ""));
    }

    #[test]
    fn seconds_are_converted_without_loss() {
        for seconds in [0.0, 0.1, 1.0, 90.5, 3661.5, 86_400.0] {
            assert_eq!(to_seconds(from_seconds(seconds)), seconds);
        }
        for none in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(from_seconds(none), None, "{none}");
        }
    }
}
