//! Durations as Go writes them: `90s`, `1m30s`, `1.5h`, `250ms`.

use std::time::Duration;

/// Reads a Go duration that is not negative. `0` needs no unit.
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

/// Writes seconds as such a duration; nothing where there are none.
pub fn of_seconds(seconds: f64) -> String {
    if seconds > 0.0 { format!("{seconds}s") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_go() {
        let millis = |text| parse(text).map(|duration| duration.as_millis());
        assert_eq!(millis("5m"), Some(300_000));
        assert_eq!(millis("1h1m1.5s"), Some(3_661_500));
        assert_eq!((millis("0"), millis("250ms")), (Some(0), Some(250)));
        for bad in ["", "5", "m", "5 m", "-1s", "1d", "1..5s"] {
            assert_eq!(millis(bad), None, "{bad:?}");
        }
        assert_eq!((of_seconds(90.5).as_str(), of_seconds(0.0).as_str()), ("90.5s", ""));
    }
}
