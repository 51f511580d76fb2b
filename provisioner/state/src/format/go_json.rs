//! JSON in the form of Go's `encoding/json`: its escapes, its numbers, compact.

use std::io;

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use serde_json::value::RawValue;

/// Characters that are escaped in addition to those that JSON and Go require.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Escaping {
    /// No other characters: Go's encoder with `SetEscapeHTML(false)`.
    Plain,
    /// `<`, `>` and `&`: Go's encoder by default.
    Html,
}

/// Appends the JSON of a value. After an error the end of the buffer contains a part of it.
///
/// # Errors
/// Only errors of the `Serialize` implementation of the value.
pub(super) fn append(
    out: &mut Vec<u8>,
    value: &(impl Serialize + ?Sized),
    escaping: Escaping,
) -> Result<(), serde_json::Error> {
    value.serialize(&mut Serializer::with_formatter(out, GoFormatter { escaping }))
}

/// Appends the JSON of a value and a newline.
///
/// # Errors
/// Errors of [`append`].
pub(crate) fn append_line(out: &mut Vec<u8>, value: &impl Serialize) -> Result<(), serde_json::Error> {
    append(out, value, Escaping::Plain)?;
    out.push(b'\n');
    Ok(())
}

/// Returns the JSON of a value.
///
/// # Errors
/// Errors of [`append`].
pub(super) fn to_string(value: &(impl Serialize + ?Sized), escaping: Escaping) -> Result<String, serde_json::Error> {
    let mut out = Vec::new();
    append(&mut out, value, escaping)?;
    Ok(into_string(out))
}

/// Returns the JSON of a value, to be embedded in a text with other escapes.
pub(super) fn to_raw(value: &serde_json::Value, escaping: Escaping) -> Box<RawValue> {
    let text = to_string(value, escaping).expect("a JSON value can be written as JSON");
    RawValue::from_string(text).expect("it was just written as JSON")
}

/// Returns the text that [`append`] wrote to an empty buffer.
pub(super) fn into_string(out: Vec<u8>) -> String {
    String::from_utf8(out).expect("the JSON of UTF-8 texts is UTF-8")
}

/// Returns the compact JSON of a value, escaped for HTML.
pub(crate) fn compact_json(value: &serde_json::Value) -> String {
    to_string(value, Escaping::Html).expect("a JSON value can be written as JSON")
}

struct GoFormatter {
    escaping: Escaping,
}

impl Formatter for GoFormatter {
    fn write_f64<W: io::Write + ?Sized>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        write_number(writer, value)
    }

    /// Receives text without the characters that every JSON encoder escapes.
    fn write_string_fragment<W: io::Write + ?Sized>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let bytes = fragment.as_bytes();
        // Fast path: few texts contain a character with this first byte.
        if self.escaping == Escaping::Plain && !bytes.contains(&LINE_SEPARATOR) {
            return writer.write_all(bytes);
        }
        let mut written = 0;
        for (index, byte) in bytes.iter().enumerate() {
            let (escape, length): (&[u8], usize) = match byte {
                b'<' if self.escaping == Escaping::Html => (b"\\u003c", 1),
                b'>' if self.escaping == Escaping::Html => (b"\\u003e", 1),
                b'&' if self.escaping == Escaping::Html => (b"\\u0026", 1),
                &LINE_SEPARATOR => match bytes.get(index..index + 3) {
                    Some([_, 0x80, 0xa8]) => (b"\\u2028", 3),
                    Some([_, 0x80, 0xa9]) => (b"\\u2029", 3),
                    _ => continue,
                },
                _ => continue,
            };
            writer.write_all(&bytes[written..index])?;
            writer.write_all(escape)?;
            written = index + length;
        }
        writer.write_all(&bytes[written..])
    }
}

/// The first byte of U+2028 and U+2029, which Go escapes because JavaScript ends a line there.
const LINE_SEPARATOR: u8 = 0xe2;

/// Writes a finite number: the shortest digits that parse to the same number, with an exponent below 1e-6 and from
/// 1e21.
fn write_number<W: io::Write + ?Sized>(writer: &mut W, number: f64) -> io::Result<()> {
    let size = number.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        return write!(writer, "{number}");
    }
    let text = format!("{number:e}");
    match text.split_once('e') {
        Some((digits, exponent)) if size >= 1.0 => write!(writer, "{digits}e+{exponent}"),
        _ => writer.write_all(text.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(value: &(impl Serialize + ?Sized), escaping: Escaping) -> String {
        to_string(value, escaping).unwrap()
    }

    /// Shows: performance.md#json-of-checkpoints-and-journals "a formatter for the escapes and numbers of Go"
    #[test]
    fn strings_are_escaped_as_in_go() {
        assert_eq!(json("a\"\\/\n\u{1}\u{7f}é🦀", Escaping::Plain), "\"a\\\"\\\\/\\n\\u0001\u{7f}é🦀\"");
        assert_eq!(json("\u{8}\u{c}\r\t\u{1f}", Escaping::Plain), "\"\\b\\f\\r\\t\\u001f\"");
        assert_eq!(json("\u{2027}\u{2028}\u{2029}–", Escaping::Plain), "\"\u{2027}\\u2028\\u2029–\"");
        assert_eq!(json("\u{2028}<–>\u{2029}", Escaping::Html), "\"\\u2028\\u003c–\\u003e\\u2029\"");
        assert_eq!(json("<&>", Escaping::Plain), "\"<&>\"");
        assert_eq!(json("<&>", Escaping::Html), "\"\\u003c\\u0026\\u003e\"");
    }

    /// Shows: performance.md#json-of-checkpoints-and-journals "a formatter for the escapes and numbers of Go"
    #[test]
    fn numbers_are_written_as_in_go() {
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
            assert_eq!(json(&value, Escaping::Plain), text);
        }
    }
}
