//! Typing of scalars, which depends on their position in the file.
//!
//! | position | reading |
//! |---|---|
//! | outside of `config` (names, `values`, variables, profile) | the source text |
//! | string, bool and int fields inside the `config` of a core type | [`go_text`], [`go_bool`], [`go_int`]: as in the Go program (docs/spec/simple-container.md#2.1) |
//! | string fields inside the `config` of `provisioner` and of `auth` entries | [`go_text`] |
//! | booleans in `plugins` and `options` | [`go_bool`] |
//! | the untyped `config` of plugins and plugin types | [`read_untyped`]: as in JSON, all else is text |

use jiff::civil::DateTime;

use crate::tree::Scalar;

/// Largest integer up to which all integers are exact as doubles.
const MAX_EXACT_INTEGER: i128 = 1 << 53;

/// A scalar of an untyped `config`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum UntypedScalar {
    /// An empty value or `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A decimal number as in JSON, with its exactness.
    Number(f64, Exactness),
    /// Any other text. Ambiguous if YAML 1.1 reads it as another type.
    Text(Ambiguity),
}

/// Exactness of a number as a double.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exactness {
    /// An integer up to 2^53, or a number with a fraction or an exponent.
    Exact,
    /// An integer beyond 2^53, which may lose its last digits.
    Rounded,
}

/// Ambiguity of a text: the typing rules of YAML 1.1 may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ambiguity {
    /// Text in YAML 1.1, too.
    Clear,
    /// A number, boolean, date or null in YAML 1.1.
    Ambiguous,
}

/// Types a scalar of an untyped `config`.
pub(crate) fn read_untyped(scalar: &Scalar) -> UntypedScalar {
    let text = scalar.text.as_str();
    if !scalar.plain {
        return UntypedScalar::Text(Ambiguity::Clear);
    }
    match text {
        "" | "null" => return UntypedScalar::Null,
        "true" => return UntypedScalar::Bool(true),
        "false" => return UntypedScalar::Bool(false),
        _ => {}
    }
    if is_json_number(text)
        && let Ok(number) = text.parse::<f64>()
        && number.is_finite()
    {
        let integer = text.parse::<i128>().unwrap_or(i128::MAX);
        let rounded = !text.contains(['.', 'e', 'E']) && integer.abs() > MAX_EXACT_INTEGER;
        return UntypedScalar::Number(number, if rounded { Exactness::Rounded } else { Exactness::Exact });
    }
    let ambiguous = resolve(scalar) != Resolved::Text || parse_yaml_1_1_boolean(text).is_some() || is_base_60(text);
    UntypedScalar::Text(if ambiguous { Ambiguity::Ambiguous } else { Ambiguity::Clear })
}

fn is_json_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let starts = match digits.as_bytes() {
        [b'0'] => true,
        [b'0', next, ..] => !next.is_ascii_digit(),
        [first, ..] => first.is_ascii_digit(),
        [] => false,
    };
    starts && serde_json::from_str::<serde_json::Number>(text).is_ok()
}

/// Matches `[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?`.
fn is_base_60(text: &str) -> bool {
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = whole.strip_prefix(['-', '+']).unwrap_or(whole).split(':');
    let first = parts.next().is_some_and(|part| part.starts_with(|c: char| c.is_ascii_digit()) && digits(part));
    let mut rest = parts.map(|part| matches!(part.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9'])).peekable();
    first && rest.peek().is_some() && rest.all(|fits| fits) && digits(fraction)
}

/// Returns the text that the Go program reads for a string field. May differ from the source text of a plain number,
/// date, boolean or null.
pub(crate) fn go_text(scalar: &Scalar) -> String {
    match resolve(scalar) {
        Resolved::Null => String::new(),
        Resolved::Bool(value) => value.to_string(),
        Resolved::Int(value) => value.to_string(),
        Resolved::Float(value) => format_go_float(value),
        Resolved::Date(value) => value,
        Resolved::Text => scalar.text.clone(),
    }
}

/// Returns the boolean that the Go program reads for a bool field; `None` if the scalar is not a boolean.
pub(crate) fn go_bool(scalar: &Scalar) -> Option<bool> {
    match resolve(scalar) {
        Resolved::Bool(value) => Some(value),
        Resolved::Text => parse_yaml_1_1_boolean(&scalar.text),
        _ => None,
    }
}

/// Returns the integer that the Go program reads for an int field, truncated; `None` if the scalar is not a number or
/// does not fit into 64 bits.
pub(crate) fn go_int(scalar: &Scalar) -> Option<i64> {
    match resolve(scalar) {
        Resolved::Int(value) => i64::try_from(value).ok(),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the Go program truncates towards zero; the range is checked"
        )]
        Resolved::Float(value) if value.abs() < 9.3e18 => Some(value as i64),
        _ => None,
    }
}

/// Parses the booleans that exist in YAML 1.1 but not in YAML 1.2.
fn parse_yaml_1_1_boolean(text: &str) -> Option<bool> {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(true),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

/// A scalar as the Go library types it for an untyped destination.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Resolved {
    /// An empty value, `null` or `~`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer, in decimal, octal, binary or hexadecimal digits.
    Int(i128),
    /// A number; may be infinite or no number.
    Float(f64),
    /// A date, rewritten as a full timestamp.
    Date(String),
    /// Any other text.
    Text,
}

/// Returns whether a scalar is a text: no number, boolean, date or null.
pub(crate) fn is_text(scalar: &Scalar) -> bool {
    resolve(scalar) == Resolved::Text
}

/// Types a scalar as the Go library does for an untyped destination.
pub(crate) fn resolve(scalar: &Scalar) -> Resolved {
    if scalar.is_null() {
        return Resolved::Null;
    }
    let text = scalar.text.as_str();
    if !scalar.plain {
        return Resolved::Text;
    }
    match text {
        "true" | "True" | "TRUE" => return Resolved::Bool(true),
        "false" | "False" | "FALSE" => return Resolved::Bool(false),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Resolved::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Resolved::Float(f64::NEG_INFINITY),
        ".nan" | ".NaN" | ".NAN" => return Resolved::Float(f64::NAN),
        _ => {}
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return Resolved::Text;
    }
    if let Some(date) = parse_date(text) {
        return Resolved::Date(date);
    }
    let digits = if text.starts_with('.') { text.to_owned() } else { text.replace('_', "") };
    if !text.starts_with('.')
        && let Some(value) = parse_integer(&digits)
    {
        return Resolved::Int(value);
    }
    match digits.parse::<f64>() {
        Ok(value) if value.is_finite() && is_decimal(&digits) => Resolved::Float(value),
        _ => Resolved::Text,
    }
}

/// Parses an integer with prefix `0x`, `0o`, `0b`, or a leading zero for octal; `None` if the text is
/// not an integer or exceeds 64 bits.
fn parse_integer(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix(['-', '+']) {
        Some(digits) => (text.starts_with('-'), digits),
        None => (false, text),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match lower.get(..2) {
        Some("0x") => (16, &lower[2..]),
        Some("0o") => (8, &lower[2..]),
        Some("0b") => (2, &lower[2..]),
        Some(_) if lower.starts_with('0') => (8, &lower[1..]),
        _ => (10, lower.as_str()),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let value = i128::from_str_radix(digits, radix).ok()?;
    let value = if negative { -value } else { value };
    (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&value).then_some(value)
}

/// Matches `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`.
fn is_decimal(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (text, None),
    };
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let some = !whole.is_empty() || !fraction.is_empty();
    some && digits(whole) && digits(fraction) && exponent.is_none_or(|e| !e.is_empty() && digits(e))
}

/// Converts a date with a four-digit year, with or without a time, to RFC 3339 text.
fn parse_date(text: &str) -> Option<String> {
    if text.as_bytes().get(4) != Some(&b'-') || !text.as_bytes()[..4].iter().all(u8::is_ascii_digit) {
        return None;
    }
    let (day, time) = match text.split_once(['T', 't', ' ']) {
        Some((day, time)) => (day, Some(time.trim_start())),
        None => (text, None),
    };
    let mut parts = day.split('-').map(|part| part.parse::<i16>().ok().filter(|_| part.len() <= 4));
    let (year, month, date) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some() {
        return None;
    }
    let zoned = text.contains(['T', 't']);
    let (clock, zone) = match time {
        None => ("0:0:0", "Z"),
        Some(time) if !zoned => (time, "Z"),
        Some(time) => time.find(['Z', '+', '-']).map(|at| time.split_at(at))?,
    };
    if zone != "Z" && zone.len() != 6 {
        return None;
    }
    let mut fields = clock.split(':');
    let (hour, minute, second) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?, fields.next()?);
    if fields.next().is_some() {
        return None;
    }
    let (second, fraction) = second.split_once('.').map_or((second, ""), |(second, rest)| (second, rest));
    let nanos: i32 = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
    let (month, date) = (i8::try_from(month).ok()?, i8::try_from(date).ok()?);
    let moment = DateTime::new(year, month, date, hour, minute, second.parse().ok()?, nanos).ok()?;
    let fraction = fraction.trim_end_matches('0');
    let dot = if fraction.is_empty() { "" } else { "." };
    Some(format!("{}{dot}{fraction}{zone}", moment.strftime("%Y-%m-%dT%H:%M:%S")))
}

/// Formats a double in its shortest form, as Go does with `%g`.
fn format_go_float(value: f64) -> String {
    if value.is_nan() {
        return ".nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { ".inf".into() } else { "-.inf".into() };
    }
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if value != 0.0 && !(-4..6).contains(&exponent) {
        return format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs());
    }
    value.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Scalar {
        Scalar { text: text.into(), plain: true }
    }

    #[test]
    fn string_field_has_text_that_go_re_encodes() {
        for (source, received) in [
            ("0123", "83"),
            ("000", "0"),
            ("-07", "-7"),
            ("0x1F", "31"),
            ("0o17", "15"),
            ("0b101", "5"),
            ("1_000", "1000"),
            ("+12", "12"),
            ("1.0", "1"),
            ("8.0", "8"),
            ("16.10", "16.1"),
            (".5", "0.5"),
            ("012345670123", "1402433619"),
            ("012345678901", "1.2345678901e+10"),
            ("1e3", "1000"),
            ("1e21", "1e+21"),
            ("1e-7", "1e-07"),
            ("1e400", "1e400"),
            ("9223372036854775808", "9223372036854775808"),
            ("18446744073709551616", "1.8446744073709552e+19"),
            ("yes", "yes"),
            ("on", "on"),
            ("No", "No"),
            ("y", "y"),
            ("true", "true"),
            ("FALSE", "false"),
            ("null", ""),
            ("~", ""),
            ("", ""),
            ("2024-01-02", "2024-01-02T00:00:00Z"),
            ("2024-1-2", "2024-01-02T00:00:00Z"),
            ("2024-01-02 03:04:05", "2024-01-02T03:04:05Z"),
            ("12:30", "12:30"),
            ("12:30:45", "12:30:45"),
            (".inf", ".inf"),
            (".NaN", ".nan"),
            ("1.2.3", "1.2.3"),
            ("2024-01", "2024-01"),
            ("-", "-"),
            ("0x", "0x"),
        ] {
            assert_eq!(go_text(&plain(source)), received, "{source}");
            assert_eq!(go_text(&Scalar { text: source.into(), plain: false }), source, "{source:?} in quotes");
        }
    }

    #[test]
    fn bool_and_int_fields_accept_same_scalars_as_go() {
        for (text, quoted, expected) in [
            ("yes", false, Some(true)),
            ("On", false, Some(true)),
            ("N", false, Some(false)),
            ("yes", true, Some(true)),
            ("true", true, None),
            ("1", false, None),
            ("", true, None),
            ("tRue", false, None),
            ("TRUE", false, Some(true)),
        ] {
            assert_eq!(go_bool(&Scalar { text: text.into(), plain: !quoted }), expected, "{text}");
        }
        for (text, expected) in [
            ("20.0", Some(20)),
            ("20.7", Some(20)),
            ("-3.9", Some(-3)),
            ("2e1", Some(20)),
            ("024", Some(20)),
            ("0x14", Some(20)),
            ("1_024", Some(1024)),
            ("word", None),
            ("9223372036854775808", None),
        ] {
            assert_eq!(go_int(&plain(text)), expected, "{text}");
        }
        assert_eq!(go_int(&Scalar { text: "20".into(), plain: false }), None);
    }

    #[test]
    fn untyped_scalar_is_read_as_in_json_and_ambiguity_is_flagged() {
        use Ambiguity::{Ambiguous, Clear};
        for (text, expected) in [
            ("true", UntypedScalar::Bool(true)),
            ("null", UntypedScalar::Null),
            ("", UntypedScalar::Null),
            ("-1.5e3", UntypedScalar::Number(-1500.0, Exactness::Exact)),
            ("0", UntypedScalar::Number(0.0, Exactness::Exact)),
            ("9007199254740992", UntypedScalar::Number(9_007_199_254_740_992.0, Exactness::Exact)),
            ("9007199254740993", UntypedScalar::Number(9_007_199_254_740_992.0, Exactness::Rounded)),
            ("yes", UntypedScalar::Text(Ambiguous)),
            ("012", UntypedScalar::Text(Ambiguous)),
            ("0x1F", UntypedScalar::Text(Ambiguous)),
            ("1_000", UntypedScalar::Text(Ambiguous)),
            ("2024-01-02", UntypedScalar::Text(Ambiguous)),
            ("True", UntypedScalar::Text(Ambiguous)),
            ("~", UntypedScalar::Text(Ambiguous)),
            ("+1", UntypedScalar::Text(Ambiguous)),
            ("1.", UntypedScalar::Text(Ambiguous)),
            ("12:30", UntypedScalar::Text(Ambiguous)),
            ("1.2.3", UntypedScalar::Text(Clear)),
            ("eu-north-1", UntypedScalar::Text(Clear)),
        ] {
            assert_eq!(read_untyped(&plain(text)), expected, "{text}");
        }
        assert_eq!(read_untyped(&Scalar { text: "12".into(), plain: false }), UntypedScalar::Text(Clear));
    }
}
