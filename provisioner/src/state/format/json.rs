//! JSON as Go's encoder writes it: its escapes, its numbers, no blanks.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Which characters of a text are escaped besides those that JSON and Go insist on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Escaping {
    /// None.
    Plain,
    /// `<`, `>` and `&` too.
    Html,
}

/// Appends a string literal.
pub(super) fn write_string(out: &mut String, text: &str, escaping: Escaping) {
    out.push('"');
    let bytes = text.as_bytes();
    let mut copied = 0;
    let mut index = 0;
    while index < bytes.len() {
        let first = usize::from(bytes[index]);
        let Some((escape, length)) = MAY_BE_ESCAPED[first].then(|| escape_at(bytes, index, escaping)).flatten() else {
            index += 1;
            continue;
        };
        out.push_str(&text[copied..index]);
        match escape {
            Escape::Short(character) => out.extend(['\\', character]),
            Escape::Code(code) => _ = write!(out, "\\u{code:04x}"),
        }
        index += length;
        copied = index;
    }
    out.push_str(&text[copied..]);
    out.push('"');
}

/// The bytes that an escaped character can start with: the others need no closer look.
const MAY_BE_ESCAPED: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < table.len() {
        table[byte] = byte < 0x20 || matches!(byte as u8, b'"' | b'\\' | b'<' | b'>' | b'&' | 0xe2);
        byte += 1;
    }
    table
};

enum Escape {
    Short(char),
    Code(u16),
}

/// The escape of the character that starts at a byte, and how many bytes it takes the place of.
fn escape_at(bytes: &[u8], index: usize, escaping: Escaping) -> Option<(Escape, usize)> {
    match bytes[index] {
        b'"' => Some((Escape::Short('"'), 1)),
        b'\\' => Some((Escape::Short('\\'), 1)),
        0x08 => Some((Escape::Short('b'), 1)),
        0x0c => Some((Escape::Short('f'), 1)),
        b'\n' => Some((Escape::Short('n'), 1)),
        b'\r' => Some((Escape::Short('r'), 1)),
        b'\t' => Some((Escape::Short('t'), 1)),
        byte @ ..0x20 => Some((Escape::Code(byte.into()), 1)),
        byte @ (b'<' | b'>' | b'&') if escaping == Escaping::Html => Some((Escape::Code(byte.into()), 1)),
        // U+2028 and U+2029
        0xe2 if bytes.get(index + 1) == Some(&0x80) => match bytes.get(index + 2) {
            Some(0xa8) => Some((Escape::Code(0x2028), 3)),
            Some(0xa9) => Some((Escape::Code(0x2029), 3)),
            _ => None,
        },
        _ => None,
    }
}

/// Appends a finite number: the shortest digits that read back the same, with an exponent below 1e-6 and from 1e21.
pub(super) fn write_number(out: &mut String, number: f64) {
    debug_assert!(number.is_finite(), "numbers that JSON cannot hold travel as tagged objects");
    let size = number.abs();
    let written = if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let start = out.len();
        let written = write!(out, "{number:e}");
        if size >= 1.0
            && let Some(exponent) = out[start..].find('e')
        {
            out.insert(start + exponent + 1, '+');
        }
        written
    } else {
        write!(out, "{number}")
    };
    debug_assert!(written.is_ok(), "writing to a string does not fail");
}

/// Appends a value that we keep and have no use for.
pub(super) fn write_json(out: &mut String, value: &serde_json::Value, escaping: Escaping) {
    match value {
        serde_json::Value::Null => out.push_str("null"),
        serde_json::Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        serde_json::Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(number) => write_number(out, number),
            None => _ = write!(out, "{number}"),
        },
        serde_json::Value::String(text) => write_string(out, text, escaping),
        serde_json::Value::Array(items) => {
            write_list(out, items, |out, item| write_json(out, item, escaping));
        }
        serde_json::Value::Object(members) => write_map(out, members, escaping),
    }
}

/// Appends an object in the order of its members.
pub(super) fn write_map(out: &mut String, members: &serde_json::Map<String, serde_json::Value>, escaping: Escaping) {
    write_object(out, members, escaping, |out, value| write_json(out, value, escaping));
}

/// Appends a map.
pub(super) fn write_named<V>(out: &mut String, members: &BTreeMap<String, V>, write: impl FnMut(&mut String, &V)) {
    write_object(out, members, Escaping::Plain, write);
}

fn write_object<'m, V: 'm>(
    out: &mut String,
    members: impl IntoIterator<Item = (&'m String, &'m V)>,
    escaping: Escaping,
    mut write: impl FnMut(&mut String, &V),
) {
    out.push('{');
    for (index, (name, value)) in members.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_string(out, name, escaping);
        out.push(':');
        write(out, value);
    }
    out.push('}');
}

/// Appends a list.
pub(super) fn write_list<T>(
    out: &mut String,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut String, T),
) {
    out.push('[');
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(']');
}

/// Writes the members of an object whose names need no escapes.
pub(super) struct Members<'o> {
    /// Where the object goes.
    pub(super) out: &'o mut String,
    first: bool,
}

impl<'o> Members<'o> {
    /// Opens an object.
    pub(super) fn open(out: &'o mut String) -> Self {
        out.push('{');
        Self { out, first: true }
    }

    /// Announces a member, whose value is to be written next.
    pub(super) fn name(&mut self, name: &'static str) -> &mut String {
        self.out.push_str(if self.first { "\"" } else { ",\"" });
        self.first = false;
        self.out.push_str(name);
        self.out.push_str("\":");
        self.out
    }

    /// A text, even if it is empty.
    pub(super) fn text(&mut self, name: &'static str, text: &str) {
        write_string(self.name(name), text, Escaping::Plain);
    }

    /// A text, unless it is empty.
    pub(super) fn filled_text(&mut self, name: &'static str, text: &str) {
        if !text.is_empty() {
            self.text(name, text);
        }
    }

    /// `true`, or nothing.
    pub(super) fn flag(&mut self, name: &'static str, flag: bool) {
        if flag {
            self.name(name).push_str("true");
        }
    }

    /// A list of texts, unless it is empty.
    pub(super) fn filled_texts<T: AsRef<str>>(&mut self, name: &'static str, texts: &[T]) {
        if !texts.is_empty() {
            write_texts(self.name(name), texts);
        }
    }

    /// A number, unless it is zero.
    pub(super) fn filled_number(&mut self, name: &'static str, number: f64) {
        if number != 0.0 {
            write_number(self.name(name), number);
        }
    }

    /// Closes the object.
    pub(super) fn close(self) {
        self.out.push('}');
    }
}

/// Appends a list of texts.
pub(super) fn write_texts<T: AsRef<str>>(out: &mut String, texts: &[T]) {
    write_list(out, texts, |out, text| write_string(out, text.as_ref(), Escaping::Plain));
}

/// A text with four blanks for each level and a newline at the end, whatever blanks it had.
pub(super) fn indented(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut depth = 0;
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let token = match character {
            '"' => string_end(rest),
            _ => character.len_utf8(),
        };
        let (token, after) = rest.split_at(token);
        rest = after;
        match character {
            '{' | '[' => {
                out.push(character);
                rest = rest.trim_start();
                if let Some(after) = rest.strip_prefix(['}', ']']) {
                    out.push(if character == '{' { '}' } else { ']' });
                    rest = after;
                } else {
                    depth += 1;
                    break_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth -= 1;
                break_line(&mut out, depth);
                out.push(character);
            }
            ',' => {
                out.push(character);
                break_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            ' ' | '\n' | '\r' | '\t' => {}
            _ => out.push_str(token),
        }
    }
    out.push('\n');
    out
}

fn break_line(out: &mut String, depth: usize) {
    out.push('\n');
    (0..depth).for_each(|_| out.push_str("    "));
}

/// Where the string literal ends that a text begins with.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    let closing = text.bytes().skip(1).position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    });
    closing.map_or(text.len(), |closing| closing + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(text: &str, escaping: Escaping) -> String {
        let mut out = String::new();
        write_string(&mut out, text, escaping);
        out
    }

    fn number(value: f64) -> String {
        let mut out = String::new();
        write_number(&mut out, value);
        out
    }

    #[test]
    fn texts_are_escaped_as_go_does() {
        assert_eq!(string("a\"\\/\n\u{1}\u{7f}é🦀", Escaping::Plain), "\"a\\\"\\\\/\\n\\u0001\u{7f}é🦀\"");
        assert_eq!(string("\u{2027}\u{2028}\u{2029}–", Escaping::Plain), "\"\u{2027}\\u2028\\u2029–\"");
        assert_eq!(string("<&>", Escaping::Plain), "\"<&>\"");
        assert_eq!(string("<&>", Escaping::Html), "\"\\u003c\\u0026\\u003e\"");
    }

    #[test]
    fn no_byte_that_starts_an_escape_is_passed_over() {
        for byte in 0..=u8::MAX {
            let escaped = [[byte, 0x80, 0xa8], [byte, 0x80, 0xa9]]
                .iter()
                .any(|bytes| escape_at(bytes, 0, Escaping::Plain).or(escape_at(bytes, 0, Escaping::Html)).is_some());
            assert_eq!(MAY_BE_ESCAPED[usize::from(byte)], escaped, "{byte:#04x}");
        }
    }

    #[test]
    fn blanks_come_and_go_outside_of_texts_only() {
        let expected = "{\n    \"a b\": [\n        1,\n        {}\n    ],\n    \"c\": \"x, {\\\" }\"\n}\n";
        assert_eq!(indented(r#"{"a b":[1,{}],"c":"x, {\" }"}"#), expected);
        assert_eq!(indented("{ \"a b\" : [ 1 , { } ] ,\r\n\t\"c\":\"x, {\\\" }\" }\n"), expected);
    }

    #[test]
    fn numbers_are_written_as_go_does() {
        let cases = [
            (2.0, "2"),
            (-17.25, "-17.25"),
            (0.0, "0"),
            (-0.0, "-0"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (-1.5e300, "-1.5e+300"),
            (0.000001, "0.000001"),
            (1e-7, "1e-7"),
            (5e-324, "5e-324"),
            (1.7976931348623157e308, "1.7976931348623157e+308"),
            (9007199254740992.0, "9007199254740992"),
            (0.1, "0.1"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
    }
}
