//! Writes the store as Go's yaml.v3 does: 4 spaces of indentation, sorted keys, no folded lines, and the form `? key`
//! for a key of more than 128 bytes.

use std::fmt::Write as _;

use super::Store;

/// Longest key that is written before its value in one line, in bytes.
const SIMPLE_KEY_BYTES: usize = 128;

impl Store {
    /// Returns the text of the store.
    pub fn to_yaml(&self) -> String {
        let mut text = String::from("registry:\n");
        write_texts(&mut text, "    ", "files", &self.files);
        if self.recipients.is_empty() {
            text.push_str("secrets: {}\n");
            return text;
        }
        text.push_str("secrets:\n");
        for recipient in &self.recipients {
            let key = scalar(recipient.key.as_str());
            let (first, rest) = if recipient.key.as_str().len() > SIMPLE_KEY_BYTES {
                push(&mut text, &format!("    ? {key}\n"));
                ("    :   ", "        ")
            } else {
                push(&mut text, &format!("    {key}:\n"));
                ("        ", "        ")
            };
            if recipient.entries.is_empty() {
                push(&mut text, &format!("{first}secrets: []\n"));
            } else {
                push(&mut text, &format!("{first}secrets:\n"));
            }
            for entry in &recipient.entries {
                push(&mut text, &format!("{rest}    - path: {}\n", scalar(&entry.path)));
                write_texts(&mut text, &format!("{rest}      "), "encryptedData", &entry.elements);
            }
            push(&mut text, &format!("{rest}publicKeys:\n{rest}    data: []\n"));
        }
        text
    }
}

fn push(text: &mut String, line: &str) {
    text.push_str(line);
}

/// Writes a list of texts.
fn write_texts(text: &mut String, indent: &str, key: &str, items: &[String]) {
    if items.is_empty() {
        push(text, &format!("{indent}{key}: []\n"));
        return;
    }
    push(text, &format!("{indent}{key}:\n"));
    // A list inside of an entry is indented by 2 more characters: its parent begins behind a dash.
    for item in items {
        push(text, &format!("{indent}{}- {}\n", " ".repeat(indent_of_list(indent)), scalar(item)));
    }
}

/// Returns the number of spaces by which a list is indented below its key.
fn indent_of_list(indent: &str) -> usize {
    // yaml.v3 indents to multiples of 4, and the key of an entry stands 2 characters behind one.
    4 - indent.len() % 4
}

/// Returns a text as a scalar: plain where that is read as the same text, else quoted.
pub(super) fn scalar(text: &str) -> String {
    if is_other_type(text) {
        return double_quoted(text);
    }
    match style(text) {
        Style::Plain => text.to_owned(),
        Style::Single => format!("'{}'", text.replace('\'', "''")),
        Style::Double => double_quoted(text),
    }
}

enum Style {
    Plain,
    Single,
    Double,
}

/// Chooses the style of a text by its characters.
fn style(text: &str) -> Style {
    // As in yaml.v3, a character beyond U+FFFF is not printable.
    let is_visible = |c: char| matches!(c, ' '..='~' | '\u{a0}'..='\u{ffff}') && c != '\u{feff}';
    if !text.chars().all(is_visible) {
        return Style::Double;
    }
    let is_blank_or_end = |at: usize| text.as_bytes().get(at).is_none_or(|byte| *byte == b' ');
    let starts_indicator = match text.as_bytes().first() {
        Some(
            b'#' | b',' | b'[' | b']' | b'{' | b'}' | b'&' | b'*' | b'!' | b'|' | b'>' | b'\'' | b'"' | b'%' | b'@'
            | b'`',
        ) => true,
        Some(b'?' | b':' | b'-') => is_blank_or_end(1),
        _ => false,
    };
    let has_indicator = text.bytes().enumerate().skip(1).any(|(at, byte)| match byte {
        b':' => is_blank_or_end(at + 1),
        b'#' => text.as_bytes()[at - 1] == b' ',
        _ => false,
    });
    let is_document_mark = text.starts_with("---") || text.starts_with("...");
    let has_break = text.contains(['\u{2028}', '\u{2029}']);
    let has_outer_space = text.starts_with(' ') || text.ends_with(' ');
    if starts_indicator || has_indicator || is_document_mark || has_break || has_outer_space {
        Style::Single
    } else {
        Style::Plain
    }
}

fn double_quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\0' => quoted.push_str("\\0"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\t' => quoted.push_str("\\t"),
            '\n' => quoted.push_str("\\n"),
            '\u{b}' => quoted.push_str("\\v"),
            '\u{c}' => quoted.push_str("\\f"),
            '\r' => quoted.push_str("\\r"),
            '\u{1b}' => quoted.push_str("\\e"),
            '\u{85}' => quoted.push_str("\\N"),
            '\u{a0}' => quoted.push_str("\\_"),
            '\u{2028}' => quoted.push_str("\\L"),
            '\u{2029}' => quoted.push_str("\\P"),
            // Writing to a String cannot fail.
            '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => {
                write!(quoted, "\\x{:02X}", u32::from(character)).unwrap_or_default();
            }
            '\u{feff}' => quoted.push_str("\\uFEFF"),
            '\u{10000}'.. => write!(quoted, "\\U{:08X}", u32::from(character)).unwrap_or_default(),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns whether a plain text would be read as something other than a text, also by a reader of YAML 1.1.
fn is_other_type(text: &str) -> bool {
    let words = "null Null NULL true True TRUE false False FALSE ~ y Y yes Yes YES on On ON n N no No NO off Off OFF \
                 .nan .NaN .NAN .inf .Inf .INF +.inf +.Inf +.INF -.inf -.Inf -.INF";
    if text.is_empty() || words.split(' ').any(|word| word == text) {
        return true;
    }
    match text.as_bytes()[0] {
        b'.' => is_float(text),
        b'+' | b'-' | b'0'..=b'9' => {
            let digits = text.replace('_', "");
            is_integer(&digits) || is_float(&digits) || is_base_60(text) || is_timestamp(text)
        }
        _ => false,
    }
}

fn is_integer(text: &str) -> bool {
    let (is_signed, digits) = match text.strip_prefix(['+', '-']) {
        Some(digits) => (true, digits),
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
    let is_number = digits.starts_with(|c: char| c.is_digit(radix));
    is_number
        && (i64::from_str_radix(digits, radix).is_ok() || !is_signed && u64::from_str_radix(digits, radix).is_ok())
}

/// Returns whether a text is a decimal number in the range of a double.
fn is_float(text: &str) -> bool {
    is_decimal(text) && text.parse::<f64>().is_ok_and(f64::is_finite)
}

/// Matches `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`.
fn is_decimal(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) =
        text.split_once(['e', 'E']).map_or((text, None), |(text, exponent)| (text, Some(exponent)));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_mantissa = digits(whole) && digits(fraction) && !(whole.is_empty() && fraction.is_empty());
    let is_exponent = |text: &str| {
        let text = text.strip_prefix(['+', '-']).unwrap_or(text);
        !text.is_empty() && digits(text)
    };
    is_mantissa && exponent.is_none_or(is_exponent)
}

/// Matches `[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?`.
fn is_base_60(text: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = whole.strip_prefix(['+', '-']).unwrap_or(whole).split(':');
    let is_start = parts.next().is_some_and(|part| part.starts_with(|c: char| c.is_ascii_digit()) && digits(part));
    let mut rest = parts.map(|part| matches!(part.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9'])).peekable();
    is_start && rest.peek().is_some() && rest.all(|fits| fits) && digits(fraction)
}

/// Returns whether a text is a date, alone or with a time: `2024-1-2`, `2024-01-02 03:04:05`, `2024-01-02T03:04:05Z`.
fn is_timestamp(text: &str) -> bool {
    let Some(at) = text.find(['T', 't', ' ']) else { return is_date(text) };
    let (date, time) = (&text[..at], &text[at + 1..]);
    let has_zone = !text[at..].starts_with(' ');
    let zone = time.find(['Z', '+', '-']);
    let (time, zone) = zone.map_or((time, ""), |at| time.split_at(at));
    let is_zone = match zone.strip_prefix(['+', '-']) {
        Some(offset) => matches!(numbers(offset, ':')[..], [Some(0..=24), Some(0..=60)] if offset.len() == 5),
        None => zone == "Z",
    };
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let is_clock = matches!(numbers(clock, ':')[..], [Some(0..=23), Some(0..=59), Some(0..=59)]);
    let is_fraction = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    is_date(date) && is_clock && is_fraction && if has_zone { is_zone } else { zone.is_empty() }
}

fn is_date(text: &str) -> bool {
    let Some((year, rest)) = text.split_once('-').filter(|(year, _)| year.len() == 4) else { return false };
    let Ok(year) = year.parse::<u32>() else { return false };
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match numbers(rest, '-')[..] {
        [Some(month), Some(day)] => {
            let days = match month {
                2 => 28 + u32::from(is_leap),
                4 | 6 | 9 | 11 => 30,
                1..=12 => 31,
                _ => 0,
            };
            (1..=days).contains(&day)
        }
        _ => false,
    }
}

/// Returns the numbers of one or two digits in a text.
fn numbers(text: &str, separator: char) -> Vec<Option<u32>> {
    let number = |part: &str| {
        let is_number = matches!(part.len(), 1 | 2) && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse().ok().filter(|_| is_number)
    };
    text.split(separator).map(number).collect()
}
